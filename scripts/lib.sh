# shellcheck shell=bash
# Shared by the scripts of this folder: places, messages, commands as another user, a private cluster.
# Sourced, never run. The caller has `set -euo pipefail`.

CASS_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# PostgreSQL 15's programs. A second copy of PostgreSQL can be named here, beside a PGRX_HOME of its own.
CASS_PGBIN=${CASS_PGBIN:-/usr/lib/postgresql/15/bin}
export CASS_PGBIN

# Where cargo-pgrx keeps which servers it knows.
PGRX_CONFIG=${PGRX_HOME:-$HOME/.pgrx}/config.toml

# The system user who runs servers: initdb and postgres refuse root.
CASS_PGUSER=postgres

say() { printf '\n== %s\n' "$*"; }
note() { printf '   %s\n' "$*"; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

as_postgres() { (cd / && runuser -u "$CASS_PGUSER" -- "$@"); }

# True if the server's user can walk into a folder, that is, each of its parents lets it through.
postgres_can_enter() { as_postgres test -x "$1"; }

# Where generated things go: builds, clusters, data sets. Inside the checkout where the server's user can reach
# it; else (a checkout under /root, say) in /var/tmp, under a name made of the checkout's path.
# Needs the server's user to exist, so it is called after set-up.
choose_places() {
  if postgres_can_enter "$CASS_ROOT"; then
    CASS_WORK=${CASS_WORK:-$CASS_ROOT/.work}
  else
    local tag
    tag=$(printf '%s' "$CASS_ROOT" | sha256sum | cut -c1-12)
    CASS_WORK=${CASS_WORK:-/var/tmp/cass-$tag}
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$CASS_WORK/target}
    note "the user $CASS_PGUSER cannot enter $CASS_ROOT: generated files go to $CASS_WORK"
  fi
  mkdir -p "$CASS_WORK"
  export CASS_WORK
}

# The library file that PostgreSQL loads.
library_file() { printf '%s/cass.so' "$("$CASS_PGBIN/pg_config" --pkglibdir)"; }
library_hash() { sha256sum "$(library_file)" | cut -d' ' -f1; }

# Gives the installed library a file of its own, apart from the one that running servers have mapped: cargo-pgrx
# copies onto the file, which would change the code under them.
detach_library() {
  local file
  file=$(library_file)
  [ ! -e "$file" ] || { cp -p "$file" "$file.new" && mv "$file.new" "$file"; }
}

# install_library release|dev: builds the extension and puts it into PostgreSQL's folders. A dev build has the points where
# tests end the server or raise an error (src/pg/injection.rs).
install_library() {
  local flags=(--features injection_points)
  [ "$1" = release ] && flags=(--release)
  # cargo-pgrx adds the feature of the version that pg_config tells.
  flags+=(--no-default-features)
  detach_library &&
    (cd "$CASS_ROOT" && cargo pgrx install --package cass --pg-config "$CASS_PGBIN/pg_config" "${flags[@]}")
}

# --- A private cluster: CLUSTER_DIR (data in CLUSTER_DIR/data) and CLUSTER_PORT are set by the caller. -------
# It listens on a Unix socket only, and lets in the system user of the same name (peer).

SOCKET_DIR=/var/run/postgresql

cluster_running() { as_postgres "$CASS_PGBIN/pg_ctl" -D "$CLUSTER_DIR/data" status >/dev/null 2>&1; }

# cluster_create 'setting = value' ...: makes the cluster if there is none, and writes its settings anew.
cluster_create() {
  install -d -o "$CASS_PGUSER" -g "$CASS_PGUSER" -m 750 "$CLUSTER_DIR"
  install -d -o "$CASS_PGUSER" -g "$CASS_PGUSER" -m 2775 "$SOCKET_DIR"
  if ! as_postgres test -s "$CLUSTER_DIR/data/PG_VERSION"; then
    rm -rf "$CLUSTER_DIR/data"
    as_postgres "$CASS_PGBIN/initdb" -D "$CLUSTER_DIR/data" --encoding=UTF8 --locale=C.UTF-8 --auth=peer >/dev/null
  fi
  {
    printf "port = %s\nlisten_addresses = ''\nunix_socket_directories = '%s'\n" "$CLUSTER_PORT" "$SOCKET_DIR"
    printf "shared_preload_libraries = 'cass'\ntimezone = 'UTC'\n"
    printf '%s\n' "$@"
  } | as_postgres tee "$CLUSTER_DIR/data/postgresql.auto.conf" >/dev/null
}

cluster_start() {
  cluster_running && return 0
  # The server outlives this script: it must not hold the script's output open.
  if ! as_postgres "$CASS_PGBIN/pg_ctl" -D "$CLUSTER_DIR/data" -l "$CLUSTER_DIR/log" -w -t 120 start >/dev/null 2>&1; then
    tail -n 20 "$CLUSTER_DIR/log" >&2 || true
    die "the server in $CLUSTER_DIR/data did not start on port $CLUSTER_PORT; its log is $CLUSTER_DIR/log"
  fi
  # The user who runs these scripts (root) becomes a superuser of the cluster, so that a plain psql gets in.
  as_postgres "$CASS_PGBIN/psql" -X -q -h "$SOCKET_DIR" -p "$CLUSTER_PORT" -d postgres -v ON_ERROR_STOP=1 \
    -v me="$(id -un)" >/dev/null <<'SQL'
SELECT format('CREATE ROLE %I SUPERUSER LOGIN', :'me')
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'me') \gexec
SQL
}

cluster_stop() {
  if cluster_running; then
    as_postgres "$CASS_PGBIN/pg_ctl" -D "$CLUSTER_DIR/data" -m fast -w stop >/dev/null
  fi
}

# psql on the private cluster: on_cluster DATABASE ARGUMENT...
on_cluster() {
  local database=$1
  shift
  "$CASS_PGBIN/psql" -X -h "$SOCKET_DIR" -p "$CLUSTER_PORT" -d "$database" -v ON_ERROR_STOP=1 "$@"
}

# cluster_has_database NAME
cluster_has_database() {
  [ "$(on_cluster postgres -At -v name="$1" <<<"SELECT 1 FROM pg_database WHERE datname = :'name'")" = 1 ]
}
