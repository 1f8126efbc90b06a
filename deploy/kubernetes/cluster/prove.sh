#!/bin/bash
# The programs of a cluster, built in six minutes the first time, what runs in its
# pods, and the tests.
set -euo pipefail
cd "$(dirname "$0")"
top=$(cd ../../.. && pwd)
out=$top/.cache/cluster
./build.sh "$out"
[ "$(id -u)" != 0 ] || ./pods.sh "$out"
CGO_ENABLED=0 TCPDIAG_CLUSTER=$out go test -count=1 -v -timeout 60m ./...
lint=$top/.cache/bin/golangci-lint-v2.15.0
[ ! -x "$lint" ] || { "$lint" run --allow-parallel-runners ./... && "$lint" fmt --diff ./...; }
