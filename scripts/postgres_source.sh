# shellcheck shell=bash
# The source package of the installed PostgreSQL 15: fetched once, kept in the work folder, outside git.
# Sourced, never run. The caller has sourced lib.sh and called choose_places.

# The version of Debian's package that the programs in CASS_PGBIN were built from, "15.20-0+deb12u1".
server_package_version() {
  local version
  version=$("$CASS_PGBIN/pg_config" --version | sed -n 's/.*(Debian \(.*\))$/\1/p')
  [ -n "$version" ] || die "$CASS_PGBIN/pg_config names no Debian package: $("$CASS_PGBIN/pg_config" --version)"
  printf '%s' "$version"
}

# apt_with_sources FOLDER COMMAND ARGUMENT...: apt with a configuration of its own, in which source packages are
# enabled, so that the machine's configuration stays as it is.
apt_with_sources() {
  local folder=$1 command=$2
  shift 2
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/parts"
  cat >"$folder/debian.sources" <<'SOURCES'
Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb-src
URIs: http://deb.debian.org/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
  "$command" -q -o Dir::Etc::sourcelist="$folder/debian.sources" -o Dir::Etc::sourceparts="$folder/parts" \
    -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder/cache" -o APT::Sandbox::User=root "$@"
}

# The versions of the source that the archive lists: the server's own, then the others, newest first. The suites of
# one minor release run on another, and both kinds of table are compared on the same one.
candidate_versions() {
  printf '%s\n' "$1"
  apt_with_sources "$2" apt-cache showsrc --only-source postgresql-15 | sed -n 's/^Version: //p' | sort -rVu | grep -vxF "$1" || true
}

# Fetches and unpacks the source, unless it is there, and sets POSTGRES_SOURCE to its folder. CASS_POSTGRES_SOURCE
# names a folder to take instead.
fetch_postgres_source() {
  local version candidate place
  version=$(server_package_version)
  POSTGRES_SOURCE=${CASS_POSTGRES_SOURCE:-$CASS_WORK/postgresql-source/$version/postgresql}
  [ ! -e "$POSTGRES_SOURCE/src/test/regress/parallel_schedule" ] || return 0
  [ -z "${CASS_POSTGRES_SOURCE:-}" ] || die "no source of PostgreSQL in $CASS_POSTGRES_SOURCE"
  say "Fetching the source of postgresql-15 $version"
  place=$(dirname "$POSTGRES_SOURCE")
  rm -rf "$place"
  mkdir -p "$place"
  apt_with_sources "$place/apt" apt-get update
  for candidate in $(candidate_versions "$version" "$place/apt"); do
    # apt checks the archive against the signed list; to unpack it, tar is enough.
    if (cd "$place" && apt_with_sources "$place/apt" apt-get source --download-only "postgresql-15=$candidate"); then
      mkdir "$POSTGRES_SOURCE.new"
      tar -xf "$place/postgresql-15_${candidate%%-*}.orig.tar".* -C "$POSTGRES_SOURCE.new" --strip-components 1
      rm -rf "$place/apt" "$place"/postgresql-15_*
      mv "$POSTGRES_SOURCE.new" "$POSTGRES_SOURCE"
      note "unpacked $candidate"
      return 0
    fi
    note "the archive does not hold $candidate"
  done
  die "Debian's archive has no source of postgresql-15; name a copy in CASS_POSTGRES_SOURCE"
}
