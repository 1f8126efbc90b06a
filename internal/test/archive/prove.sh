#!/usr/bin/env bash
# Incidents into real servers: an OpenTelemetry Collector, rclone's S3 server, Azurite. The first
# build takes some minutes. TCPDIAG_OUTAGE=10m has them away for that long.
set -euo pipefail
cd "$(dirname "$0")"
top=$(cd ../../.. && pwd)
to=$top/.cache/archive
mkdir -p "$to"
go build -o "$to/collector" ./collector
(cd s3 && go build -o "$to/s3" .)
(cd "$top" && go build -o "$to/tcpdiag" ./cmd/tcpdiag)
[ -e "$to/node_modules/azurite" ] || npm install --silent --no-audit --no-fund --prefix "$to" azurite@3.37.0 >/dev/null
cd "$top/cmd/tcpdiag-archive"
TCPDIAG_ARCHIVE_STACK=$to go test -count=1 -v -timeout 40m -run '^TestStack' "$@" .
