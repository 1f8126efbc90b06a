#!/usr/bin/env bash
# Installs a released tcpdiag for a pipeline: the archive of this machine's architecture,
# checked against the release's checksums, unpacked into a folder.
#
#   install.sh VERSION FOLDER      VERSION without the v, for example 1.0.0
#
# TCPDIAG_RELEASES is where releases are, for a mirror.
set -euo pipefail
version=${1:?"install.sh VERSION FOLDER: give a version, for example 1.0.0"}
folder=${2:?"install.sh VERSION FOLDER: give a folder"}
version=${version#v}
case $version in
*[!0-9A-Za-z.+-]* | "") echo "install.sh: the version may have letters, digits, dots, + and -" >&2; exit 2 ;;
esac
case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) echo "install.sh: there is no release for $(uname -m); build from source: go install github.com/tcpdiag/tcpdiag/cmd/tcpdiag@v$version" >&2; exit 1 ;;
esac
releases=${TCPDIAG_RELEASES:-https://github.com/tcpdiag/tcpdiag/releases/download}
archive=tcpdiag_${version}_linux_$arch.tar.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in checksums.txt "$archive"; do
  curl --fail --silent --show-error --location --retry 3 --max-time 120 --output "$work/$file" "$releases/v$version/$file"
done
(cd "$work" && grep -F "  $archive" checksums.txt | sha256sum --check --strict --quiet) || {
  echo "install.sh: $archive is not what its release says (checksums.txt)" >&2
  exit 1
}
mkdir -p "$folder"
tar -xzf "$work/$archive" -C "$folder" --strip-components=1 --no-same-owner "tcpdiag_${version}_linux_$arch/tcpdiag"
"$folder/tcpdiag" --version >/dev/null
echo "$folder/tcpdiag"
