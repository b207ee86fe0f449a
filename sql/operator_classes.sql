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
