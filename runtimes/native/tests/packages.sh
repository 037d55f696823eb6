#!/bin/sh
# Installs what `make test-armcl` needs, on Debian 12 or the like: the library for arm64, a cross
# compiler, an emulator. Does nothing where all is there.
set -eu

PACKAGES="cmake g++ g++-aarch64-linux-gnu libarm-compute-dev:arm64 make nlohmann-json3-dev qemu-user-static"

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
