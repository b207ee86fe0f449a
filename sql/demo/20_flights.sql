-- Real data: a year of flights out of New York

-- 336,776 flights in 1,095 partitions: three airports, 365 days.
SELECT count(*) AS flights, count(DISTINCT cass_token(origin, day)) AS partitions FROM flights;
SELECT must_equal((SELECT count(*) FROM flights), 336776) AS "all flights",
       must_equal((SELECT count(DISTINCT cass_token(origin, day)) FROM flights), 1095) AS "all partitions",
       must_equal((SELECT count(*) FROM weather), 26115) AS "all hours of weather";

-- An airport's day, newest first: one partition, read from its start.
SELECT sched_dep_time, carrier, flight, dest, dep_delay FROM flights
 WHERE origin = 'JFK' AND day = '2013-12-31' LIMIT 5;
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT sched_dep_time, carrier, flight, dest, dep_delay FROM flights
 WHERE origin = 'JFK' AND day = '2013-12-31' LIMIT 20;

-- A slice of the day, backwards.
SELECT sched_dep_time, carrier, flight, dest FROM flights
 WHERE origin = 'JFK' AND day = '2013-12-31' AND sched_dep_time >= '06:00' AND sched_dep_time < '06:15'
 ORDER BY sched_dep_time ASC, carrier DESC, flight DESC;

-- Several partitions by name, and a join of partitions: the storm of 8 February and the flights out of Newark.
SELECT origin, count(*) AS flights, count(*) FILTER (WHERE dep_time IS NULL) AS cancelled FROM flights
 WHERE origin IN ('EWR', 'JFK', 'LGA') AND day = '2013-02-08' GROUP BY origin ORDER BY origin;
SELECT w.time_hour, w.wind_speed, w.visib, count(*) AS flights, count(*) FILTER (WHERE f.dep_time IS NULL) AS cancelled
  FROM weather w
  JOIN flights f ON f.origin = w.origin AND f.day = w.day
                AND f.sched_dep_time >= (w.time_hour AT TIME ZONE 'America/New_York')::time
                AND f.sched_dep_time < (w.time_hour AT TIME ZONE 'America/New_York')::time + interval '1 hour'
 WHERE w.origin = 'EWR' AND w.day = '2013-02-08'
 GROUP BY w.time_hour, w.wind_speed, w.visib ORDER BY w.time_hour DESC LIMIT 8;

-- A run of the ring: half of all tokens, about half of the flights.
SELECT count(*) AS flights_with_negative_tokens FROM flights WHERE cass_token(origin, day) < 0;

-- Without the whole partition key nothing says where to look.
\set want 42K01
\set ON_ERROR_STOP off
SELECT * FROM flights WHERE origin = 'JFK';
\ir common/refused.psql
\set ON_ERROR_STOP off
SELECT avg(dep_delay) FROM flights WHERE carrier = 'UA';
\ir common/refused.psql
\set ON_ERROR_STOP off
DELETE FROM flights WHERE dest = 'IAH';
\ir common/refused.psql
\set ON_ERROR_STOP off
UPDATE flights SET dep_delay = 0;
\ir common/refused.psql

-- One statement may be exempted; so may a session.
SELECT round(avg(dep_delay), 1) AS average_delay FROM flights WHERE carrier = 'UA' AND cass_allow_filtering();
SET cass.enforcement = 'off';
SELECT count(*) FROM flights WHERE dest = 'IAH';
SET cass.enforcement = 'strict';
\set ON_ERROR_STOP off
SELECT count(*) FROM flights;
\ir common/refused.psql
RESET cass.enforcement;

-- A write of a key that is there is an overwrite; a transaction can take it back.
BEGIN;
INSERT INTO flights (origin, day, sched_dep_time, carrier, flight, dep_delay) VALUES ('JFK', '2013-12-31', '23:59', 'B6', 745, 999);
SELECT sched_dep_time, carrier, flight, dest, dep_delay FROM flights WHERE origin = 'JFK' AND day = '2013-12-31' LIMIT 3;
ROLLBACK;
SELECT sched_dep_time, carrier, flight, dest, dep_delay FROM flights WHERE origin = 'JFK' AND day = '2013-12-31' LIMIT 3;

-- A new version waits in the table's delta until VACUUM moves it into a segment.
UPDATE flights SET dep_delay = dep_delay WHERE origin = 'JFK' AND day = '2013-12-31';
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM flights WHERE origin = 'JFK' AND day = '2013-12-31';
VACUUM flights;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM flights WHERE origin = 'JFK' AND day = '2013-12-31';

-- The segments of the table, and the first rows of one as they lie on disk.
SELECT * FROM cass_segments('flights');
SELECT r.* FROM cass_segment_rows('flights', (SELECT run_id FROM cass_segments('flights') ORDER BY rows DESC LIMIT 1)) r LIMIT 5;
