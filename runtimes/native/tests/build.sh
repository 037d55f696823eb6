#!/bin/sh
# Builds what the tests of the runner run, in the folder given:
#   native/  with a stub in the library's place, under the address and undefined-behaviour sanitizers
#   arm64/   with ARM Compute Library, CPU and GPU, and with XNNPACK, from board/
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
# What a library in board/ needs is found there too: an RPATH, not a RUNPATH.
"$source/toolchains/arm64-xnnpack.sh" "$folder/board"
configure native -DPARAPIPE_NEON=OFF -DPARAPIPE_ONEDNN=OFF -DPARAPIPE_XNNPACK=OFF -DPARAPIPE_STUB=ON -DCMAKE_BUILD_TYPE=Debug \
    -DPARAPIPE_SANITIZE=address,undefined
configure arm64 -DPARAPIPE_OPENCL=ON -DPARAPIPE_XNNPACK=ON "-DCMAKE_PREFIX_PATH=$(readlink -f "$folder")/board/usr" \
    -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags \
    "-DCMAKE_TOOLCHAIN_FILE=$source/toolchains/aarch64-linux-gnu.cmake"
for build in native arm64; do
    cmake --build "$folder/$build" --parallel "$jobs" -- --quiet
done
