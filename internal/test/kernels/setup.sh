#!/usr/bin/env bash
# Installs the Debian packages that `make kernels` needs, if any is missing.
set -euo pipefail

packages=()
need() { command -v "$1" >/dev/null 2>&1 || packages+=("$2"); }
need qemu-system-x86_64 qemu-system-x86
need qemu-system-aarch64 qemu-system-arm
need busybox busybox-static
need cpio cpio
need xz xz-utils
PATH="$PATH:/sbin:/usr/sbin" need depmod kmod
PATH="$PATH:/sbin:/usr/sbin" need mke2fs e2fsprogs

((${#packages[@]})) || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "missing, and not installed because this is not root on Debian: ${packages[*]}" >&2
  exit 1
fi
echo "installing: ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
