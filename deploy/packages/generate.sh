#!/usr/bin/env bash
# What the packages carry besides the program, written by the program itself:
# shell completions and manual pages, the same bytes for the same commit.
# goreleaser runs it before it packs (.goreleaser.yaml).
set -euo pipefail
cd "$(dirname "$0")/../.."
out=.cache/package
rm -rf "$out"
mkdir -p "$out/completions" "$out/man"
make --silent --no-print-directory build
for shell in bash zsh fish; do
  bin/tcpdiag completion "$shell" >"$out/completions/tcpdiag.$shell"
done
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0) bin/tcpdiag man "$out/man"
gzip -9n "$out"/man/*
