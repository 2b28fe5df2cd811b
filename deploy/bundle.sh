#!/usr/bin/env bash
# Makes a relocatable folder: programs, bubblewrap, the shared libraries they need beyond glibc, torch and CUDA, and the sources of judge and
# candidate, which are built on the GPU host against that host's PyTorch (`grove-worker setup`).
#
#   deploy/bundle.sh BUILD_FOLDER TARGET_FOLDER
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2; }
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/..")
mkdir -p "$(dirname "$2")"
target=$(realpath -m "$2")
limit_mib=60  # what the bundle may weigh

rm -rf "$target"
cmake --install "$build" --prefix "$target" --strip >/dev/null
# Judge and candidate belong to a host's PyTorch: `grove-worker setup` makes them there.
rm -f "$target"/libexec/grove/grove-judge "$target"/libexec/grove/libgrove-judge.so "$target"/libexec/grove/libgrove-judge-python.so "$target"/libexec/grove/grove-candidate \
  "$target"/libexec/grove/libgrove-shareable-memory.so
install -D -m 0755 "$(command -v bwrap)" "$target/libexec/grove/bwrap"

# glibc's own libraries come from the host: a second libc in one process cannot work.
is_system() {
  case "$1" in
    libc.so.*|libm.so.*|libdl.so.*|libpthread.so.*|librt.so.*|libresolv.so.*|libutil.so.*|libanl.so.*|libnss_*|ld-linux*|linux-vdso*) return 0 ;;
  esac
  return 1
}
mkdir -p "$target/lib/grove"
programs=("$target"/bin/grove "$target"/bin/grove-coordinator "$target"/bin/grove-worker "$target"/libexec/grove/bwrap
          "$target"/libexec/grove/grove-sandbox-probe)
for program in "${programs[@]}"; do
  # ldd resolves the closure, so one pass over the programs finds the libraries of libraries too.
  # (a static one has none, and ldd says so by its exit status)
  { ldd "$program" 2>/dev/null || true; } | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | while read -r name path; do
    is_system "$name" && continue
    [ -e "$target/lib/grove/$name" ] || install -m 0644 "$(realpath "$path")" "$target/lib/grove/$name"
  done
done
find "$target/lib/grove" -name '*.so*' -exec strip --strip-unneeded {} + -exec chmod 0755 {} +
for library in "$target"/lib/grove/*; do patchelf --set-rpath '$ORIGIN' "$library"; done
for program in "${programs[@]}"; do
  patchelf --print-interpreter "$program" >/dev/null 2>&1 || continue
  case "$program" in
    */libexec/grove/*) patchelf --set-rpath '$ORIGIN/../../lib/grove' "$program" ;;
    *) patchelf --set-rpath '$ORIGIN/../lib/grove' "$program" ;;
  esac
done

# The sources that `grove-worker setup` builds, with the one header library that they need.
src=$target/share/grove/src
mkdir -p "$src/common" "$src/worker" "$src/third_party"
cp "$source/CMakeLists.txt" "$src/"
cp -r "$source/common/CMakeLists.txt" "$src/common/"
cp -r "$source/common/wire" "$src/common/"
cp "$source/worker/CMakeLists.txt" "$src/worker/"
cp -r "$source/worker/judge" "$source/worker/candidate" "$src/worker/"
cp -r /usr/include/nlohmann "$src/third_party/"
cp -r /usr/include/toml++ "$src/third_party/"
mkdir -p "$target/share/grove/examples" "$target/share/grove/tests"
cp -r "$source/docs/examples/." "$target/share/grove/examples/"
cp -r "$source/tests/gpu" "$target/share/grove/tests/"
rm -rf "$target"/share/grove/tests/gpu/__pycache__
install -D -m 0644 -t "$target/share/grove/tests/testcases" "$source"/tests/testcases/*.cpp
cp "$source/LICENSE" "$target/"
for package in libgrpc++1.51 libprotobuf32 bubblewrap libabsl20220623 libsqlite3-0 libcurl4 libseccomp2; do
  [ -e "/usr/share/doc/$package/copyright" ] && install -D -m 0644 "/usr/share/doc/$package/copyright" "$target/share/doc/licenses/$package"
done

size=$(du -sm "$target" | cut -f1)
echo "bundle: $target, $size MiB" >&2
[ "$size" -le "$limit_mib" ] || { echo "bundle: larger than $limit_mib MiB; the largest files:" >&2; find "$target" -type f -size +1M -exec du -m {} + | sort -rn | head -15 >&2; exit 1; }
