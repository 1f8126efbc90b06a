#!/bin/bash
# Every alert as a phone shows it, a picture for each file of the rules' tests, light and dark: the
# texts that promtool has compared with what Prometheus makes of the rules. Chromium, some seconds.
# With what `make prove PROOF=alerts` left in .cache/alerts.json: as a receiver got them.
#   alerts.sh FOLDER [NOTIFICATIONS.json]
set -euo pipefail
out=$(realpath -m "$1")
shift
cd "$(dirname "$0")/../../.."
mkdir -p "$out"
for file in deploy/prometheus/tests/*.test.yml .cache/alerts.json "$@"; do
	[ -e "$file" ] || continue
	name=$(basename "$file" .test.yml)
	name=${name%.json}
	go run ./internal/test/observability/phone "$file" >"$out/$name.html"
	if ! grep -q '<article>' "$out/$name.html"; then
		rm "$out/$name.html"
		continue
	fi
	(cd internal/test/browser && go run ./shoot "file://$out/$name.html" "$out/$name" phone-light phone-dark)
done
