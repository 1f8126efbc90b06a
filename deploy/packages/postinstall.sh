#!/bin/sh
# dpkg calls it with "configure" and the version before, rpm with the number of
# versions installed. The service is neither enabled nor started: what it is to
# watch, and with which privileges, is for the administrator to say first. One
# that runs is restarted with the new version.
set -e
case "$1" in
  configure) [ -n "$2" ] && upgrade=yes || upgrade=no ;;
  1) upgrade=no ;;
  [2-9]*) upgrade=yes ;;
  *) exit 0 ;; # dpkg's abort-…: nothing has changed
esac
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  [ "$upgrade" = no ] || systemctl try-restart tcpdiag.service || true
fi
if [ "$upgrade" = no ]; then
  echo "tcpdiag is installed. To run it always: systemctl enable --now tcpdiag"
fi
