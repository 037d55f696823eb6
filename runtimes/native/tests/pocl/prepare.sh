#!/bin/sh
# Gets what runs OpenCL kernels on an emulated CPU (pocl for arm64, 55 MB) into a folder, installing nothing,
# and writes FOLDER/run, which starts a program with it. For Debian 12; after tests/packages.sh.
set -eu
here=$(dirname "$(readlink -f "$0")")
mkdir -p "$1/packages" "$1/front"
folder=$(readlink -f "$1")
libraries=$folder/root/usr/lib/aarch64-linux-gnu

if [ ! -e "$folder/root" ]; then
    cd "$folder/packages"
    apt-get download --quiet=2 libpocl2-common $(printf '%s:arm64 ' \
        libbsd0 libcap2 libclang-cpp15 libclang-common-15-dev libedit2 libffi8 libhwloc15 libicu72 libllvm15 \
        liblzma5 libmd0 libpocl2 libtinfo6 libudev1 libxml2 libz3-4 ocl-icd-libopencl1 pocl-opencl-icd zlib1g)
    for package in *.deb; do
        dpkg-deb --extract "$package" "$folder/root"
    done
fi
aarch64-linux-gnu-gcc -std=gnu11 -Wall -Wextra -Werror -O1 -fPIC -shared "$here/libOpenCL.c" \
    -o "$folder/front/libOpenCL.so" -Wl,--no-as-needed "-L$libraries" -l:libOpenCL.so.1 -ldl

cat >"$folder/run" <<END
#!/bin/sh
exec qemu-aarch64-static -L "$folder/root" \\
    -E "LD_LIBRARY_PATH=$folder/front:$libraries:$folder/root/lib/aarch64-linux-gnu" \\
    -E "OCL_ICD_VENDORS=$folder/root/etc/OpenCL/vendors" \\
    -E "POCL_CACHE_DIR=$folder/kernels" -E POCL_DEVICES=basic "\$@"
END
chmod +x "$folder/run"
