#!/bin/sh
# As the agent's: the service is neither enabled nor started, since where to send is for the
# administrator to say first. The group is made by which it reads the agent's recordings; an
# agent that runs gives them to it when it is started again, which restarts it.
set -e
case "$1" in
  configure) [ -n "$2" ] && upgrade=yes || upgrade=no ;;
  1) upgrade=no ;;
  [2-9]*) upgrade=yes ;;
  *) exit 0 ;; # dpkg's abort-…: nothing has changed
esac
systemd-sysusers /usr/lib/sysusers.d/tcpdiag-archive.conf
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  if [ "$upgrade" = yes ]; then
    systemctl try-restart tcpdiag-archive.service || true
  else
    systemctl try-restart tcpdiag.service || true
  fi
fi
if [ "$upgrade" = no ]; then
  echo "tcpdiag-archive is installed. Say where to send in /etc/default/tcpdiag-archive, then: systemctl enable --now tcpdiag-archive"
fi
