#!/usr/bin/env bash
# All checks of the project, cheap ones first, up to the first failure; then a summary.
#
#   PG=16 test.sh   on PostgreSQL 16 (or 18): what its version can change
#   PG=16 test.sh in-server   of that, the lints, the tests inside a server and the upgrade from 15
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/versions.sh
. "$(dirname "$0")/versions.sh"

"$CASS_ROOT/scripts/setup.sh"
choose_places
PG=${PG:-15}
PROGRAMS_OF_15=$CASS_PGBIN
use_version "$PG"
FEATURES=(--no-default-features --features "pg$PG")
cd "$CASS_ROOT"

LOG_DIR=$CASS_WORK/test-$PG
mkdir -p "$LOG_DIR"
SUMMARY=()
PASSED=0
FAILED=0

summarise() {
  say "Summary"
  printf '   %s\n' "${SUMMARY[@]}"
  printf '\n%s passed, %s failed\n' "$PASSED" "$FAILED"
}

# Sums the counts ("passed", "failed") of the closing lines that cargo's test runner printed into a log.
count() { awk -v what="$1" '/^test result:/ { for (i = 2; i <= NF; i++) if ($i ~ "^" what) n += $(i - 1) } END { print n + 0 }' "$2"; }

# step NAME COMMAND...: runs a step, keeps its output in a log as well, and closes with the summary if it fails.
step() {
  local name=$1 started=$SECONDS log passed failed verdict=ok
  shift
  log=$LOG_DIR/$(tr -c 'a-z0-9\n' '-' <<<"${name,,}").log
  say "$name"
  note "$*"
  "$@" 2>&1 </dev/null | tee "$log" || verdict=FAILED
  passed=$(count passed "$log")
  failed=$(count failed "$log")
  # A failing step counts as one even where its tool counts nothing.
  [ "$verdict" = ok ] || [ "$failed" -gt 0 ] || failed=1
  PASSED=$((PASSED + passed))
  FAILED=$((FAILED + failed))
  SUMMARY+=("$(printf '%-6s %5ds  %-42s %s' "$verdict" $((SECONDS - started)) "$name" \
    "$([ $((passed + failed)) -gt 0 ] && printf '%d passed, %d failed' "$passed" "$failed")")")
  [ "$verdict" = ok ] || {
    summarise
    exit 1
  }
}

# The steps below run where `set -e` has no effect: their commands are joined by && or return.

# The tests inside a server. The cluster's folder is also its socket's, so its path must be short (107 bytes)
# and one that the server's user may write.
tests_in_server() {
  local place
  place=$(as_postgres mktemp -d /var/tmp/cass-pgrx.XXXXXX) || return 1
  detach_library || return 1
  local verdict=0
  cargo pgrx test "pg$PG" --no-default-features --package cass --runas "$CASS_PGUSER" --pgdata "$place" || verdict=$?
  rm -rf "$place"
  return $verdict
}

# tests_over_servers [OPTION OF CARGO TEST]...: with a later version than 15 there are two servers, for pg_upgrade.
tests_over_servers() {
  if [ "$PG" != 15 ]; then
    export CASS_OLD_PGBIN=$PROGRAMS_OF_15
    (CASS_PGBIN=$CASS_OLD_PGBIN install_library dev) || return 1
  fi
  install_library dev && cargo test --package cass-server-tests "$@"
}

lint() { cargo clippy "$@" -- -D warnings; }

# What no version of PostgreSQL changes is looked at with 15.
if [ "$PG" = 15 ]; then
  step "Formatting" cargo fmt --all --check
  step "Lints" lint --workspace --all-targets
  step "Storage crate" cargo test --package cass-storage
else
  step "Lints" lint --package cass --all-targets "${FEATURES[@]}"
fi
step "Lints with injection points" lint --package cass "${FEATURES[@]},injection_points"
step "Tests inside a server" tests_in_server
if [ "${1:-}" = in-server ]; then
  step "Upgrade from 15" tests_over_servers --test upgrade
else
  step "Tests with whole servers" tests_over_servers
fi
summarise
