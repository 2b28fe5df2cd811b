#!/usr/bin/env bash
# What `make` calls: install what is missing, build, and run. Every step says what it does and can be repeated.
#
#   deploy/bootstrap.sh deps      install the Debian packages that are missing (apt, by sudo unless root)
#   deploy/bootstrap.sh build     configure and build the preset `release`
#   deploy/bootstrap.sh demo      deps, build, and a real search on this machine's CPU
#   deploy/bootstrap.sh test      deps, build the preset `dev`, run the tests
#   deploy/bootstrap.sh bundle    deps, build, and the relocatable bundle under build/bundle
set -euo pipefail
cd "$(dirname "$0")/.."
ROOT=$PWD

# Compilers and tools, then the libraries that docs/ARCHITECTURE.md lists.
PACKAGES=(
  g++ cmake ninja-build make pkg-config ca-certificates binutils
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
  prometheus-cpp-dev libssl-dev libsqlite3-dev zlib1g-dev libcurl4-openssl-dev libseccomp-dev bubblewrap
  nlohmann-json3-dev libcli11-dev libtomlplusplus-dev
  libtorch-dev python3-torch python3-dev pybind11-dev
)
# Only the tests need these: Catch2 itself, promtool, which lints the metrics, and the other shell that is completed.
TEST_PACKAGES=(catch2 prometheus zsh)
BUNDLE_PACKAGES=(patchelf)

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
die() { printf 'bootstrap: %s\n' "$*" >&2; exit 1; }

install_missing() {
  command -v dpkg-query >/dev/null || die "this script installs Debian packages and dpkg is not here; install the equivalents of: $* and use CMake directly (README.md)"
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "needs root or sudo to install: ${missing[*]}"
    sudo=(sudo)
  fi
  "${sudo[@]}" apt-get update -q >&2
  # prometheus comes as a service; policy-rc.d semantics differ by host, so only its promtool is used and nothing is started here.
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}

jobs_for_memory() {
  # A translation unit that includes libtorch or gRPC takes up to 1.5 GB; fewer jobs than cores where memory is short.
  local by_memory
  by_memory=$(awk '/MemAvailable/ {print int($2 / 1572864)}' /proc/meminfo)
  local jobs
  jobs=$(nproc)
  [ "$by_memory" -lt "$jobs" ] && jobs=$by_memory
  [ "$jobs" -lt 1 ] && jobs=1
  echo "$jobs"
}

build() {  # build PRESET [extra cmake arguments]
  local preset=$1
  shift
  local launcher=()
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}  # without it a file with a precompiled header is never found again
  if [ ! -f "build/$preset/build.ninja" ]; then
    say "configuring build/$preset"
    cmake --preset "$preset" "${launcher[@]}" "$@" >"/tmp/grove-configure.$$" 2>&1 || { cat "/tmp/grove-configure.$$" >&2; rm -f "/tmp/grove-configure.$$"; die "configuring failed"; }
    rm -f "/tmp/grove-configure.$$"
  fi
  say "building build/$preset (the first time takes some minutes)"
  cmake --build "build/$preset" -j "$(jobs_for_memory)" >&2
}

demo() {
  local bin=$ROOT/build/release/bin data=$ROOT/build/demo port_file log
  mkdir -p "$data"
  port_file=$data/address
  log=$data/up.log
  rm -f "$port_file"
  say "starting a coordinator and a worker on loopback (log: ${log#"$ROOT"/})"
  "$bin/grove" up --device cpu --workers 1 --data "$data" --listen 127.0.0.1:0 --port-file "$port_file" >"$log" 2>&1 &
  local up=$!
  trap 'kill -INT '"$up"' 2>/dev/null || true; wait '"$up"' 2>/dev/null || true' EXIT
  local waited=0
  until [ -s "$port_file" ]; do
    kill -0 "$up" 2>/dev/null || { cat "$log" >&2; die "the coordinator did not start"; }
    waited=$((waited + 1))
    [ "$waited" -gt 300 ] && { cat "$log" >&2; die "the coordinator did not start within 30 s"; }
    read -r -t 0.1 <> <(:) || true
  done
  GROVE_COORDINATOR=$(cat "$port_file")
  export GROVE_COORDINATOR
  say "searching for a faster ${DEMO_PROBLEM:-docs/examples/problems/gelu.py}"
  local ids=$data/last-search.json
  "$bin/grove" search "${DEMO_PROBLEM:-docs/examples/problems/gelu.py}" --device cpu --name demo \
    --rounds 2 --ideas 3 --variants 2 --keep 2 --max-evaluations 16 --no-bank --json >"$ids" \
    || { cat "$log" >&2; die "the search failed; above is what the coordinator and the worker said (${log#"$ROOT"/})"; }
  local job
  job=$(sed -n 's/.*"job": *"\(j-[a-z0-9]*\)".*/\1/p' "$ids" | head -n 1)
  [ -n "$job" ] || die "the search printed no job; see $ids"
  say "the tree"
  "$bin/grove" tree "$job"
  say "the best kernel"
  "$bin/grove" best "$job" -o "$data/best.cpp"
  printf '\nspeedups        against PyTorch eager on this machine; in brackets the 95 %% interval\nkernel source   %s\nsearch journal  %s\nlook further    GROVE_COORDINATOR=ADDR %s show NODE   (start one with: %s up --data %s)\n' \
    "${data#"$ROOT"/}/best.cpp" "${data#"$ROOT"/}" build/release/bin/grove build/release/bin/grove "${data#"$ROOT"/}"
}

case "${1:-}" in
  deps) install_missing "${PACKAGES[@]}" ;;
  build)
    install_missing "${PACKAGES[@]}"
    build release
    ;;
  demo)
    install_missing "${PACKAGES[@]}"
    build release
    demo
    ;;
  test)
    install_missing "${PACKAGES[@]}" "${TEST_PACKAGES[@]}"
    build dev
    say "running the tests"
    ctest --preset dev -j "$(jobs_for_memory)"
    ;;
  bundle)
    install_missing "${PACKAGES[@]}" "${BUNDLE_PACKAGES[@]}"
    build release
    say "putting the bundle together"
    deploy/bundle.sh build/release build/bundle
    ;;
  *)
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    [ -z "${1:-}" ] || die "no such step: $1"
    ;;
esac
