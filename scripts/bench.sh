#!/usr/bin/env bash
# The benchmark: a release build, a server of its own, and bench/bench.py, which loads the same rows into a cass
# table and a heap table and measures both. bench/README.md says what is measured and how to set it.
#
#   bench.sh             everything; stops the server at the end
#   bench.sh clean       removes the server's data and the generated rows
#   bench.sh cold-start  restarts the server with an empty page cache (bench.py calls this)
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

export CLUSTER_PORT=${CASS_BENCH_PORT:-28816}

run() {
  say "Building cass in release mode"
  install_library release
  say "Starting a server on port $CLUSTER_PORT"
  # Checkpoints and autovacuum would fall into one measurement or another: bench.py calls both itself.
  cluster_stop
  cluster_create "shared_buffers = '2GB'" "max_wal_size = '16GB'" "checkpoint_timeout = '1h'" \
    "autovacuum = off" "jit = off"
  cluster_start
  trap cluster_stop EXIT
  cluster_has_database bench || on_cluster postgres -q -c "CREATE DATABASE bench"
  PGHOST=$SOCKET_DIR PGPORT=$CLUSTER_PORT PGDATABASE=bench BENCH_WORK=$CLUSTER_DIR/rows \
    BENCH_COLD_START="$CASS_ROOT/scripts/bench.sh cold-start" python3 "$CASS_ROOT/bench/bench.py"
}

# Exit code 3: the page cache could not be dropped.
cold_start() {
  cluster_stop
  sync
  if ! (echo 3 >/proc/sys/vm/drop_caches) 2>/dev/null; then
    cluster_start
    exit 3
  fi
  cluster_start
}

case "${1:-run}" in
  run)
    "$CASS_ROOT/scripts/setup.sh"
    choose_places
    CLUSTER_DIR=$CASS_WORK/bench
    run
    ;;
  cold-start | clean)
    choose_places
    CLUSTER_DIR=$CASS_WORK/bench
    if [ "$1" = clean ]; then
      cluster_stop
      rm -rf "$CLUSTER_DIR"
    else
      cold_start
    fi
    ;;
  *) die "unknown: $1 (run, clean, cold-start)" ;;
esac
