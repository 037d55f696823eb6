#!/bin/sh
# Installs what tests of the runner need, on Debian 12 or the like; does nothing where all is there.
#   packages.sh         for `make test-armcl`: the library for arm64, a cross compiler, an emulator
#   packages.sh native  for `make test-native`: what builds the runner for this machine
set -eu

PACKAGES="cmake g++ make nlohmann-json3-dev"
if [ "${1:-}" = native ]; then
    PACKAGES="$PACKAGES libpthreadpool-dev libxnnpack-dev"
else
    PACKAGES="$PACKAGES g++-aarch64-linux-gnu libarm-compute-dev:arm64 qemu-user-static"
fi

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
    echo "the tests of the runner need these packages, install them as root:" $(missing) >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
$as_root dpkg --add-architecture arm64
$as_root apt-get update --quiet=2
# shellcheck disable=SC2046
$as_root apt-get install --quiet=2 --yes --no-install-recommends $(missing) >/dev/null
