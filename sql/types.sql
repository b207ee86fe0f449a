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
