#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of Debian 12 or 13 that Sluice needs. Names every one of them, with what it is for.
#
#   deploy/install-deps.sh [--build] [--test] [--lint] [--windows] [--containers] [--vm] [--slurm]
#                          [--all] [--list]
#
#   --build   to build and run Sluice (the default)
#   --test    what the tests and benchmarks need besides: the real clients, CLBlast, bubblewrap
#   --lint    clang's tools: format, tidy, fuzzer and sanitizer runtimes (14 on Debian 12, 19 on 13)
#   --windows the cross-build for Windows (deploy/windows); with --test, Wine and what its tests need, too.
#             Not part of --all
#   --containers   podman, Flatpak and what tests/fresh/containers.py and flatpak.py need with them; not
#             part of --all
#   --vm      what tests/vm needs: an emulator, and what makes its disk; not part of --all
#   --slurm   Slurm's headers, for deploy/slurm, and the cluster that tests/slurm runs; not part of --all
#   --all     build, test and lint
#   --list    print the packages and install nothing
#
# Works as root or through sudo; installs only what is missing and is quick when nothing is.
set -euo pipefail

build_packages=(
  ca-certificates
  cmake ninja-build g++ pkg-config ccache                   # the build
  libgrpc++-dev libgrpc-dev protobuf-compiler-grpc          # control channel and network transport
  libprotobuf-dev protobuf-compiler libabsl-dev             # the command stream
  libspdlog-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev
  libxxhash-dev                                             # names program binaries; header only
  libseccomp-dev                                            # which system calls workers may make
  libssl-dev openssl                                        # TLS; certificates for a first try
  opencl-headers
  libegl-dev libgl-dev                                      # headers only: GL is the application's
  ocl-icd-libopencl1                                        # the loader that applications and workers use
  libvulkan-dev                                             # headers: exportable memory; opened at run time if it is there
  pocl-opencl-icd                                           # the embedded default driver: the CPU
  clinfo ocl-icd-opencl-dev                                 # what quickstart runs, and links its own program to
  scdoc                                                     # man pages
)
test_packages=(
  libgtest-dev
  clpeak hashcat darktable python3-pyopencl python3-numpy   # real clients
  libclblast-dev libviennacl-dev                            # libraries that real clients are built on
  python3-opengl                                            # with pyopencl: a client that shares GL objects
  android-libcutils-dev                                     # real native handles for the gralloc tests
  netpbm                                                    # makes and reads the test picture
  xz-utils                                                  # what deploy/portable/build.sh keeps
  bubblewrap                                                # the sandboxed client
  libvulkan1 mesa-vulkan-drivers                            # exportable memory without a GPU: lavapipe
  libegl-dev libgl-dev libopengl-dev libegl1 libgl1-mesa-dri  # OpenGL without a display: llvmpipe
  python3
  systemd                                                   # systemd-analyze verifies the units
  debootstrap                                               # minimal systems to test in (tests/fresh)
  abigail-tools                                             # abidiff: what has changed of libsluice (tests/compatibility)
  libgles-dev                                               # a program that renders with OpenGL ES
  libegl1 libgl1 libgles2 libgl1-mesa-dri libglx-mesa0 libegl-mesa0 libx11-dev xvfb  # GL without a GPU
  iperf3 iproute2                                           # shaped links in the benchmark
)
windows_packages=(
  g++-mingw-w64-x86-64-posix libz-mingw-w64-dev              # the compiler; gRPC's zlib
  libfmt-dev                                                # headers
  nasm python3-six unicode-data dpkg-dev                    # deploy/windows/make-deps.sh
  wixl msitools                                             # the installer
)
windows_test_packages=(googletest wine wine64)              # sources that are built for Windows; what runs the tests
container_packages=(
  podman crun uidmap slirp4netns                            # as root and rootless
  flatpak bubblewrap dbus-daemon                            # flatpak asks a bus about parental controls
  busybox-static debootstrap clinfo hashcat                 # what images are made of
)
# What podman 5 makes networks with.
! grep -qs '^VERSION_ID="13"' /etc/os-release || container_packages+=(nftables passt)
# The newest clang of the release that is ours to name; the form of the code is that of clang-format 14.
clang=14
! grep -qs '^VERSION_ID="13"' /etc/os-release || clang=19
vm_packages=(qemu-system-x86 debootstrap e2fsprogs dpkg-dev)  # tests/vm: a machine with systemd
slurm_packages=(
  libslurm-dev                                              # headers for the plugin
  slurmctld slurmd slurm-client munge                       # a controller, nodes, srun and who vouches for users
  iproute2 util-linux openssl
)
lint_packages=("clang-$clang" "clang-format-$clang" "clang-tidy-$clang" "libclang-rt-$clang-dev" "llvm-$clang"
  git)  # git lists the files; llvm names the places in reports of sanitizers

usage() {
  sed -n '3,20s/^# \{0,1\}//p' "$0"
}

packages=()
list_only=no
windows=no
tests=no
for option in "$@"; do
  case $option in
    --build) packages+=("${build_packages[@]}") ;;
    --test) tests=yes; packages+=("${build_packages[@]}" "${test_packages[@]}") ;;
    --containers) packages+=("${build_packages[@]}" "${test_packages[@]}" "${container_packages[@]}") ;;
    --lint) packages+=("${lint_packages[@]}") ;;
    --windows) windows=yes; packages+=("${build_packages[@]}" "${windows_packages[@]}") ;;
    --vm) packages+=("${build_packages[@]}" "${test_packages[@]}" "${vm_packages[@]}") ;;
    --slurm) packages+=("${build_packages[@]}" "${test_packages[@]}" "${slurm_packages[@]}") ;;
    --all) tests=yes; packages+=("${build_packages[@]}" "${test_packages[@]}" "${lint_packages[@]}") ;;
    --list) list_only=yes ;;
    -h | --help) usage; exit 0 ;;
    *) echo "install-deps.sh: unknown option '$option'" >&2; usage >&2; exit 2 ;;
  esac
done
[ "${#packages[@]}" -gt 0 ] || packages=("${build_packages[@]}")
[ "$windows $tests" != "yes yes" ] || packages+=("${windows_test_packages[@]}")
if [ "$list_only" = yes ]; then
  printf '%s\n' "${packages[@]}" | sort -u
  exit 0
fi
command -v apt-get >/dev/null || {
  echo "install-deps.sh: this is not a Debian system (no apt-get); install the equivalents of:" >&2
  printf '%s\n' "${packages[@]}" | sort -u >&2
  exit 1
}

# Only what is missing: `installed` is the one state that counts.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
mapfile -t missing < <(comm -23 <(printf '%s\n' "${packages[@]}" | sort -u) <(sort -u <<<"$installed"))
if [ "${#missing[@]}" -eq 0 ]; then
  echo "install-deps.sh: everything is installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "install-deps.sh: run me as root to install: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}
echo "install-deps.sh: installing ${missing[*]}"
# The package lists may be missing or old: refresh them when they cannot satisfy the request.
if ! apt-cache show "${missing[@]}" >/dev/null 2>&1 || ! install; then
  "${as_root[@]}" apt-get update -q
  install
fi
