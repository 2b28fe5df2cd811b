#!/usr/bin/env bash
# Compiles every .cu file of the audit's corpus to PTX, or to an object where it has PTX of its own, which ptxas reads:
# compile_corpus.sh SOURCE_ROOT. nvcc reads the host code either way, and g++ only for an object, which takes three times
# as long. 77 where there is no nvcc.
set -uo pipefail
root=$1
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || { echo "skipped: no nvcc"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export nvcc root work
compile() {
  local log="$work/$(echo "$1" | tr / _)"
  # A case that is about the build may fail to build, and says so.
  grep -q BUILD_FAILED "$(dirname "$1")/manifest.toml" && exit 0
  local how=(-ptx -arch=compute_90)
  grep -q '\basm\b' "$1" && how=(-c -arch=sm_90 -Xcompiler -fPIC)
  "$nvcc" "${how[@]}" -std=c++17 -I "$root/worker/candidate/include" -o "$log.out" "$1" >"$log" 2>&1 ||
    { echo "== $1"; head -20 "$log"; exit 1; }
  rm -f "$log.out"
}
export -f compile
count=$(find "$root/tests/testcases/exploits" -name '*.cu' | wc -l)
[ "$count" -gt 0 ] || { echo "no .cu files below $root/tests/testcases/exploits"; exit 1; }
find "$root/tests/testcases/exploits" -name '*.cu' -print0 | xargs -0 -P 2 -I{} bash -c 'compile {}' || exit 1
echo "$count compiled"
