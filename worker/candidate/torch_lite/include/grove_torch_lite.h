// A small part of PyTorch's C++ interface, for sources given to torch.utils.cpp_extension.load_inline.
//
// The full headers take a compiler tens of seconds to read, and a typical extension uses ten names of them. This header
// has those names, with the same signatures, and forwards each to the real library through glue.cc, which is compiled
// against the full headers once per machine. Where a source needs a name that is not here, it does not compile, and the
// build goes on with the full headers: so everything declared here must do what PyTorch does, and nothing may compile
// here that would mean something else there. All of an extension's files are compiled one way or the other, never
// mixed.
//
// Types stand in inline namespaces: `at::Tensor` is spelled as usual and has a linker name of its own, so that no
// symbol of ours meets one of PyTorch's.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 201703L
#include <optional>
#endif
#ifdef GROVE_LITE_HALF  // the source names Half or BFloat16
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#endif

#include "grove_torch_lite_abi.h"

#define GROVE_LITE_STRING_(x) #x
#define GROVE_LITE_STRING(x) GROVE_LITE_STRING_(x)
#define GROVE_LITE_JOIN_(a, b) a##b
#define GROVE_LITE_JOIN(a, b) GROVE_LITE_JOIN_(a, b)
#define TORCH_API
#define C10_API
#define C10_HOST_DEVICE __host__ __device__

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // an ArrayRef is for the call that it is given to

namespace c10 {
inline namespace grove_lite {

enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  Bool = 11,
  BFloat16 = 15,
};
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
enum class Layout : int8_t { Strided = 0 };
enum class MemoryFormat : int8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };
using DeviceIndex = int8_t;

constexpr ScalarType kByte = ScalarType::Byte, kChar = ScalarType::Char, kShort = ScalarType::Short,
                     kInt = ScalarType::Int, kLong = ScalarType::Long, kHalf = ScalarType::Half,
                     kFloat = ScalarType::Float, kDouble = ScalarType::Double, kBool = ScalarType::Bool,
                     kBFloat16 = ScalarType::BFloat16;
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
constexpr Layout kStrided = Layout::Strided;

inline const char* toString(ScalarType type) { return grove_lite_scalar_type_name(static_cast<int>(type)); }

template <typename T>
struct CppTypeToScalarType;
#define GROVE_LITE_TYPE(cpp, name) \
  template <>                      \
  struct CppTypeToScalarType<cpp> : std::integral_constant<ScalarType, ScalarType::name> {};
GROVE_LITE_TYPE(uint8_t, Byte)
GROVE_LITE_TYPE(int8_t, Char)
GROVE_LITE_TYPE(int16_t, Short)
GROVE_LITE_TYPE(int, Int)
GROVE_LITE_TYPE(int64_t, Long)
GROVE_LITE_TYPE(float, Float)
GROVE_LITE_TYPE(double, Double)
GROVE_LITE_TYPE(bool, Bool)
#ifdef GROVE_LITE_HALF
GROVE_LITE_TYPE(::c10::Half, Half)
GROVE_LITE_TYPE(::c10::BFloat16, BFloat16)
#endif
#undef GROVE_LITE_TYPE

template <typename T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), length_(1) {}
  constexpr ArrayRef(const T* data, size_t length) : data_(data), length_(length) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), length_(static_cast<size_t>(end - begin)) {}
  template <typename A>
  ArrayRef(const std::vector<T, A>& v) : data_(v.data()), length_(v.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& a) : data_(a.data()), length_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&a)[N]) : data_(a), length_(N) {}
  constexpr ArrayRef(const std::initializer_list<T>& list)
      : data_(list.begin() == list.end() ? nullptr : list.begin()), length_(list.size()) {}
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + length_; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return length_; }
  constexpr bool empty() const { return length_ == 0; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool equals(ArrayRef other) const {
    if (length_ != other.length_) return false;
    for (size_t i = 0; i < length_; ++i) {
      if (!(data_[i] == other.data_[i])) return false;
    }
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t length_ = 0;
};
template <typename T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.equals(b);
}
template <typename T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) {
  return !a.equals(b);
}
template <typename T>
bool operator==(const std::vector<T>& a, ArrayRef<T> b) {
  return ArrayRef<T>(a).equals(b);
}
template <typename T>
bool operator==(ArrayRef<T> a, const std::vector<T>& b) {
  return a.equals(ArrayRef<T>(b));
}
template <typename T>
bool operator!=(ArrayRef<T> a, const std::vector<T>& b) {
  return !a.equals(ArrayRef<T>(b));
}
using IntArrayRef = ArrayRef<int64_t>;

class Device {
 public:
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ != -1; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool operator==(const Device& other) const { return type_ == other.type_ && index_ == other.index_; }
  bool operator!=(const Device& other) const { return !(*this == other); }
  std::string str() const {
    std::string text = type_ == DeviceType::CUDA ? "cuda" : "cpu";
    if (has_index()) text += ":" + std::to_string(static_cast<int>(index_));
    return text;
  }

 private:
  DeviceType type_;
  DeviceIndex index_;
};

class Scalar {
 public:
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  Scalar(T value) {
    if (std::is_same<T, bool>::value) {
      v_.kind = GROVE_LITE_SCALAR_BOOL;
      v_.integer = static_cast<int64_t>(value);
    } else if (std::is_integral<T>::value) {
      static_assert(!(std::is_unsigned<T>::value && sizeof(T) == 8), "use the full headers");
      v_.kind = GROVE_LITE_SCALAR_INT;
      v_.integer = static_cast<int64_t>(value);
    } else {
      v_.kind = GROVE_LITE_SCALAR_FLOAT;
      v_.real = static_cast<double>(value);
    }
  }
  const grove_lite_scalar* raw() const { return &v_; }

 private:
  grove_lite_scalar v_{};
};

}  // namespace grove_lite
}  // namespace c10

namespace caffe2 {
inline namespace grove_lite {
// What Tensor::dtype() gives.
class TypeMeta {
 public:
  explicit TypeMeta(c10::ScalarType type) : type_(type) {}
  c10::ScalarType toScalarType() const { return type_; }
  size_t itemsize() const { return grove_lite_item_size(static_cast<int>(type_)); }
  friend bool operator==(TypeMeta a, TypeMeta b) { return a.type_ == b.type_; }
  friend bool operator!=(TypeMeta a, TypeMeta b) { return a.type_ != b.type_; }
  friend bool operator==(TypeMeta a, c10::ScalarType b) { return a.type_ == b; }
  friend bool operator!=(TypeMeta a, c10::ScalarType b) { return a.type_ != b; }
  friend bool operator==(c10::ScalarType a, TypeMeta b) { return a == b.type_; }
  friend bool operator!=(c10::ScalarType a, TypeMeta b) { return a != b.type_; }

 private:
  c10::ScalarType type_;
};
}  // namespace grove_lite
}  // namespace caffe2

namespace c10 {
inline namespace grove_lite {

inline ScalarType typeMetaToScalarType(caffe2::TypeMeta type) { return type.toScalarType(); }

class TensorOptions {
 public:
  TensorOptions() { std::memset(&raw_, -1, sizeof(raw_)); }
  explicit TensorOptions(const grove_lite_options& raw) : raw_(raw) {}
  TensorOptions(ScalarType type) : TensorOptions() { raw_.dtype = static_cast<int8_t>(type); }
  TensorOptions(caffe2::TypeMeta type) : TensorOptions(type.toScalarType()) {}
  TensorOptions(Device d) : TensorOptions() { Set(d); }
  TensorOptions(DeviceType type) : TensorOptions(Device(type)) {}
  TensorOptions(Layout) : TensorOptions() { raw_.layout = 0; }
  TensorOptions dtype(ScalarType type) const {
    TensorOptions o = *this;
    o.raw_.dtype = static_cast<int8_t>(type);
    return o;
  }
  TensorOptions dtype(caffe2::TypeMeta type) const { return dtype(type.toScalarType()); }
  TensorOptions device(Device d) const {
    TensorOptions o = *this;
    o.Set(d);
    return o;
  }
  TensorOptions device(DeviceType type) const { return device(Device(type)); }
  TensorOptions device(DeviceType type, DeviceIndex index) const { return device(Device(type, index)); }
  TensorOptions layout(Layout) const {
    TensorOptions o = *this;
    o.raw_.layout = 0;
    return o;
  }
  TensorOptions requires_grad(bool on) const {
    TensorOptions o = *this;
    o.raw_.requires_grad = on;
    return o;
  }
  TensorOptions pinned_memory(bool on) const {
    TensorOptions o = *this;
    o.raw_.pinned = on;
    return o;
  }
  TensorOptions memory_format(MemoryFormat format) const {
    TensorOptions o = *this;
    o.raw_.memory_format = static_cast<int8_t>(format);
    return o;
  }
  const grove_lite_options* raw() const { return &raw_; }

 private:
  void Set(Device d) {
    raw_.device_type = static_cast<int8_t>(d.type());
    raw_.device_index = d.index();
  }
  grove_lite_options raw_;  // -1: not set; device_index is free where device_type is set
};

}  // namespace grove_lite
}  // namespace c10

namespace at {
using namespace c10;  // as PyTorch has it
inline namespace grove_lite {

using c10::ArrayRef;
using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::IntArrayRef;
using c10::kCPU;
using c10::kCUDA;
using c10::Layout;
using c10::MemoryFormat;
using c10::Scalar;
using c10::ScalarType;
using c10::TensorOptions;

class Tensor;
// What the deprecated Tensor::type() is asked for.
class TypeView {
 public:
  explicit TypeView(const Tensor& tensor) : tensor_(tensor) {}
  inline bool is_cuda() const;
  inline ScalarType scalarType() const;

 private:
  const Tensor& tensor_;
};

class Tensor {
 public:
  Tensor() { grove_lite_tensor_none(this); }
  Tensor(const Tensor& other) { grove_lite_tensor_copy(this, &other); }
  Tensor(Tensor&& other) noexcept { grove_lite_tensor_move(this, &other); }
  ~Tensor() { grove_lite_tensor_drop(this); }
  Tensor& operator=(const Tensor& other) & {
    grove_lite_tensor_assign(this, &other);
    return *this;
  }
  Tensor& operator=(Tensor&& other) & noexcept {
    if (this != &other) {
      grove_lite_tensor_drop(this);
      grove_lite_tensor_move(this, &other);
    }
    return *this;
  }
  // Takes what a function of the glue writes into an empty place.
  struct Place {};
  template <typename Fill>
  Tensor(Place, Fill&& fill) {
    fill(static_cast<void*>(this));
  }

  bool defined() const { return grove_lite_ask(this, GROVE_LITE_DEFINED, 0) != 0; }
  // What loops ask for is read where PyTorch keeps it, as its own headers do.
  int64_t dim() const { return Known() ? Dims() : grove_lite_ask_slowly(this, GROVE_LITE_DIM, 0); }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const {
    return Known() ? At<int64_t>(grove_lite_tensors.numel) : grove_lite_ask_slowly(this, GROVE_LITE_NUMEL, 0);
  }
  int64_t size(int64_t d) const {
    if (!Known()) return grove_lite_ask_slowly(this, GROVE_LITE_SIZE, d);
    return Sizes()[Wrapped(d, GROVE_LITE_SIZE)];
  }
  int64_t stride(int64_t d) const {
    if (!Known()) return grove_lite_ask_slowly(this, GROVE_LITE_STRIDE, d);
    return Strides()[Wrapped(d, GROVE_LITE_STRIDE)];
  }
  int64_t storage_offset() const {
    return Known() ? At<int64_t>(grove_lite_tensors.storage_offset)
                   : grove_lite_ask_slowly(this, GROVE_LITE_STORAGE_OFFSET, 0);
  }
  int64_t element_size() const { return grove_lite_ask(this, GROVE_LITE_ELEMENT_SIZE, 0); }
  size_t itemsize() const { return static_cast<size_t>(element_size()); }
  size_t nbytes() const { return static_cast<size_t>(grove_lite_ask(this, GROVE_LITE_NBYTES, 0)); }
  bool is_cuda() const { return grove_lite_ask(this, GROVE_LITE_IS_CUDA, 0) != 0; }
  bool is_cpu() const { return grove_lite_ask(this, GROVE_LITE_IS_CPU, 0) != 0; }
  bool requires_grad() const { return grove_lite_ask(this, GROVE_LITE_REQUIRES_GRAD, 0) != 0; }
  bool is_floating_point() const { return grove_lite_ask(this, GROVE_LITE_IS_FLOATING_POINT, 0) != 0; }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    return grove_lite_ask(this, GROVE_LITE_IS_CONTIGUOUS, static_cast<int64_t>(format)) != 0;
  }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  bool equal(const Tensor& other) const { return grove_lite_equal(this, &other); }
  ScalarType scalar_type() const { return static_cast<ScalarType>(grove_lite_ask(this, GROVE_LITE_SCALAR_TYPE, 0)); }
  caffe2::TypeMeta dtype() const { return caffe2::TypeMeta(scalar_type()); }
  TypeView type() const { return TypeView(*this); }
  int64_t get_device() const { return grove_lite_ask(this, GROVE_LITE_GET_DEVICE, 0); }
  Device device() const {
    return Device(static_cast<DeviceType>(grove_lite_ask(this, GROVE_LITE_DEVICE_TYPE, 0)),
                  static_cast<DeviceIndex>(grove_lite_ask(this, GROVE_LITE_DEVICE_INDEX, 0)));
  }
  IntArrayRef sizes() const {
    return IntArrayRef(Known() ? Sizes() : grove_lite_sizes(this), static_cast<size_t>(dim()));
  }
  IntArrayRef strides() const {
    return IntArrayRef(Known() ? Strides() : grove_lite_strides(this), static_cast<size_t>(dim()));
  }
  TensorOptions options() const {
    grove_lite_options raw;
    grove_lite_options_of(this, &raw);
    return TensorOptions(raw);
  }

  void* data_ptr() const { return grove_lite_data(this, -1, GROVE_LITE_DATA_PTR); }
  const void* const_data_ptr() const { return grove_lite_data(this, -1, GROVE_LITE_CONST_DATA_PTR); }
  void* mutable_data_ptr() const { return grove_lite_data(this, -1, GROVE_LITE_MUTABLE_DATA_PTR); }
  template <typename T>
  T* data_ptr() const {
    return static_cast<T*>(grove_lite_data(this, static_cast<int>(CppTypeToScalarType<T>::value), GROVE_LITE_DATA_PTR));
  }
  template <typename T>
  const T* const_data_ptr() const {
    using Plain = typename std::remove_const<T>::type;
    return static_cast<const T*>(
        grove_lite_data(this, static_cast<int>(CppTypeToScalarType<Plain>::value), GROVE_LITE_CONST_DATA_PTR));
  }
  template <typename T>
  T* mutable_data_ptr() const {
    return static_cast<T*>(
        grove_lite_data(this, static_cast<int>(CppTypeToScalarType<T>::value), GROVE_LITE_MUTABLE_DATA_PTR));
  }
  template <typename T>
  T item() const {
    T value;
    grove_lite_item(this, static_cast<int>(CppTypeToScalarType<T>::value), &value);
    return value;
  }

#define GROVE_LITE_UNARY(name, id) \
  Tensor name() const { return Unary(id); }
#define GROVE_LITE_BINARY(name, id) \
  Tensor name(const Tensor& other) const { return Binary(id, other); }
#define GROVE_LITE_UNARY_IN_PLACE(name, id) \
  const Tensor& name() const {              \
    Unary(id);                              \
    return *this;                           \
  }
#include "grove_torch_lite_ops.inc"
#undef GROVE_LITE_UNARY
#undef GROVE_LITE_BINARY
#undef GROVE_LITE_UNARY_IN_PLACE

  Tensor contiguous(MemoryFormat format) const {
    return Ints(GROVE_LITE_CONTIGUOUS_AS, {static_cast<int64_t>(format)});
  }
  Tensor view(IntArrayRef size) const { return Ints(GROVE_LITE_VIEW, size); }
  Tensor reshape(IntArrayRef size) const { return Ints(GROVE_LITE_RESHAPE, size); }
  Tensor expand(IntArrayRef size) const { return Ints(GROVE_LITE_EXPAND, size); }
  Tensor permute(IntArrayRef dims) const { return Ints(GROVE_LITE_PERMUTE, dims); }
  Tensor transpose(int64_t a, int64_t b) const { return Ints(GROVE_LITE_TRANSPOSE, {a, b}); }
  Tensor squeeze(int64_t d) const { return Ints(GROVE_LITE_SQUEEZE_DIM, {d}); }
  Tensor unsqueeze(int64_t d) const { return Ints(GROVE_LITE_UNSQUEEZE, {d}); }
  Tensor flatten(int64_t from = 0, int64_t to = -1) const { return Ints(GROVE_LITE_FLATTEN, {from, to}); }
  Tensor select(int64_t d, int64_t index) const { return Ints(GROVE_LITE_SELECT, {d, index}); }
  Tensor narrow(int64_t d, int64_t start, int64_t length) const { return Ints(GROVE_LITE_NARROW, {d, start, length}); }
  Tensor sum(IntArrayRef dims, bool keep = false) const {
    return Ints(keep ? GROVE_LITE_SUM_KEEP : GROVE_LITE_SUM_DIMS, dims);
  }
  Tensor mean(IntArrayRef dims, bool keep = false) const {
    return Ints(keep ? GROVE_LITE_MEAN_KEEP : GROVE_LITE_MEAN_DIMS, dims);
  }
  Tensor to(ScalarType type) const { return To(TensorOptions(type)); }
  Tensor to(Device device) const { return To(TensorOptions(device)); }
  Tensor to(DeviceType device) const { return To(TensorOptions(device)); }
  Tensor to(const TensorOptions& options) const { return To(options); }
  const Tensor& zero_() const {
    grove_lite_zero(this);
    return *this;
  }
  const Tensor& fill_(const Scalar& value) const {
    grove_lite_fill(this, value.raw());
    return *this;
  }
  const Tensor& copy_(const Tensor& source, bool non_blocking = false) const {
    grove_lite_copy_into(this, &source, non_blocking);
    return *this;
  }

  friend Tensor operator+(const Tensor& a, const Tensor& b) { return a.add(b); }
  friend Tensor operator-(const Tensor& a, const Tensor& b) { return a.sub(b); }
  friend Tensor operator*(const Tensor& a, const Tensor& b) { return a.mul(b); }
  friend Tensor operator/(const Tensor& a, const Tensor& b) { return a.div(b); }
  friend Tensor operator+(const Tensor& a, const Scalar& b) { return a.WithScalar(GROVE_LITE_ADD, b); }
  friend Tensor operator-(const Tensor& a, const Scalar& b) { return a.WithScalar(GROVE_LITE_SUB, b); }
  friend Tensor operator*(const Tensor& a, const Scalar& b) { return a.WithScalar(GROVE_LITE_MUL, b); }
  friend Tensor operator/(const Tensor& a, const Scalar& b) { return a.WithScalar(GROVE_LITE_DIV, b); }

 private:
  Tensor Unary(int op) const {
    return Tensor(Place(), [&](void* to) { grove_lite_unary(to, op, this); });
  }
  Tensor Binary(int op, const Tensor& other) const {
    return Tensor(Place(), [&](void* to) { grove_lite_binary(to, op, this, &other); });
  }
  Tensor WithScalar(int op, const Scalar& other) const {
    return Tensor(Place(), [&](void* to) { grove_lite_binary_scalar(to, op, this, other.raw()); });
  }
  Tensor Ints(int op, IntArrayRef values) const {
    return Tensor(Place(), [&](void* to) { grove_lite_ints(to, op, this, values.data(), values.size()); });
  }
  Tensor To(const TensorOptions& options) const {
    return Tensor(Place(), [&](void* to) { grove_lite_to(to, this, options.raw()); });
  }

  template <typename T>
  const T& At(size_t offset) const {
    return *reinterpret_cast<const T*>(static_cast<const char*>(impl_) + offset);
  }
  // Whether grove_lite_layout holds for this tensor.
  bool Known() const {
    return __builtin_expect((At<uint32_t>(grove_lite_tensors.policy) & grove_lite_tensors.policy_mask) == 0, 1);
  }
  int64_t Dims() const { return At<int64_t>(grove_lite_tensors.sizes); }
  bool InPlace() const { return __builtin_expect(Dims() <= GROVE_LITE_DIMS_IN_PLACE, 1); }
  const int64_t* Sizes() const {
    const size_t at = grove_lite_tensors.sizes + sizeof(int64_t);
    return InPlace() ? &At<int64_t>(at) : At<const int64_t*>(at);
  }
  const int64_t* Strides() const { return Sizes() + (InPlace() ? GROVE_LITE_DIMS_IN_PLACE : Dims()); }
  int64_t Wrapped(int64_t d, int question) const {
    const int64_t dims = Dims(), wrapped = d < 0 ? d + dims : d;
    if (__builtin_expect(wrapped < 0 || wrapped >= dims, 0)) grove_lite_no_such_dimension(this, question, d);
    return wrapped;
  }

  void* impl_;  // as at::Tensor has it: one owning pointer, never null
};
static_assert(sizeof(Tensor) == sizeof(void*), "glue.cc takes a Tensor for PyTorch's own");
using TensorList = ArrayRef<Tensor>;

inline bool TypeView::is_cuda() const { return tensor_.is_cuda(); }
inline ScalarType TypeView::scalarType() const { return tensor_.scalar_type(); }

// What is the same function in `at` and `torch`.
#define GROVE_LITE_UNARY(name, id) \
  inline Tensor name(const Tensor& a) { return a.name(); }
#define GROVE_LITE_BINARY(name, id) \
  inline Tensor name(const Tensor& a, const Tensor& b) { return a.name(b); }
#define GROVE_LITE_UNARY_IN_PLACE(name, id)
#define GROVE_LITE_METHODS_ONLY_LEFT_OUT
#include "grove_torch_lite_ops.inc"
#undef GROVE_LITE_METHODS_ONLY_LEFT_OUT
#undef GROVE_LITE_UNARY
#undef GROVE_LITE_BINARY
#undef GROVE_LITE_UNARY_IN_PLACE

}  // namespace grove_lite
}  // namespace at

// Factories differ: torch's know requires_grad.
#define GROVE_LITE_FACTORIES(in_torch)                                                                      \
  inline Tensor empty(IntArrayRef size, const TensorOptions& options = {}) {                                \
    return Tensor(Tensor::Place(), [&](void* to) {                                                          \
      grove_lite_make(to, GROVE_LITE_EMPTY, in_torch, size.data(), size.size(), nullptr, options.raw());    \
    });                                                                                                     \
  }                                                                                                         \
  inline Tensor zeros(IntArrayRef size, const TensorOptions& options = {}) {                                \
    return Tensor(Tensor::Place(), [&](void* to) {                                                          \
      grove_lite_make(to, GROVE_LITE_ZEROS, in_torch, size.data(), size.size(), nullptr, options.raw());    \
    });                                                                                                     \
  }                                                                                                         \
  inline Tensor ones(IntArrayRef size, const TensorOptions& options = {}) {                                 \
    return Tensor(Tensor::Place(), [&](void* to) {                                                          \
      grove_lite_make(to, GROVE_LITE_ONES, in_torch, size.data(), size.size(), nullptr, options.raw());     \
    });                                                                                                     \
  }                                                                                                         \
  inline Tensor full(IntArrayRef size, const Scalar& value, const TensorOptions& options = {}) {            \
    return Tensor(Tensor::Place(), [&](void* to) {                                                          \
      grove_lite_make(to, GROVE_LITE_FULL, in_torch, size.data(), size.size(), value.raw(), options.raw()); \
    });                                                                                                     \
  }                                                                                                         \
  inline Tensor empty_like(const Tensor& self, const TensorOptions& options = {}) {                         \
    return Tensor(Tensor::Place(), [&](void* to) {                                                          \
      grove_lite_make_like(to, GROVE_LITE_EMPTY, in_torch, &self, nullptr, options.raw());                  \
    });                                                                                                     \
  }                                                                                                         \
  inline Tensor zeros_like(const Tensor& self, const TensorOptions& options = {}) {                         \
    return Tensor(Tensor::Place(), [&](void* to) {                                                          \
      grove_lite_make_like(to, GROVE_LITE_ZEROS, in_torch, &self, nullptr, options.raw());                  \
    });                                                                                                     \
  }                                                                                                         \
  inline Tensor ones_like(const Tensor& self, const TensorOptions& options = {}) {                          \
    return Tensor(Tensor::Place(), [&](void* to) {                                                          \
      grove_lite_make_like(to, GROVE_LITE_ONES, in_torch, &self, nullptr, options.raw());                   \
    });                                                                                                     \
  }                                                                                                         \
  inline Tensor full_like(const Tensor& self, const Scalar& value, const TensorOptions& options = {}) {     \
    return Tensor(Tensor::Place(), [&](void* to) {                                                          \
      grove_lite_make_like(to, GROVE_LITE_FULL, in_torch, &self, value.raw(), options.raw());               \
    });                                                                                                     \
  }

namespace at {
inline namespace grove_lite {
GROVE_LITE_FACTORIES(0)
}
}  // namespace at

namespace torch {
using namespace at;  // as PyTorch has it
inline namespace grove_lite {
using Dtype = at::ScalarType;
constexpr at::ScalarType kUInt8 = at::ScalarType::Byte, kInt8 = at::ScalarType::Char, kInt16 = at::ScalarType::Short,
                         kInt32 = at::ScalarType::Int, kInt64 = at::ScalarType::Long, kFloat16 = at::ScalarType::Half,
                         kFloat32 = at::ScalarType::Float, kFloat64 = at::ScalarType::Double;
GROVE_LITE_FACTORIES(1)
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions dtype(caffe2::TypeMeta type) { return TensorOptions(type); }
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions device(DeviceType type) { return TensorOptions(type); }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }

template <typename F>
struct Wrapped {
  F* function;
};
template <typename R, typename... A>
Wrapped<R(A...)> wrap_pybind_function(R (*function)(A...)) {
  return {function};
}
}  // namespace grove_lite
}  // namespace torch
#undef GROVE_LITE_FACTORIES

#pragma GCC diagnostic pop

// ------------------------------------------------------------------------------------------------------------- errors

namespace grove_lite {

// Text of a message as an output stream would have it. What is not here needs the full headers.
inline void Append(std::string& to, const char* text) { to += text; }
inline void Append(std::string& to, const std::string& text) { to += text; }
inline void Append(std::string& to, char c) { to += c; }
inline void Append(std::string& to, bool value) { to += value ? '1' : '0'; }
inline void Append(std::string& to, int value) { to += std::to_string(value); }
inline void Append(std::string& to, unsigned value) { to += std::to_string(value); }
inline void Append(std::string& to, long value) { to += std::to_string(value); }
inline void Append(std::string& to, unsigned long value) { to += std::to_string(value); }
inline void Append(std::string& to, long long value) { to += std::to_string(value); }
inline void Append(std::string& to, unsigned long long value) { to += std::to_string(value); }
inline void Append(std::string& to, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%g", value);
  to += text;
}
inline void Append(std::string& to, float value) { Append(to, static_cast<double>(value)); }
inline void Append(std::string& to, c10::ScalarType type) { to += c10::toString(type); }
inline void Append(std::string& to, caffe2::TypeMeta type) {
  const char* text = nullptr;
  const size_t length = grove_lite_type_meta_name(static_cast<int>(type.toScalarType()), &text);
  to.append(text, length);
}
inline void Append(std::string& to, const c10::Device& device) { to += device.str(); }
template <typename T, typename = typename std::enable_if<std::is_same<T, int64_t>::value>::type>
void Append(std::string& to, const c10::ArrayRef<T>& values) {
  to += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) to += ", ";
    to += std::to_string(values[i]);
  }
  to += ']';
}
template <typename T>
void Append(std::string&, const T*) = delete;

template <typename... Parts>
std::string Text(const Parts&... parts) {
  std::string text;
  const int each[] = {0, (Append(text, parts), 0)...};
  (void)each;
  return text;
}
// Of TORCH_CHECK: what was given, or what PyTorch says without a message.
inline std::string CheckText(const char* otherwise) { return otherwise; }
template <typename First, typename... Rest>
std::string CheckText(const char*, const First& first, const Rest&... rest) {
  return Text(first, rest...);
}

}  // namespace grove_lite

#define TORCH_CHECK(cond, ...)                                                                                      \
  if (__builtin_expect(static_cast<bool>(!(cond)), 0)) {                                                            \
    grove_lite_check_failed(__func__, __FILE__, static_cast<uint32_t>(__LINE__),                                    \
                            ::grove_lite::CheckText("Expected " #cond " to be true, but got false.  "               \
                                                    "(Could this error message be improved?  If so, please report " \
                                                    "an enhancement request to PyTorch.)",                          \
                                                    ##__VA_ARGS__)                                                  \
                                .c_str());                                                                          \
  }
#define AT_ASSERTM(cond, ...) TORCH_CHECK(cond, ##__VA_ARGS__)
#define AT_ERROR(...)                                                            \
  do {                                                                           \
    grove_lite_check_failed(__func__, __FILE__, static_cast<uint32_t>(__LINE__), \
                            ::grove_lite::Text(__VA_ARGS__).c_str());            \
  } while (false)

// ----------------------------------------------------------------------------------------------------------- dispatch

#ifdef GROVE_LITE_HALF
#define GROVE_LITE_CASE_HALF(...) GROVE_LITE_CASE(Half, ::c10::Half, __VA_ARGS__)
#define GROVE_LITE_CASE_BFLOAT16(...) GROVE_LITE_CASE(BFloat16, ::c10::BFloat16, __VA_ARGS__)
#endif
namespace grove_lite {
inline c10::ScalarType DispatchType(c10::ScalarType type) { return type; }
inline c10::ScalarType DispatchType(const at::TypeView& type) { return type.scalarType(); }
}  // namespace grove_lite
#define GROVE_LITE_CASE(name, type, ...)   \
  case ::c10::ScalarType::name: {          \
    using scalar_t [[gnu::unused]] = type; \
    return __VA_ARGS__();                  \
  }
#define GROVE_LITE_DISPATCH(TYPE, NAME, ...)                                                            \
  [&] {                                                                                                 \
    const auto& the_type = TYPE;                                                                        \
    constexpr const char* at_dispatch_name = NAME;                                                      \
    const ::c10::ScalarType grove_lite_type = ::grove_lite::DispatchType(the_type);                     \
    switch (grove_lite_type) {                                                                          \
      __VA_ARGS__                                                                                       \
      default:                                                                                          \
        grove_lite_not_dispatched(__func__, __FILE__, static_cast<uint32_t>(__LINE__),                  \
                                  ::grove_lite::Text('"', at_dispatch_name, "\" not implemented for '", \
                                                     ::c10::toString(grove_lite_type), "'")             \
                                      .c_str());                                                        \
    }                                                                                                   \
  }()
#define GROVE_LITE_FLOATING(...) GROVE_LITE_CASE(Double, double, __VA_ARGS__) GROVE_LITE_CASE(Float, float, __VA_ARGS__)
#define GROVE_LITE_INTEGRAL(...)              \
  GROVE_LITE_CASE(Byte, uint8_t, __VA_ARGS__) \
  GROVE_LITE_CASE(Char, int8_t, __VA_ARGS__)  \
  GROVE_LITE_CASE(Int, int, __VA_ARGS__)      \
  GROVE_LITE_CASE(Long, int64_t, __VA_ARGS__) \
  GROVE_LITE_CASE(Short, int16_t, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) GROVE_LITE_DISPATCH(TYPE, NAME, GROVE_LITE_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) GROVE_LITE_DISPATCH(TYPE, NAME, GROVE_LITE_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  GROVE_LITE_DISPATCH(TYPE, NAME, GROVE_LITE_INTEGRAL(__VA_ARGS__) GROVE_LITE_FLOATING(__VA_ARGS__))
#ifdef GROVE_LITE_HALF
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  GROVE_LITE_DISPATCH(TYPE, NAME, GROVE_LITE_FLOATING(__VA_ARGS__) GROVE_LITE_CASE_HALF(__VA_ARGS__))
#endif

// ------------------------------------------------------------------------------------------------------------ bindings

namespace grove_lite {

template <typename T>
struct KindOf;  // not here: the full headers
#define GROVE_LITE_KIND(type, kind) \
  template <>                       \
  struct KindOf<type> : std::integral_constant<unsigned char, kind> {}
GROVE_LITE_KIND(void, GROVE_LITE_KIND_VOID);
GROVE_LITE_KIND(at::Tensor, GROVE_LITE_KIND_TENSOR);
GROVE_LITE_KIND(bool, GROVE_LITE_KIND_BOOL);
GROVE_LITE_KIND(int, GROVE_LITE_KIND_INT);
GROVE_LITE_KIND(unsigned, GROVE_LITE_KIND_UNSIGNED);
GROVE_LITE_KIND(long, GROVE_LITE_KIND_LONG);
GROVE_LITE_KIND(unsigned long, GROVE_LITE_KIND_UNSIGNED_LONG);
GROVE_LITE_KIND(long long, GROVE_LITE_KIND_LONG_LONG);
GROVE_LITE_KIND(float, GROVE_LITE_KIND_FLOAT);
GROVE_LITE_KIND(double, GROVE_LITE_KIND_DOUBLE);
GROVE_LITE_KIND(std::string, GROVE_LITE_KIND_STRING);
GROVE_LITE_KIND(std::vector<at::Tensor>, GROVE_LITE_KIND_TENSORS);
GROVE_LITE_KIND(std::vector<int64_t>, GROVE_LITE_KIND_INTS);
using Pair = std::tuple<at::Tensor, at::Tensor>;
using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
GROVE_LITE_KIND(Pair, GROVE_LITE_KIND_PAIR);
GROVE_LITE_KIND(Triple, GROVE_LITE_KIND_TRIPLE);
#ifdef GROVE_LITE_STD_OPTIONAL  // where PyTorch's optional is the standard one
GROVE_LITE_KIND(std::optional<at::Tensor>, GROVE_LITE_KIND_OPTIONAL_TENSOR);
GROVE_LITE_KIND(std::optional<int64_t>, GROVE_LITE_KIND_OPTIONAL_INT);
GROVE_LITE_KIND(std::optional<double>, GROVE_LITE_KIND_OPTIONAL_DOUBLE);
#endif
#undef GROVE_LITE_KIND

template <typename A>
using Plain = typename std::remove_cv<typename std::remove_reference<A>::type>::type;

// The value that the glue made for an argument, as the function takes it.
template <typename A>
A Given(void* value) {
  return static_cast<A>(
      *static_cast<typename std::conditional<std::is_rvalue_reference<A>::value || !std::is_reference<A>::value,
                                             Plain<A>, typename std::remove_reference<A>::type>::type*>(value));
}

template <typename R, typename... A>
struct Caller {
  template <size_t... I>
  static void Call(void (*function)(), void** arguments, void* result, std::index_sequence<I...>) {
    (void)arguments;
    auto* f = reinterpret_cast<R (*)(A...)>(function);
    new (result) R(f(Given<A>(arguments[I])...));
  }
  static void Run(void (*function)(), void** arguments, void* result) {
    Call(function, arguments, result, std::index_sequence_for<A...>());
  }
};
template <typename... A>
struct Caller<void, A...> {
  template <size_t... I>
  static void Call(void (*function)(), void** arguments, std::index_sequence<I...>) {
    (void)arguments;
    reinterpret_cast<void (*)(A...)>(function)(Given<A>(arguments[I])...);
  }
  static void Run(void (*function)(), void** arguments, void*) {
    Call(function, arguments, std::index_sequence_for<A...>());
  }
};

class Module {
 public:
  explicit Module(void* module) : module_(module) {}
  template <typename R, typename... A>
  Module& def(const char* name, R (*function)(A...), const char* doc = nullptr) {
    return Add<R, A...>(name, function, doc, false);
  }
  template <typename R, typename... A>
  Module& def(const char* name, torch::Wrapped<R(A...)> wrapped, const char* doc = nullptr) {
    return Add<R, A...>(name, wrapped.function, doc, true);
  }

 private:
  template <typename R, typename... A>
  Module& Add(const char* name, R (*function)(A...), const char* doc, bool wrapped) {
    const unsigned char kinds[] = {KindOf<Plain<A>>::value..., 0};
    static_assert(!std::is_reference<R>::value, "use the full headers");
    grove_lite_define(module_, name, doc, &Caller<R, A...>::Run, reinterpret_cast<void (*)()>(function), kinds,
                      sizeof...(A), KindOf<R>::value, wrapped);
    return *this;
  }
  void* module_;
};

}  // namespace grove_lite

#define PYBIND11_MODULE(name, variable)                                                      \
  static void GROVE_LITE_JOIN(grove_lite_fill_, name)(::grove_lite::Module&);                \
  extern "C" __attribute__((visibility("default"))) void* GROVE_LITE_JOIN(PyInit_, name)() { \
    return grove_lite_module(GROVE_LITE_STRING(name), [](void* module) {                     \
      ::grove_lite::Module wrapper(module);                                                  \
      GROVE_LITE_JOIN(grove_lite_fill_, name)(wrapper);                                      \
    });                                                                                      \
  }                                                                                          \
  static void GROVE_LITE_JOIN(grove_lite_fill_, name)(::grove_lite::Module & variable)
