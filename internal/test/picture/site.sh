#!/bin/bash
# The documentation's site as `make site` builds it, in a real Chromium: the first screen of its pages, and what its search
# finds. The pictures of CONTRIBUTING.md.
#   site.sh FOLDER
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/../../.."
site=$PWD/dist/site
cd internal/test/browser
shoot() { go run ./shoot -site "$site" "$@"; }
shoot / "$out/site-start" desktop-light desktop-dark phone-light phone-dark
shoot /docs/troubleshooting/ "$out/site-page" wide-light phone-dark
shoot -ask "what does stalled mean" / "$out/site-search" desktop-light phone-dark
