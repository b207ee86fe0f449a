-- Lesson: composite partition keys and ordered clustering columns
\set schema atlasmart_keys
\ir common/schema.psql

-- Customer and month choose the place; time chooses the order. The table, key and options of the lesson.
CREATE TABLE order_events_by_customer_bucket (
  customer_id uuid,
  month_bucket text,
  event_time timestamptz,
  event_id timeuuid,
  order_id uuid,
  event_type text,
  payload text,
  PRIMARY KEY (customer_id, month_bucket, event_time, event_id)
) USING cass WITH (partition_key = 'customer_id, month_bucket',
                   clustering_order = 'event_time DESC, event_id DESC',
                   compaction = 'unified');

INSERT INTO order_events_by_customer_bucket
(customer_id, month_bucket, event_time, event_id, order_id, event_type, payload)
VALUES ('11111111-1111-1111-1111-111111111111', '2026-09', '2026-09-07T10:00:00Z',
        '11111111-1111-11f1-8000-000000000001', 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa', 'CREATED', '{}');
INSERT INTO order_events_by_customer_bucket
(customer_id, month_bucket, event_time, event_id, order_id, event_type, payload)
VALUES ('11111111-1111-1111-1111-111111111111', '2026-09', '2026-09-07T10:05:00Z',
        '22222222-2222-11f1-8000-000000000002', 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa', 'PAID', '{}');
INSERT INTO order_events_by_customer_bucket
(customer_id, month_bucket, event_time, event_id, order_id, event_type, payload)
VALUES ('11111111-1111-1111-1111-111111111111', '2026-09', '2026-09-07T10:10:00Z',
        '33333333-3333-11f1-8000-000000000003', 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa', 'SHIPPED', '{}');

-- One token for the three rows, since they are one partition; newest first, as declared.
SELECT customer_id, month_bucket, cass_token(customer_id, month_bucket) AS partition_token,
       event_time, event_type
  FROM order_events_by_customer_bucket
 WHERE customer_id = '11111111-1111-1111-1111-111111111111'
   AND month_bucket = '2026-09';
SELECT must_equal(count(DISTINCT token), 1) AS "one token", must_equal(array_agg(event_type), '{SHIPPED,PAID,CREATED}') AS "newest first"
  FROM (SELECT cass_token(customer_id, month_bucket) AS token, event_type
          FROM order_events_by_customer_bucket
         WHERE customer_id = '11111111-1111-1111-1111-111111111111' AND month_bucket = '2026-09') e;

-- A bounded slice of time within the partition.
SELECT event_time, event_type
  FROM order_events_by_customer_bucket
 WHERE customer_id = '11111111-1111-1111-1111-111111111111'
   AND month_bucket = '2026-09'
   AND event_time >= '2026-09-07T10:00:00Z'
   AND event_time < '2026-09-07T10:11:00Z';

-- The declared order backwards. Neither direction needs a sort: the plans below have no Sort node.
SELECT event_time, event_type
  FROM order_events_by_customer_bucket
 WHERE customer_id = '11111111-1111-1111-1111-111111111111'
   AND month_bucket = '2026-09'
 ORDER BY event_time ASC, event_id ASC;
EXPLAIN (COSTS OFF) SELECT event_time, event_type
  FROM order_events_by_customer_bucket
 WHERE customer_id = '11111111-1111-1111-1111-111111111111'
   AND month_bucket = '2026-09'
   AND event_time >= '2026-09-07T10:00:00Z'
   AND event_time < '2026-09-07T10:11:00Z';
EXPLAIN (COSTS OFF) SELECT event_time, event_type
  FROM order_events_by_customer_bucket
 WHERE customer_id = '11111111-1111-1111-1111-111111111111'
   AND month_bucket = '2026-09'
 ORDER BY event_time ASC, event_id ASC;

-- This query is intentionally invalid for the table: it leaves out half of the partition key.
\set want 42K01
\set ON_ERROR_STOP off
SELECT * FROM order_events_by_customer_bucket
 WHERE customer_id = '11111111-1111-1111-1111-111111111111'
   AND event_time >= '2026-09-01T00:00:00Z';
\ir common/refused.psql

-- Clustering order is no general ORDER BY: by CQL's rules only the declared order or its reverse is had.
SET cass.enforcement = 'cql';
\set want 42K03
\set ON_ERROR_STOP off
SELECT event_time, event_type
  FROM order_events_by_customer_bucket
 WHERE customer_id = '11111111-1111-1111-1111-111111111111'
   AND month_bucket = '2026-09'
 ORDER BY event_type;
\ir common/refused.psql
RESET cass.enforcement;

-- The rows as they lie on disk: VACUUM writes the segment, in token and clustering order.
VACUUM order_events_by_customer_bucket;
SELECT r.* FROM cass_segments('order_events_by_customer_bucket') s,
       cass_segment_rows('order_events_by_customer_bucket', s.run_id) r;

-- The broken design: month_bucket is in the primary key, but outside the partition key (here its default, the
-- first column). A heavy customer gathers every month in one partition.
CREATE TABLE order_events_by_customer (
  customer_id uuid,
  month_bucket text,
  event_time timestamptz,
  event_type text,
  PRIMARY KEY (customer_id, month_bucket, event_time)
) USING cass WITH (clustering_order = 'month_bucket DESC, event_time DESC');

-- 3 customers, 12 months, 200 events a month, in both tables.
INSERT INTO order_events_by_customer
SELECT md5(customer::text)::uuid, to_char(month, 'YYYY-MM'), month + event * interval '3 hours', 'CREATED'
  FROM generate_series(1, 3) customer,
       generate_series('2025-10-01Z'::timestamptz, '2026-09-01Z', '1 month') month,
       generate_series(0, 199) event;
INSERT INTO order_events_by_customer_bucket
SELECT customer_id, month_bucket, event_time, '11111111-1111-11f1-8000-000000000001', customer_id, event_type, '{}'
  FROM order_events_by_customer;

SELECT 'customer_id' AS partition_key, count(*) AS partitions, max(rows) AS largest
  FROM (SELECT count(*) AS rows FROM order_events_by_customer GROUP BY customer_id) p
UNION ALL
SELECT 'customer_id, month_bucket', count(*), max(rows)
  FROM (SELECT count(*) AS rows FROM order_events_by_customer_bucket GROUP BY customer_id, month_bucket) p;
SELECT must_equal((SELECT count(DISTINCT cass_token(customer_id)) FROM order_events_by_customer), 3)
         AS "a customer is one partition",
       must_equal((SELECT count(DISTINCT cass_token(customer_id, month_bucket)) FROM order_events_by_customer_bucket), 37)
         AS "a customer's month is one partition";
