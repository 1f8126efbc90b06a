#!/bin/bash
# The pictures of the dashboards: the page that draws them, of Grafana's components by npm; then the test, which has
# servers in every state and takes them.
set -euo pipefail
cd "$(dirname "$0")"
out=$(cd ../../../.. && pwd)/.cache/dashboards
mkdir -p "$out/site/public/build"
if ! cmp -s package-lock.json "$out/fetched"; then
	cp package.json package-lock.json "$out"
	(cd "$out" && npm ci --loglevel=error --no-audit --no-fund --ignore-scripts)
	cp package-lock.json "$out/fetched"
fi
cp ./*.js ./*.jsx "$out"
cp index.html "$out/site"
rm -rf "$out/site/public/build/img"
cp -r "$out/node_modules/@grafana/ui/dist/public/img" "$out/site/public/build/img"
(cd "$out" && node_modules/.bin/esbuild page.jsx --bundle --format=esm --outfile=site/page.js --jsx=automatic --minify --log-level=warning \
	--loader:.woff2=file --loader:.woff=empty --loader:.ttf=empty --define:process.env.NODE_ENV='"production"')
(cd ../../browser && go build -o "$out/shoot" ./shoot)
cd ..
go test -count=1 -v -timeout 40m -run '^TestFullDashboardPictures$' "$@" .
