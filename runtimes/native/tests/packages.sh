#!/bin/sh
# Installs what tests of runtimes need, on Debian 12 or the like; does nothing where all is there.
#   packages.sh         for `make test-armcl`: the library for arm64, a cross compiler, an emulator
#   packages.sh native  for `make test-native`: what builds the runner for this machine
#   packages.sh vulkan  for `make test-ncnn`: Vulkan on the CPU
set -eu

BUILD="cmake g++ make nlohmann-json3-dev"
case "${1:-}" in
    native) PACKAGES="$BUILD libpthreadpool-dev libxnnpack-dev" ;;
    vulkan) PACKAGES="libvulkan1 mesa-vulkan-drivers" ;;
    *) PACKAGES="$BUILD g++-aarch64-linux-gnu libarm-compute-dev:arm64 qemu-user-static" ;;
esac

missing() {
    for package in $PACKAGES; do
        dpkg-query --show --showformat '${db:Status-Status}\n' "$package" 2>/dev/null |
            grep -qx installed || echo "$package"
    done
}

[ -n "$(missing)" ] || exit 0
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root="sudo"
else
    echo "the tests need these packages, install them as root:" $(missing) >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
$as_root dpkg --add-architecture arm64
$as_root apt-get update --quiet=2
# shellcheck disable=SC2046
$as_root apt-get install --quiet=2 --yes --no-install-recommends $(missing) >/dev/null
