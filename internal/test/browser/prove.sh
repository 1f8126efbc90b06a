#!/bin/bash
# The agent's page and the documentation's site in a real Chromium: axe-core by npm, the site by make, then the tests.
# Without npm the tests of contrast say that they are skipped.
set -euo pipefail
cd "$(dirname "$0")"
top=$(cd ../../.. && pwd)
if [ ! -e "$top/.cache/browser/node_modules/axe-core/axe.min.js" ] && command -v npm >/dev/null; then
	npm install --silent --no-audit --no-fund --prefix "$top/.cache/browser" axe-core@4.10.3 >/dev/null || true
fi
make -s -C "$top" site
go vet . ./shoot
go test -count=1 -v -timeout 20m "$@" .
lint=$top/.cache/bin/golangci-lint-v2.15.0
[ ! -x "$lint" ] || { "$lint" run --allow-parallel-runners . && "$lint" fmt --diff .; }
