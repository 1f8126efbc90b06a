#!/bin/bash
# The page in a real Chromium: axe-core by npm, then the tests. Without npm the test of
# contrast says that it is skipped.
set -euo pipefail
cd "$(dirname "$0")"
top=$(cd ../../.. && pwd)
if [ ! -e "$top/.cache/browser/node_modules/axe-core/axe.min.js" ] && command -v npm >/dev/null; then
	npm install --silent --no-audit --no-fund --prefix "$top/.cache/browser" axe-core@4.10.3 >/dev/null || true
fi
go vet .
go test -count=1 -v -timeout 20m "$@" .
lint=$top/.cache/bin/golangci-lint-v2.15.0
[ ! -x "$lint" ] || { "$lint" run --allow-parallel-runners . && "$lint" fmt --diff .; }
