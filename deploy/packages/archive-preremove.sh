#!/bin/sh
# dpkg: "remove" or "upgrade VERSION"; rpm: how many versions stay, 0 if none.
set -e
case "$1" in
  remove | 0) ;;
  *) exit 0 ;;
esac
if command -v systemctl >/dev/null 2>&1; then
  systemctl --no-reload disable tcpdiag-archive.service || true
  [ ! -d /run/systemd/system ] || systemctl stop tcpdiag-archive.service || true
fi
