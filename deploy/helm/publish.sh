#!/usr/bin/env bash
# publish.sh VERSION REGISTRY/PATH [FOLDER]: packages the chart as that version, and pushes it as an
# OCI artifact; beside it, as the tag artifacthub.io, what Artifact Hub reads of the repository. The
# release workflow runs it, and the tests against a registry of their own (PLAIN_HTTP=1).
set -euo pipefail
version=$1 where=$2
mkdir -p "${3:-dist}"
out=$(cd "${3:-dist}" && pwd)
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -rL tcpdiag "$work"
sed -i "s|image: tcpdiag/tcpdiag:.*|image: tcpdiag/tcpdiag:$version|" "$work/tcpdiag/Chart.yaml" # as Artifact Hub shows it
helm package "$work/tcpdiag" --version "$version" --app-version "$version" --destination "$out"
helm push ${PLAIN_HTTP:+--plain-http} "$out/tcpdiag-$version.tgz" "oci://$where" 2>&1 | tee "$out/chart.txt"
${ORAS:-go run oras.land/oras/cmd/oras@v1.3.6} push ${PLAIN_HTTP:+--plain-http} "$where/tcpdiag:artifacthub.io" \
	--config /dev/null:application/vnd.cncf.artifacthub.config.v1+yaml \
	artifacthub-repo.yml:application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml
