#!/bin/sh
# Brings XNNPACK for arm64 into a folder, to compile against and to copy to a board:
#   arm64-xnnpack.sh FOLDER
# Debian 12's packages for two architectures cannot be installed side by side, so they are unpacked.
set -eu
folder=$1
mkdir -p "$folder"
cd "$folder"
[ ! -e usr/lib/aarch64-linux-gnu/libXNNPACK.so ] || exit 0
apt-get download --quiet=2 libcpuinfo0:arm64 libpthreadpool-dev:arm64 libpthreadpool0:arm64 \
    libxnnpack-dev:arm64 libxnnpack0:arm64
for package in *_arm64.deb; do
    dpkg-deb --extract "$package" .
    rm "$package"
done
