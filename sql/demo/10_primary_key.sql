-- Lesson: the primary key is the most important design decision
\set schema shop
\ir common/schema.psql

-- The lesson's table of messages. `timestamp` of CQL is timestamptz here; timeuuid comes with cass.
-- channel_name is STATIC in the lesson, one value a partition; in this version it is an ordinary column.
CREATE TABLE messages (
  channel_id uuid,
  sent_at timestamptz,
  msg_id timeuuid,
  channel_name text,
  author text,
  body text,
  PRIMARY KEY (channel_id, sent_at, msg_id)
) USING cass WITH (partition_key = 'channel_id', clustering_order = 'sent_at DESC, msg_id DESC');

-- A composite partition key: each sensor's day is one partition, its rows sorted by ts.
CREATE TABLE readings (
  sensor_id text,
  day date,
  ts timestamptz,
  value float8,
  PRIMARY KEY (sensor_id, day, ts)
) USING cass WITH (partition_key = 'sensor_id, day');

-- PRIMARY KEY (user_id): a partition of a single row for each user.
CREATE TABLE users (
  user_id uuid,
  name text,
  PRIMARY KEY (user_id)
) USING cass;

INSERT INTO messages VALUES
  ('c0ffee00-0000-4000-8000-000000000001', '2026-09-07 10:00Z', '11111111-1111-11f1-8000-000000000001', 'general', 'ada', 'first'),
  ('c0ffee00-0000-4000-8000-000000000001', '2026-09-07 10:05Z', '22222222-2222-11f1-8000-000000000002', 'general', 'bob', 'second'),
  ('c0ffee00-0000-4000-8000-000000000001', '2026-09-07 10:05Z', '33333333-3333-11f1-8000-000000000003', 'general', 'eve', 'same instant, later id');

-- One channel, newest first, msg_id as the tie-breaker: the order in which the rows lie on disk, nothing sorts.
SELECT sent_at, author, body FROM messages WHERE channel_id = 'c0ffee00-0000-4000-8000-000000000001';
SELECT must_equal(array_agg(author), '{eve,bob,ada}') AS "newest first"
  FROM (SELECT author FROM messages WHERE channel_id = 'c0ffee00-0000-4000-8000-000000000001') m;

-- The full key again: the same row, overwritten. There is no duplicate-key error.
INSERT INTO messages VALUES
  ('c0ffee00-0000-4000-8000-000000000001', '2026-09-07 10:00Z', '11111111-1111-11f1-8000-000000000001', 'general', 'ada', 'first, edited');
SELECT sent_at, author, body FROM messages WHERE channel_id = 'c0ffee00-0000-4000-8000-000000000001';
SELECT must_equal((SELECT count(*) FROM messages), 3) AS "still three rows";

-- All readings of a sensor's day have one token; another day of the same sensor is another partition.
INSERT INTO readings VALUES
  ('s1', '2026-09-07', '2026-09-07 10:00Z', 20.5),
  ('s1', '2026-09-07', '2026-09-07 10:10Z', 20.7),
  ('s1', '2026-09-08', '2026-09-08 10:00Z', 19.9);
SELECT cass_token(sensor_id, day) AS token, * FROM readings;
SELECT must_equal((SELECT count(DISTINCT cass_token(sensor_id, day)) FROM readings), 2) AS "two partitions";
SELECT ts, value FROM readings WHERE sensor_id = 's1' AND day = '2026-09-07';

-- To read, supply the whole partition key. A part of it does not say where the rows are.
\set want 42K01
\set ON_ERROR_STOP off
SELECT * FROM readings WHERE sensor_id = 's1';
\ir common/refused.psql
\set ON_ERROR_STOP off
SELECT * FROM readings WHERE day = '2026-09-07';
\ir common/refused.psql
\set ON_ERROR_STOP off
SELECT * FROM messages WHERE author = 'ada';
\ir common/refused.psql

-- Cassandra also refuses a clustering column whose predecessor is open; so does cass when asked to go by CQL's rules.
SET cass.enforcement = 'cql';
\set want 42K02
\set ON_ERROR_STOP off
SELECT * FROM messages
 WHERE channel_id = 'c0ffee00-0000-4000-8000-000000000001' AND msg_id = '22222222-2222-11f1-8000-000000000002';
\ir common/refused.psql
RESET cass.enforcement;

-- Watch out: a partition key of few values, such as country, makes a few giant partitions.
CREATE TABLE users_by_country (
  country text,
  user_id uuid,
  name text,
  PRIMARY KEY (country, user_id)
) USING cass WITH (partition_key = 'country');
INSERT INTO users_by_country
SELECT (ARRAY['US', 'UK', 'DE', 'FR'])[1 + i % 4], md5(i::text)::uuid, 'user ' || i FROM generate_series(1, 10000) i;
INSERT INTO users SELECT user_id, name FROM users_by_country;

-- The same 10,000 users, placed twice:
SELECT 'country' AS partition_key, count(*) AS partitions, max(rows) AS largest
  FROM (SELECT count(*) AS rows FROM users_by_country GROUP BY country) p
UNION ALL
SELECT 'user_id', count(*), max(rows) FROM (SELECT count(*) AS rows FROM users GROUP BY user_id) p;
SELECT must_equal((SELECT count(DISTINCT cass_token(country)) FROM users_by_country), 4) AS "four partitions, for ever";
