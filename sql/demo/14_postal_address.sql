-- Lesson: primary keys, a row's postal address
\set schema address
\ir common/schema.psql

-- A simple primary key: any row at once by its user_id.
CREATE TABLE users (
  user_id uuid,
  name text,
  email text,
  PRIMARY KEY (user_id)
) USING cass;
INSERT INTO users VALUES
  ('00000000-0000-4000-8000-000000000001', 'Alice', 'alice@mail.com'),
  ('00000000-0000-4000-8000-000000000002', 'Bob', 'bob@mail.com'),
  ('00000000-0000-4000-8000-000000000003', 'Carol', 'carol@mail.com');
SELECT name, email FROM users WHERE user_id = '00000000-0000-4000-8000-000000000002';

-- One customer's orders lie together, sorted by date.
CREATE TABLE orders_by_customer (
  customer_id uuid,
  order_date timestamptz,
  order_id uuid,
  total numeric,
  PRIMARY KEY (customer_id, order_date, order_id)
) USING cass;
INSERT INTO orders_by_customer VALUES
  ('aaaaaaaa-0000-4000-8000-00000000000a', '2024-01-05 10:00:00Z', '00000000-0000-4000-8000-000000000001', 120.00),
  ('aaaaaaaa-0000-4000-8000-00000000000a', '2024-01-12 14:30:00Z', '00000000-0000-4000-8000-000000000002', 45.00),
  ('aaaaaaaa-0000-4000-8000-00000000000a', '2024-02-01 09:15:00Z', '00000000-0000-4000-8000-000000000003', 230.00),
  ('bbbbbbbb-0000-4000-8000-00000000000b', '2024-01-20 11:00:00Z', '00000000-0000-4000-8000-000000000004', 80.00);
SELECT order_date, total FROM orders_by_customer WHERE customer_id = 'aaaaaaaa-0000-4000-8000-00000000000a';
SELECT order_date, total FROM orders_by_customer WHERE customer_id = 'bbbbbbbb-0000-4000-8000-00000000000b';

-- A compound partition key: only with both values known can the partition be found.
CREATE TABLE sensor_readings (
  device_id text,
  region text,
  read_time timestamptz,
  temperature float8,
  PRIMARY KEY (device_id, region, read_time)
) USING cass WITH (partition_key = 'device_id, region');
INSERT INTO sensor_readings VALUES
  ('D1', 'EU', '2024-03-01 08:00:00Z', 22.5), ('D1', 'EU', '2024-03-01 09:00:00Z', 23.1),
  ('D1', 'EU', '2024-03-01 10:00:00Z', 22.8),
  ('D1', 'US', '2024-03-01 08:00:00Z', 18.3), ('D1', 'US', '2024-03-01 09:00:00Z', 19.0);
SELECT cass_token(device_id, region) AS token, * FROM sensor_readings WHERE device_id = 'D1' AND region = 'EU';
SELECT cass_token(device_id, region) AS token, * FROM sensor_readings WHERE device_id = 'D1' AND region = 'US';
\set want 42K01
\set ON_ERROR_STOP off
SELECT * FROM sensor_readings WHERE device_id = 'D1';
\ir common/refused.psql

-- The rules. A key that is there already: the row is overwritten, silently.
INSERT INTO users VALUES ('00000000-0000-4000-8000-000000000003', 'Carol', 'carol@example.com');
SELECT email FROM users WHERE user_id = '00000000-0000-4000-8000-000000000003';
SELECT must_equal((SELECT count(*) FROM users), 3) AS "still three rows";

-- NULL has no place in a key.
\set want 23502
\set ON_ERROR_STOP off
INSERT INTO users VALUES (NULL, 'Dave', 'dave@mail.com');
\ir common/refused.psql

-- A key column cannot be given another type: its rows would lie in the wrong places.
\set want 0A000
\set ON_ERROR_STOP off
ALTER TABLE users ALTER COLUMN user_id TYPE text;
\ir common/refused.psql

-- A column outside the key cannot be asked for, unless filtering is allowed.
\set want 42K01
\set ON_ERROR_STOP off
SELECT * FROM users WHERE email = 'bob@mail.com';
\ir common/refused.psql
SELECT name FROM users WHERE email = 'bob@mail.com' AND cass_allow_filtering();

-- Clustering columns take ranges.
SELECT order_date, total FROM orders_by_customer
 WHERE customer_id = 'aaaaaaaa-0000-4000-8000-00000000000a' AND order_date > '2024-01-05 10:00:00Z' AND order_date < '2024-02-01Z';

-- From key to place: the partition key is hashed to a token, a number on the ring; the columns after it do not matter.
SELECT customer_id, cass_token(customer_id) AS token, count(*) AS rows FROM orders_by_customer GROUP BY customer_id;

-- A bad partition key: 80 % of the users live in one country, and so in one partition.
CREATE TABLE users_by_country (
  country text,
  user_id uuid,
  name text,
  PRIMARY KEY (country, user_id)
) USING cass WITH (partition_key = 'country');
INSERT INTO users_by_country
SELECT CASE WHEN i % 25 < 20 THEN 'US' WHEN i % 25 < 22 THEN 'UK' WHEN i % 25 < 23 THEN 'DE' WHEN i % 25 < 24 THEN 'FR' ELSE 'JP' END,
       md5(i::text)::uuid, 'user ' || i
  FROM generate_series(1, 10000) i;
SELECT country, cass_token(country) AS token, count(*) AS rows, 100 * count(*) / 10000 || ' %' AS share
  FROM users_by_country GROUP BY country ORDER BY rows DESC;
SELECT must_equal((SELECT max(n) FROM (SELECT count(*) AS n FROM users_by_country GROUP BY country) c), 8000)
         AS "8,000 of 10,000 in one partition";
