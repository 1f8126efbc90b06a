#!/bin/bash
# The agent's page in every status, on a desktop and on a phone, light and dark, in a real Chromium, and the reports of
# what it recorded meanwhile: the pictures of docs/page.md and docs/incidents.md. Root (a network namespace of its own),
# seven minutes.
#   pages.sh FOLDER [PROGRAM]
set -euo pipefail
out=$(realpath -m "$1") program=$(realpath "${2:-bin/tcpdiag}")
cd "$(dirname "$0")/../../.."
if [ -z "${PAGES_INSIDE:-}" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	mkdir -p "$out"
	go build -o "$work/demo-server" ./internal/test/picture/servers
	(cd internal/test/browser && go build -o "$work/shoot" ./shoot)
	PAGES_INSIDE=$work unshare -n "$0" "$out" "$program"
	exit
fi
work=$PAGES_INSIDE agents=()
ip link set lo up
mkfifo "$work/alive" "$work/files"
"$work/demo-server" <"$work/alive" 8>&- 9>&- & servers=$!
"$work/demo-server" calm <"$work/alive" 8>&- 9>&- & calm=$!
(ulimit -n 22; exec "$work/demo-server" files) <"$work/files" 8>&- 9>&- & files=$!
exec 9>"$work/alive" 8>"$work/files"
sleep 1
# agent PORT FLAGS: on a port of its own
agent() {
	mkdir "$work/$1"
	"$program" agent --web.listen-address "127.0.0.1:$1" --incident-dir "$work/$1" "${@:2}" 8>&- 9>&- 2>"$work/agent-$1.log" & agents+=($!)
}
limits="--max-connections 20"
agent 10881 --port 8081 --max-threads 4 $limits
agent 10883 --port 8083 --max-threads 10 $limits
agent 10884 --port 8084 --max-threads 4 $limits
agent 10885 --all --max-threads 4 $limits
ln -f "$work/demo-server" "$work/clients"
"$work/clients" clients <"$work/alive" 8>&- 9>&- & clients=$!
end() {
	exec 9>&- 8>&-
	[ ${#agents[@]} = 0 ] || kill "${agents[@]}" || true
	wait "$servers" "$calm" "$files" "$clients" "${agents[@]}" || true
}
trap end EXIT
sleep 240
page() { "$work/shoot" "http://127.0.0.1:$1/" "$out/page-$2"; }
page 10881 losing
page 10883 warning
page 10884 healthy
page 10885 thirty
exec 8>&-
sleep 25
page 10883 down
kill "${agents[@]}"
wait "${agents[@]}" || true
agents=()
report() {
	"$program" report "$(ls "$work/$1"/*.tcpdiag | tail -1)" -o "$work/$2.html"
	"$work/shoot" "file://$work/$2.html" "$out/report-$2" desktop-light desktop-dark phone-light
}
report 10881 losing
report 10883 down
