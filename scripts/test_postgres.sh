#!/usr/bin/env bash
# PostgreSQL's own regression and isolation suites, once on heap tables and once on cass tables, on a server of its
# own; then every difference between the two, with the rule that explains it, or as a failure.
# pg_test/postgres/README.md says how to read the result.
#
#   test_postgres.sh                    all three
#   test_postgres.sh regress [NAME...]  one of them, or some files of it (with the files they need before them)
#   test_postgres.sh regress-with-heaps [NAME...]
#   test_postgres.sh isolation [NAME...]
#   test_postgres.sh compare            judges the last run's output anew
#   test_postgres.sh clean              removes the server's data and the output
#   test_postgres.sh fresh-server       an empty server in place of the last one (main.py calls this)
#
# CASS_SUITES_PORT sets the port (28817).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/postgres_source.sh
. "$(dirname "$0")/postgres_source.sh"

CLUSTER_PORT=${CASS_SUITES_PORT:-28817}

# The C functions that the regression suite calls, and the modules it takes from contrib, in one folder.
build_regress_library() {
  local folder=$1 pkglibdir
  pkglibdir=$("$CASS_PGBIN/pg_config" --pkglibdir)
  mkdir -p "$folder"
  ln -sf "$pkglibdir/refint.so" "$pkglibdir/autoinc.so" "$folder/"
  [ "$folder/regress.so" -nt "$POSTGRES_SOURCE/src/test/regress/regress.c" ] ||
    gcc -shared -fPIC -O1 -w -I"$("$CASS_PGBIN/pg_config" --includedir-server)" \
      -o "$folder/regress.so" "$POSTGRES_SOURCE/src/test/regress/regress.c"
}

fresh_server() {
  cluster_stop
  rm -rf "$CLUSTER_DIR/data" "$CLUSTER_DIR/log"
  cluster_create "max_prepared_transactions = 10" "fsync = off" "max_wal_size = '4GB'" \
    "log_error_verbosity = verbose" "log_line_prefix = '%m [%p] %q%a '"
  cluster_start
}

judge() { PYTHONPATH=$CASS_ROOT/pg_test/postgres python3 "$CASS_ROOT/pg_test/postgres/main.py" "$@"; }

run() {
  say "Building cass"
  [ -n "${CASS_SUITES_NO_BUILD:-}" ] || install_library dev
  fetch_postgres_source
  build_regress_library "$SUITES/lib"
  say "Running on a server on port $CLUSTER_PORT"
  trap cluster_stop EXIT
  judge --work "$SUITES" --source "$POSTGRES_SOURCE" --port "$CLUSTER_PORT" --sockets "$SOCKET_DIR" \
    --bin "$CASS_PGBIN" --server-log "$CLUSTER_DIR/log" --fresh-server "$CASS_ROOT/scripts/test_postgres.sh fresh-server" "$@"
}

case "${1:-all}" in
  all | regress | regress-with-heaps | isolation) "$CASS_ROOT/scripts/setup.sh" ;;
esac
choose_places
SUITES=$CASS_WORK/postgres-suites
CLUSTER_DIR=$SUITES/server
mkdir -p "$SUITES"
case "${1:-all}" in
  all | regress | regress-with-heaps | isolation) run "$@" ;;
  compare)
    fetch_postgres_source
    judge --work "$SUITES" --source "$POSTGRES_SOURCE" "$@"
    ;;
  fresh-server) fresh_server ;;
  clean)
    cluster_stop
    rm -rf "$SUITES"
    ;;
  *) die "unknown: $1 (regress, regress-with-heaps, isolation, compare, clean)" ;;
esac
