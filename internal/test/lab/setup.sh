#!/usr/bin/env bash
# Installs the Debian packages that the tests need, if any is missing:
# promtool, a JDK with Maven for the real Tomcats, iproute2 for namespaces.
# Prometheus's own service, should the package start one, is left off.
set -euo pipefail

packages=()
need() { command -v "$1" >/dev/null 2>&1 || packages+=("$2"); }
need promtool prometheus
need prometheus-alertmanager prometheus-alertmanager
need ip iproute2
need ss iproute2
need javac openjdk-17-jdk-headless
need mvn maven
need gcc gcc
need systemd-analyze systemd
need rpm rpm

((${#packages[@]})) || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "missing, and not installed because this is not root on Debian: ${packages[*]}" >&2
  echo "the tests that need them say so" >&2
  exit 0
fi
echo "installing: ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then # no service is to start
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
