-- Lesson: data modeling and partition keys, query first
\set schema orders
\ir common/schema.psql

-- The naive table, keyed by the order.
CREATE TABLE orders (
  order_id uuid PRIMARY KEY,
  user_id uuid,
  order_date timestamptz,
  status text,
  total numeric
) USING cass;

-- 5,000 orders of 100 users, the statuses unevenly spread, as they are in life.
INSERT INTO orders
SELECT md5('order ' || i)::uuid, md5('user ' || i % 100)::uuid, '2026-01-01Z'::timestamptz + i * interval '1 hour',
       CASE WHEN i % 10 < 6 THEN 'DELIVERED' WHEN i % 10 < 8 THEN 'SHIPPED' WHEN i % 10 < 9 THEN 'PENDING' ELSE 'CANCELLED' END,
       (i % 1000) + 0.99
  FROM generate_series(1, 5000) i;

-- user_id is not the partition key: the query is refused, or runs with the filter allowed and reads all orders.
PREPARE orders_of_user(uuid) AS SELECT * FROM orders WHERE user_id = $1 ORDER BY order_date DESC LIMIT 20;
\set want 42K01
\set ON_ERROR_STOP off
EXECUTE orders_of_user(md5('user 7')::uuid);
\ir common/refused.psql
SELECT order_date, status, total FROM orders
 WHERE user_id = md5('user 7')::uuid AND cass_allow_filtering() ORDER BY order_date DESC LIMIT 3;

-- Query first: partition by user, newest order first; order_id keeps two orders of one instant apart.
CREATE TABLE orders_by_user (
  user_id uuid,
  order_date timestamptz,
  order_id uuid,
  status text,
  total numeric,
  PRIMARY KEY (user_id, order_date, order_id)
) USING cass WITH (partition_key = 'user_id', clustering_order = 'order_date DESC');
INSERT INTO orders_by_user SELECT user_id, order_date, order_id, status, total FROM orders;

PREPARE newest_orders(uuid) AS SELECT * FROM orders_by_user WHERE user_id = $1 LIMIT 20;
EXECUTE newest_orders(md5('user 7')::uuid);
EXPLAIN (COSTS OFF) EXECUTE newest_orders(md5('user 7')::uuid);
SELECT must_equal(
  (SELECT array_agg(order_id) FROM (SELECT order_id FROM orders_by_user WHERE user_id = md5('user 7')::uuid LIMIT 20) a),
  (SELECT array_agg(order_id) FROM (SELECT order_id FROM orders WHERE user_id = md5('user 7')::uuid AND cass_allow_filtering()
                                     ORDER BY order_date DESC LIMIT 20) b)) AS "the same 20 orders, without a sort";

-- Partitioned by status, there are four partitions in the entire system, however many orders come.
CREATE TABLE orders_by_status (
  status text,
  order_date timestamptz,
  order_id uuid,
  user_id uuid,
  total numeric,
  PRIMARY KEY (status, order_date, order_id)
) USING cass WITH (partition_key = 'status', clustering_order = 'order_date DESC');
INSERT INTO orders_by_status SELECT status, order_date, order_id, user_id, total FROM orders;

SELECT status, cass_token(status) AS token, count(*) AS rows FROM orders_by_status GROUP BY status ORDER BY rows DESC;
SELECT 'user_id' AS partition_key, count(*) AS partitions, max(rows) AS largest
  FROM (SELECT count(*) AS rows FROM orders_by_user GROUP BY user_id) p
UNION ALL
SELECT 'status', count(*), max(rows) FROM (SELECT count(*) AS rows FROM orders_by_status GROUP BY status) p;
SELECT must_equal((SELECT count(DISTINCT cass_token(status)) FROM orders_by_status), 4) AS "four partitions",
       must_equal((SELECT count(DISTINCT cass_token(user_id)) FROM orders_by_user), 100) AS "a hundred partitions";

-- Both tables hold a copy of each order, so a change of status is two writes. Here a transaction makes them one:
-- the order ships in both copies, or in neither. (Cassandra has no such guarantee across partitions.)
SELECT user_id, order_date, order_id, total FROM orders_by_status WHERE status = 'PENDING' LIMIT 1 \gset
BEGIN;
UPDATE orders_by_user SET status = 'SHIPPED'
 WHERE user_id = :'user_id' AND order_date = :'order_date' AND order_id = :'order_id';
DELETE FROM orders_by_status WHERE status = 'PENDING' AND order_date = :'order_date' AND order_id = :'order_id';
INSERT INTO orders_by_status VALUES ('SHIPPED', :'order_date', :'order_id', :'user_id', :total);
ROLLBACK;
SELECT must_equal((SELECT status FROM orders_by_user
                    WHERE user_id = :'user_id' AND order_date = :'order_date' AND order_id = :'order_id'), 'PENDING')
         AS "rolled back: neither copy changed",
       must_equal((SELECT count(*) FROM orders_by_status WHERE status = 'PENDING' AND order_date = :'order_date'), 1)
         AS "and here";
BEGIN;
UPDATE orders_by_user SET status = 'SHIPPED'
 WHERE user_id = :'user_id' AND order_date = :'order_date' AND order_id = :'order_id';
DELETE FROM orders_by_status WHERE status = 'PENDING' AND order_date = :'order_date' AND order_id = :'order_id';
INSERT INTO orders_by_status VALUES ('SHIPPED', :'order_date', :'order_id', :'user_id', :total);
COMMIT;
SELECT must_equal((SELECT status FROM orders_by_user
                    WHERE user_id = :'user_id' AND order_date = :'order_date' AND order_id = :'order_id'), 'SHIPPED')
         AS "committed: both changed",
       must_equal((SELECT array_agg(status) FROM orders_by_status
                    WHERE status IN ('PENDING', 'SHIPPED') AND order_date = :'order_date'), '{SHIPPED}') AS "and here";
