-- What 0.2.0 has and 0.1.0 has not. ALTER EXTENSION cass UPDATE runs it; tables and their files stay as they are.

CREATE FUNCTION cass_check("table" regclass,
    OUT kind text, OUT relation regclass, OUT segment bigint, OUT block bigint, OUT detail text)
  RETURNS SETOF record VOLATILE STRICT PARALLEL UNSAFE COST 1000000 ROWS 1 LANGUAGE C AS 'MODULE_PATHNAME', 'cass_check';
COMMENT ON FUNCTION cass_check(regclass) IS 'faults in what is stored of a cass table; no rows if it is sound';
