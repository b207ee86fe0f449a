
-- The extension's own types: what Cassandra has and PostgreSQL has not. Functions that PostgreSQL's own types
-- already have for the same representation are PostgreSQL's (LANGUAGE internal).

-- tinyint: a signed 8-bit integer, in the representation of "char".
CREATE TYPE tinyint;
CREATE FUNCTION tinyint_in(cstring) RETURNS tinyint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'tinyint_in_wrapper';
CREATE FUNCTION tinyint_out(tinyint) RETURNS cstring IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'tinyint_out_wrapper';
CREATE FUNCTION tinyint_recv(internal) RETURNS tinyint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'charrecv';
CREATE FUNCTION tinyint_send(tinyint) RETURNS bytea IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'charsend';
CREATE TYPE tinyint (INPUT = tinyint_in, OUTPUT = tinyint_out, RECEIVE = tinyint_recv, SEND = tinyint_send,
  INTERNALLENGTH = 1, PASSEDBYVALUE, ALIGNMENT = char, STORAGE = plain, CATEGORY = 'N');
COMMENT ON TYPE tinyint IS 'signed 8-bit integer, as Cassandra''s';

-- Comparison, b-tree and hash.
CREATE FUNCTION tinyint_eq(tinyint, tinyint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'chareq';
CREATE FUNCTION tinyint_ne(tinyint, tinyint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'charne';
CREATE FUNCTION tinyint_lt(tinyint, tinyint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'tinyint_lt_wrapper';
CREATE FUNCTION tinyint_le(tinyint, tinyint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'tinyint_le_wrapper';
CREATE FUNCTION tinyint_ge(tinyint, tinyint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'tinyint_ge_wrapper';
CREATE FUNCTION tinyint_gt(tinyint, tinyint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'tinyint_gt_wrapper';
CREATE FUNCTION tinyint_cmp(tinyint, tinyint) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'tinyint_cmp_wrapper';
CREATE FUNCTION tinyint_hash(tinyint) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'hashchar';
CREATE FUNCTION tinyint_hash_extended(tinyint, bigint) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'hashcharextended';

CREATE OPERATOR = (FUNCTION = tinyint_eq, LEFTARG = tinyint, RIGHTARG = tinyint, COMMUTATOR = =, NEGATOR = <>,
  RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (FUNCTION = tinyint_ne, LEFTARG = tinyint, RIGHTARG = tinyint, COMMUTATOR = <>, NEGATOR = =,
  RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR < (FUNCTION = tinyint_lt, LEFTARG = tinyint, RIGHTARG = tinyint, COMMUTATOR = >, NEGATOR = >=,
  RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (FUNCTION = tinyint_le, LEFTARG = tinyint, RIGHTARG = tinyint, COMMUTATOR = >=, NEGATOR = >,
  RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR >= (FUNCTION = tinyint_ge, LEFTARG = tinyint, RIGHTARG = tinyint, COMMUTATOR = <=, NEGATOR = <,
  RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (FUNCTION = tinyint_gt, LEFTARG = tinyint, RIGHTARG = tinyint, COMMUTATOR = <, NEGATOR = <=,
  RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR CLASS tinyint_ops DEFAULT FOR TYPE tinyint USING btree AS
  OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
  FUNCTION 1 tinyint_cmp(tinyint, tinyint), FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS tinyint_ops DEFAULT FOR TYPE tinyint USING hash AS
  OPERATOR 1 =,
  FUNCTION 1 tinyint_hash(tinyint), FUNCTION 2 tinyint_hash_extended(tinyint, bigint);

-- Integer constants become tinyint without a cast, so that a condition is on the column itself.
CREATE FUNCTION tinyint(integer) RETURNS tinyint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'tinyint_from_int4_wrapper';
CREATE FUNCTION tinyint(smallint) RETURNS tinyint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'tinyint_from_int2_wrapper';
CREATE FUNCTION int4(tinyint) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'chartoi4';
CREATE FUNCTION int2(tinyint) RETURNS smallint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'tinyint_to_int2_wrapper';
CREATE CAST (integer AS tinyint) WITH FUNCTION tinyint(integer) AS IMPLICIT;
CREATE CAST (smallint AS tinyint) WITH FUNCTION tinyint(smallint) AS IMPLICIT;
CREATE CAST (tinyint AS integer) WITH FUNCTION int4(tinyint) AS ASSIGNMENT;
CREATE CAST (tinyint AS smallint) WITH FUNCTION int2(tinyint) AS ASSIGNMENT;

-- timeuuid: a version 1 UUID, in the representation of uuid, in order of time.
CREATE TYPE timeuuid;
CREATE FUNCTION timeuuid_in(cstring) RETURNS timeuuid IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'timeuuid_in_wrapper';
CREATE FUNCTION timeuuid_out(timeuuid) RETURNS cstring IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'uuid_out';
CREATE FUNCTION timeuuid_recv(internal) RETURNS timeuuid IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'timeuuid_recv_wrapper';
CREATE FUNCTION timeuuid_send(timeuuid) RETURNS bytea IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'uuid_send';
CREATE TYPE timeuuid (INPUT = timeuuid_in, OUTPUT = timeuuid_out, RECEIVE = timeuuid_recv, SEND = timeuuid_send,
  INTERNALLENGTH = 16, ALIGNMENT = char, STORAGE = plain);
COMMENT ON TYPE timeuuid IS 'version 1 UUID in order of time, as Cassandra''s';

-- Comparison, b-tree and hash.
CREATE FUNCTION timeuuid_eq(timeuuid, timeuuid) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'uuid_eq';
CREATE FUNCTION timeuuid_ne(timeuuid, timeuuid) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'uuid_ne';
CREATE FUNCTION timeuuid_lt(timeuuid, timeuuid) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'timeuuid_lt_wrapper';
CREATE FUNCTION timeuuid_le(timeuuid, timeuuid) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'timeuuid_le_wrapper';
CREATE FUNCTION timeuuid_ge(timeuuid, timeuuid) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'timeuuid_ge_wrapper';
CREATE FUNCTION timeuuid_gt(timeuuid, timeuuid) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'timeuuid_gt_wrapper';
CREATE FUNCTION timeuuid_cmp(timeuuid, timeuuid) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'timeuuid_cmp_wrapper';
CREATE FUNCTION timeuuid_hash(timeuuid) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'uuid_hash';
CREATE FUNCTION timeuuid_hash_extended(timeuuid, bigint) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'uuid_hash_extended';

CREATE OPERATOR = (FUNCTION = timeuuid_eq, LEFTARG = timeuuid, RIGHTARG = timeuuid, COMMUTATOR = =, NEGATOR = <>,
  RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (FUNCTION = timeuuid_ne, LEFTARG = timeuuid, RIGHTARG = timeuuid, COMMUTATOR = <>, NEGATOR = =,
  RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR < (FUNCTION = timeuuid_lt, LEFTARG = timeuuid, RIGHTARG = timeuuid, COMMUTATOR = >, NEGATOR = >=,
  RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (FUNCTION = timeuuid_le, LEFTARG = timeuuid, RIGHTARG = timeuuid, COMMUTATOR = >=, NEGATOR = >,
  RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR >= (FUNCTION = timeuuid_ge, LEFTARG = timeuuid, RIGHTARG = timeuuid, COMMUTATOR = <=, NEGATOR = <,
  RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (FUNCTION = timeuuid_gt, LEFTARG = timeuuid, RIGHTARG = timeuuid, COMMUTATOR = <, NEGATOR = <=,
  RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR CLASS timeuuid_ops DEFAULT FOR TYPE timeuuid USING btree AS
  OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
  FUNCTION 1 timeuuid_cmp(timeuuid, timeuuid), FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS timeuuid_ops DEFAULT FOR TYPE timeuuid USING hash AS
  OPERATOR 1 =,
  FUNCTION 1 timeuuid_hash(timeuuid), FUNCTION 2 timeuuid_hash_extended(timeuuid, bigint);

-- Parameters that drivers send as uuid become timeuuid without a cast, so that a condition is on the column itself.
CREATE FUNCTION timeuuid(uuid) RETURNS timeuuid IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'timeuuid_from_uuid_wrapper';
CREATE CAST (uuid AS timeuuid) WITH FUNCTION timeuuid(uuid) AS IMPLICIT;
CREATE CAST (timeuuid AS uuid) WITHOUT FUNCTION AS ASSIGNMENT;

-- varint: an integer of any length, minimal two's complement in the representation of bytea.
CREATE TYPE varint;
CREATE FUNCTION varint_in(cstring) RETURNS varint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_in_wrapper';
CREATE FUNCTION varint_out(varint) RETURNS cstring IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_out_wrapper';
CREATE FUNCTION varint_recv(internal) RETURNS varint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_recv_wrapper';
CREATE FUNCTION varint_send(varint) RETURNS bytea IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'byteasend';
CREATE TYPE varint (INPUT = varint_in, OUTPUT = varint_out, RECEIVE = varint_recv, SEND = varint_send,
  INTERNALLENGTH = VARIABLE, STORAGE = extended, CATEGORY = 'N');
COMMENT ON TYPE varint IS 'integer of any length, as Cassandra''s';

-- Comparison, b-tree and hash.
CREATE FUNCTION varint_eq(varint, varint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'byteaeq';
CREATE FUNCTION varint_ne(varint, varint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'byteane';
CREATE FUNCTION varint_lt(varint, varint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_lt_wrapper';
CREATE FUNCTION varint_le(varint, varint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_le_wrapper';
CREATE FUNCTION varint_ge(varint, varint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_ge_wrapper';
CREATE FUNCTION varint_gt(varint, varint) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_gt_wrapper';
CREATE FUNCTION varint_cmp(varint, varint) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_cmp_wrapper';
CREATE FUNCTION varint_hash(varint) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'hashvarlena';
CREATE FUNCTION varint_hash_extended(varint, bigint) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE internal AS 'hashvarlenaextended';

CREATE OPERATOR = (FUNCTION = varint_eq, LEFTARG = varint, RIGHTARG = varint, COMMUTATOR = =, NEGATOR = <>,
  RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (FUNCTION = varint_ne, LEFTARG = varint, RIGHTARG = varint, COMMUTATOR = <>, NEGATOR = =,
  RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR < (FUNCTION = varint_lt, LEFTARG = varint, RIGHTARG = varint, COMMUTATOR = >, NEGATOR = >=,
  RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (FUNCTION = varint_le, LEFTARG = varint, RIGHTARG = varint, COMMUTATOR = >=, NEGATOR = >,
  RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR >= (FUNCTION = varint_ge, LEFTARG = varint, RIGHTARG = varint, COMMUTATOR = <=, NEGATOR = <,
  RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (FUNCTION = varint_gt, LEFTARG = varint, RIGHTARG = varint, COMMUTATOR = <, NEGATOR = <=,
  RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR CLASS varint_ops DEFAULT FOR TYPE varint USING btree AS
  OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
  FUNCTION 1 varint_cmp(varint, varint), FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS varint_ops DEFAULT FOR TYPE varint USING hash AS
  OPERATOR 1 =,
  FUNCTION 1 varint_hash(varint), FUNCTION 2 varint_hash_extended(varint, bigint);

-- Integer constants become varint without a cast, so that a condition is on the column itself.
CREATE FUNCTION varint(integer) RETURNS varint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_from_int4_wrapper';
CREATE FUNCTION varint(bigint) RETURNS varint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_from_int8_wrapper';
CREATE FUNCTION varint(numeric) RETURNS varint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_from_numeric_wrapper';
CREATE FUNCTION int4(varint) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_to_int4_wrapper';
CREATE FUNCTION int8(varint) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'varint_to_int8_wrapper';
CREATE CAST (integer AS varint) WITH FUNCTION varint(integer) AS IMPLICIT;
CREATE CAST (bigint AS varint) WITH FUNCTION varint(bigint) AS IMPLICIT;
CREATE CAST (numeric AS varint) WITH FUNCTION varint(numeric) AS ASSIGNMENT;
CREATE CAST (varint AS integer) WITH FUNCTION int4(varint) AS ASSIGNMENT;
CREATE CAST (varint AS bigint) WITH FUNCTION int8(varint) AS ASSIGNMENT;
CREATE CAST (varint AS numeric) WITH INOUT AS ASSIGNMENT;

-- requires:
--   cass_types

CREATE FUNCTION cass_token(VARIADIC "any") RETURNS bigint
  IMMUTABLE PARALLEL SAFE LANGUAGE C AS 'MODULE_PATHNAME', 'cass_token';
COMMENT ON FUNCTION cass_token("any") IS 'token of a partition key, as Cassandra''s Murmur3Partitioner';

-- cass::functions::allow_filtering::cass_allow_filtering
CREATE  FUNCTION "cass_allow_filtering"() RETURNS bool /* bool */
STRICT STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'cass_allow_filtering_wrapper';

-- cass::table_am::routine::cass_handler

CREATE FUNCTION cass_handler(internal) RETURNS table_am_handler
    STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'cass_handler_wrapper';
CREATE ACCESS METHOD cass TYPE TABLE HANDLER cass_handler;
COMMENT ON ACCESS METHOD cass IS 'rows placed by partition token and clustering order';

-- cass::key_am::cass_key_handler

CREATE FUNCTION cass_key_handler(internal) RETURNS index_am_handler
    STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'cass_key_handler_wrapper';
CREATE ACCESS METHOD cass_key TYPE INDEX HANDLER cass_key_handler;
COMMENT ON ACCESS METHOD cass_key IS 'primary key of a table of access method cass';

-- requires:
--   cass_key_handler
--   cass_types

-- One operator class for each type that a key column may have, with btree's strategies and support function.
-- varchar uses text's, as everywhere in PostgreSQL.
CREATE OPERATOR CLASS int2_key_ops DEFAULT FOR TYPE smallint USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btint2cmp(smallint, smallint);
CREATE OPERATOR CLASS int4_key_ops DEFAULT FOR TYPE integer USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btint4cmp(integer, integer);
CREATE OPERATOR CLASS int8_key_ops DEFAULT FOR TYPE bigint USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btint8cmp(bigint, bigint);
CREATE OPERATOR CLASS text_key_ops DEFAULT FOR TYPE text USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 bttextcmp(text, text);
CREATE OPERATOR CLASS uuid_key_ops DEFAULT FOR TYPE uuid USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 uuid_cmp(uuid, uuid);
CREATE OPERATOR CLASS timestamptz_key_ops DEFAULT FOR TYPE timestamptz USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 timestamptz_cmp(timestamptz, timestamptz);
CREATE OPERATOR CLASS timestamp_key_ops DEFAULT FOR TYPE timestamp USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 timestamp_cmp(timestamp, timestamp);
CREATE OPERATOR CLASS date_key_ops DEFAULT FOR TYPE date USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 date_cmp(date, date);
CREATE OPERATOR CLASS time_key_ops DEFAULT FOR TYPE time USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 time_cmp(time, time);
CREATE OPERATOR CLASS inet_key_ops DEFAULT FOR TYPE inet USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 network_cmp(inet, inet);
CREATE OPERATOR CLASS bytea_key_ops DEFAULT FOR TYPE bytea USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 byteacmp(bytea, bytea);
CREATE OPERATOR CLASS bool_key_ops DEFAULT FOR TYPE boolean USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btboolcmp(boolean, boolean);
CREATE OPERATOR CLASS float4_key_ops DEFAULT FOR TYPE real USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btfloat4cmp(real, real);
CREATE OPERATOR CLASS float8_key_ops DEFAULT FOR TYPE double precision USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 btfloat8cmp(double precision, double precision);
CREATE OPERATOR CLASS numeric_key_ops DEFAULT FOR TYPE numeric USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 numeric_cmp(numeric, numeric);
CREATE OPERATOR CLASS tinyint_key_ops DEFAULT FOR TYPE tinyint USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 tinyint_cmp(tinyint, tinyint);
CREATE OPERATOR CLASS timeuuid_key_ops DEFAULT FOR TYPE timeuuid USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 timeuuid_cmp(timeuuid, timeuuid);
CREATE OPERATOR CLASS varint_key_ops DEFAULT FOR TYPE varint USING cass_key AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 varint_cmp(varint, varint);

-- cass::upgrade::prepare::cass_prepare_upgrade

CREATE PROCEDURE cass_prepare_upgrade() LANGUAGE c AS 'MODULE_PATHNAME', 'cass_prepare_upgrade_wrapper';
COMMENT ON PROCEDURE cass_prepare_upgrade() IS 'moves rows that pg_upgrade does not carry into segments';

-- cass::functions::segments::cass_segment_rows
CREATE  FUNCTION "cass_segment_rows"(
	"table" regclass, /* PgRelation */
	"segment" bigint /* i64 */
) RETURNS TABLE (
	"page" bigint,  /* i64 */
	"position" bigint,  /* i64 */
	"token" bigint,  /* Option < i64 > */
	"key" TEXT,  /* String */
	"write_time" timestamp with time zone,  /* Option < TimestampWithTimeZone > */
	"expiry" timestamp with time zone,  /* Option < TimestampWithTimeZone > */
	"tombstone" bool,  /* bool */
	"kind" TEXT,  /* & '_ str */
	"row_id" bigint  /* i64 */
)
STRICT STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'cass_segment_rows_wrapper';

-- cass::functions::segments::cass_segments
CREATE  FUNCTION "cass_segments"(
	"table" regclass /* PgRelation */
) RETURNS TABLE (
	"run_id" bigint,  /* i64 */
	"first_block" bigint,  /* i64 */
	"page_count" bigint,  /* i64 */
	"sequence_low" bigint,  /* i64 */
	"sequence_high" bigint,  /* i64 */
	"rows" bigint,  /* i64 */
	"tombstones" bigint,  /* i64 */
	"bytes" bigint,  /* i64 */
	"bulk" bool,  /* bool */
	"min_token" bigint,  /* Option < i64 > */
	"max_token" bigint  /* Option < i64 > */
)
STRICT STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'cass_segments_wrapper';

-- cass::types::timeuuid::timeuuid_cmp
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::timeuuid::timeuuid_from_uuid
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::timeuuid::timeuuid_ge
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::timeuuid::timeuuid_gt
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::timeuuid::timeuuid_in
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::timeuuid::timeuuid_le
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::timeuuid::timeuuid_lt
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::timeuuid::timeuuid_recv
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::tinyint::tinyint_cmp
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::tinyint::tinyint_from_int2
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::tinyint::tinyint_from_int4
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::tinyint::tinyint_ge
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::tinyint::tinyint_gt
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::tinyint::tinyint_in
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::tinyint::tinyint_le
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::tinyint::tinyint_lt
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::tinyint::tinyint_out
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::tinyint::tinyint_to_int2
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_cmp
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_from_int4
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_from_int8
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_from_numeric
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_ge
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_gt
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_in
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_le
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_lt
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_out
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_recv
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_to_int4
-- Skipped due to `#[pgrx(sql = false)]`

-- cass::types::varint::varint_to_int8
-- Skipped due to `#[pgrx(sql = false)]`

CREATE SCHEMA IF NOT EXISTS cass_catalog; /* cass::segment::catalog::cass_catalog */

-- cass::segment::catalog::cass_catalog::ignore_replicated_row
CREATE FUNCTION cass_catalog."ignore_replicated_row"()
	RETURNS TRIGGER
	LANGUAGE c
	AS 'MODULE_PATHNAME', 'ignore_replicated_row_wrapper';

-- requires:
--   cass_catalog::ignore_replicated_row

CREATE TABLE cass_catalog.segment (
    relation oid NOT NULL,
    storage_id bigint NOT NULL,
    run_id bigint NOT NULL,
    first_block bigint NOT NULL,
    page_count bigint NOT NULL,
    published boolean NOT NULL,
    bulk boolean NOT NULL,
    sequence_low bigint NOT NULL,
    sequence_high bigint NOT NULL,
    row_count bigint NOT NULL,
    tombstone_count bigint NOT NULL,
    min_key bytea NOT NULL,
    max_key bytea NOT NULL,
    PRIMARY KEY (storage_id, run_id)
) USING heap;

ALTER TABLE cass_catalog.segment ALTER COLUMN min_key SET STORAGE MAIN, ALTER COLUMN max_key SET STORAGE MAIN;

COMMENT ON SCHEMA cass_catalog IS 'what extension cass keeps about tables; not to be written by hand';
COMMENT ON TABLE cass_catalog.segment IS 'segments of cass tables and the blocks that their runs occupy';

REVOKE ALL ON SCHEMA cass_catalog FROM PUBLIC;
GRANT USAGE ON SCHEMA cass_catalog TO PUBLIC;
REVOKE ALL ON cass_catalog.segment FROM PUBLIC;
GRANT SELECT (relation, storage_id, run_id, first_block, page_count, published, bulk, sequence_low, sequence_high, row_count,
              tombstone_count) ON cass_catalog.segment TO PUBLIC;

CREATE TRIGGER ignore_replicated_row BEFORE INSERT OR UPDATE OR DELETE ON cass_catalog.segment
    FOR EACH ROW EXECUTE FUNCTION cass_catalog.ignore_replicated_row();
ALTER TABLE cass_catalog.segment ENABLE REPLICA TRIGGER ignore_replicated_row;

