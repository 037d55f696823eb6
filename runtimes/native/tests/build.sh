#!/bin/sh
# Builds what the tests of the runner run, in the folder given:
#   native/  with a stub in the library's place, under the address and undefined-behaviour sanitizers
#   arm64/   with the library, CPU and GPU
set -eu
source=$(dirname "$(dirname "$(readlink -f "$0")")")
folder=$1
jobs=$(nproc)

configure() {
    build=$1
    shift
    cmake -S "$source" -B "$folder/$build" -DPARAPIPE_FUZZ=ON "$@" >"$folder/$build.log" ||
        { cat "$folder/$build.log" >&2; exit 1; }
}

mkdir -p "$folder"
configure native -DPARAPIPE_NEON=OFF -DPARAPIPE_ONEDNN=OFF -DPARAPIPE_XNNPACK=OFF -DPARAPIPE_STUB=ON -DCMAKE_BUILD_TYPE=Debug \
    -DPARAPIPE_SANITIZE=address,undefined
configure arm64 -DPARAPIPE_OPENCL=ON "-DCMAKE_TOOLCHAIN_FILE=$source/toolchains/aarch64-linux-gnu.cmake"
for build in native arm64; do
    cmake --build "$folder/$build" --parallel "$jobs" -- --quiet
done
