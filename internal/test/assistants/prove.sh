#!/bin/bash
# Two clients of the Model Context Protocol that others have written, from PyPI and npm,
# then the tests. One that cannot be fetched is skipped, and its test says so.
set -euo pipefail
cd "$(dirname "$0")"
clients=$(cd ../../.. && pwd)/.cache/assistants
mkdir -p "$clients"
if [ ! -e "$clients/python/fetched" ]; then
	python3 -m venv "$clients/python" &&
		"$clients/python/bin/pip" install -q mcp==2.3.0 jsonschema==4.26.0 &&
		touch "$clients/python/fetched" || true
fi
if [ ! -e "$clients/node_modules/.bin/mcp-inspector" ] && command -v npm >/dev/null; then
	npm install --silent --no-audit --no-fund --prefix "$clients" @modelcontextprotocol/inspector@2.12.0 >/dev/null || true
fi
go test -count=1 -v -timeout 20m "$@" .
