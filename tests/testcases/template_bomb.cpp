// Compiles for hours.
template <int N, int D>
struct Bomb {
  static constexpr long value = Bomb<2 * N, D - 1>::value + Bomb<2 * N + 1, D - 1>::value;
};
template <int N>
struct Bomb<N, 0> {
  static constexpr long value = N;
};
static_assert(Bomb<1, 26>::value != 0);
