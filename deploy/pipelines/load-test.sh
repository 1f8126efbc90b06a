#!/usr/bin/env bash
# One load test of a pipeline under tcpdiag run, by environment variables (action.yml, gitlab.yml):
#
#   load-test.sh TCPDIAG FOLDER    the program, and where its results go
#
# Its exit code is that of tcpdiag run.
set -euo pipefail
program=${1:?"load-test.sh TCPDIAG FOLDER"}
folder=${2:?"load-test.sh TCPDIAG FOLDER"}
command=${TCPDIAG_COMMAND:?"give the command of the load test in TCPDIAG_COMMAND"}
flags=(--quiet --json "$folder/tcpdiag.json" --junit "$folder/tcpdiag.xml" --markdown "$folder/tcpdiag.md")
[ -z "${TCPDIAG_PORT:-}" ] || flags+=(--port "$TCPDIAG_PORT")
[ -z "${TCPDIAG_FAIL_ON:-}" ] || flags+=(--fail-on "$TCPDIAG_FAIL_ON")
[ -z "${TCPDIAG_SLO:-}" ] || flags+=(--slo "$TCPDIAG_SLO")
[ -z "${TCPDIAG_BASELINE:-}" ] || flags+=(--baseline "$TCPDIAG_BASELINE")
as=() back=()
if [ "${TCPDIAG_SUDO:-false}" = true ] && [ "$(id -u)" != 0 ] && sudo -n true 2>/dev/null; then
  as=(sudo -n --preserve-env)
  back=(sudo -n --preserve-env -u "#$(id -u)" --) # the load test is not root's
fi
mkdir -p "$folder"
code=0
"${as[@]}" "$program" run "${flags[@]}" -- "${back[@]}" bash -euo pipefail -c "$command" || code=$?
if [ -s "$folder/tcpdiag.md" ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  cat "$folder/tcpdiag.md" >>"$GITHUB_STEP_SUMMARY"
fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  printf 'json=%s\njunit=%s\n' "$folder/tcpdiag.json" "$folder/tcpdiag.xml" >>"$GITHUB_OUTPUT"
fi
exit "$code"
