#!/bin/bash
# What tcpdiag says on a terminal in every status: each screen as text with its colours and as
# a picture, dark and light, at 80 by 24, 100 by 50 and 50 columns. One that the smallest
# terminal has no room for is a failure. Root (a network namespace of its own), some minute.
#   screens.sh FOLDER [PROGRAM]
set -euo pipefail
out=$(realpath -m "$1") program=$(realpath "${2:-bin/tcpdiag}")
cd "$(dirname "$0")/../../.."
if [ -z "${SCREENS_INSIDE:-}" ]; then
	mkdir -p "$out"
	go build -o "$out/demo-server" ./internal/test/picture/servers
	go build -o "$out/picture" ./internal/test/picture
	SCREENS_INSIDE=1 exec unshare -n "$0" "$out" "$program"
fi
ip link set lo up
mkfifo "$out/alive"
"$out/demo-server" <"$out/alive" 9>&- & server=$!
(ulimit -n 22; exec "$out/demo-server" files) <"$out/alive" 9>&- & files=$!
exec 9>"$out/alive"
sleep 1
ln -f "$out/demo-server" "$out/clients"
"$out/clients" clients <"$out/alive" 9>&- & clients=$!
trap 'exec 9>&-; wait $server $files $clients || true; rm -f "$out/alive"' EXIT
sleep 8
limits="--max-connections 20 --max-threads 4"
failed=0
tcpdiag=$(dirname "$program")/$(basename "$program")
# screen NAME COMMAND: of the lines that the smallest terminal has one is the next prompt's
screen() {
	local name=$1 size columns rows lines
	for size in 80x24 100x50 50x30; do
		columns=${size%x*} rows=${size#*x}
		TERM=xterm-256color script -qec "stty cols $columns rows $rows; $2" /dev/null </dev/null | tr -d '\r' >"$out/$name-$size.txt" || true
		lines=$(wc -l <"$out/$name-$size.txt")
		if [ "$size" = 80x24 ] && [ "$lines" -ge "$rows" ]; then
			echo "$name: $lines lines do not fit $size"
			failed=1
		fi
		"$out/picture" -columns "$columns" -title "${2//$tcpdiag/tcpdiag}" -o "$out/$name-$size-dark.svg" "$out/$name-$size.txt"
		"$out/picture" -columns "$columns" -light -title "${2//$tcpdiag/tcpdiag}" -o "$out/$name-$size-light.svg" "$out/$name-$size.txt"
	done
}
screen losing "$tcpdiag snapshot 8081 --interval 4s $limits"
screen saturated "$tcpdiag snapshot 8082 $limits"
screen warning "$tcpdiag snapshot 8083 --max-connections 20 --max-threads 10"
screen ok "$tcpdiag snapshot 8084 $limits"
screen down "$tcpdiag snapshot 8085"
screen unknown "$tcpdiag snapshot 8086"
install -m 755 "$program" "$out/tcpdiag"
screen no-rights "setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs $out/tcpdiag snapshot 8081 $limits"
screen several "$tcpdiag snapshot 8081 8082 8083 8084 8085 $limits"
screen explain "$tcpdiag explain max_threads"
for cause in $("$program" explain | sed -n 's|^ \([a-z_]*\)  .*|\1|p'); do
	lines=$("$program" explain "$cause" | wc -l)
	[ "$lines" -lt 24 ] || { echo "explain $cause: $lines lines"; failed=1; }
done
exit $failed
