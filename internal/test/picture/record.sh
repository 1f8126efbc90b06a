#!/bin/bash
# The README's moving picture: tcpdiag watch on a terminal of 80 by 24, from ok to losing
# clients and back, of the embedded server under its burst. Needs tmux, some half a minute.
set -euo pipefail
cd "$(dirname "$0")/../../.."
program=$PWD/bin/tcpdiag out=${1:-docs/pictures/watch.svg} seconds=${2:-16}
work=$(mktemp -d) session=picture$$
"$program" demo --for 28s --web.listen-address 127.0.0.1:0 >"$work/demo" & demo=$!
trap 'kill $demo 2>/dev/null || true; tmux -L $session kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
until port=$(grep -som1 -- '--port [0-9]*' "$work/demo"); do sleep .02; done
tmux -f /dev/null -L $session new-session -d -x 80 -y 24 "env TERM=xterm-256color $program watch $port --max-connections 20 --max-threads 4"
for i in $(seq -w "$seconds"); do
	sleep 1
	tmux -L $session capture-pane -e -p >"$work/frame$i"
done
go run ./internal/test/picture -columns 80 -rows 24 -every 1s -o "$out" \
	-title "tcpdiag watch: a server is ok, loses clients in a burst, and says why and what to do" "$work"/frame*
