-- Loads the data set: scripts/demo.sh sets :data to the folder of its CSV files, and :library to a mark of the library.

-- One partition is one airport's day, newest departure first. Carrier and flight number break ties.
CREATE TABLE flights (
  origin text, day date, sched_dep_time time, carrier text, flight int,
  dest text, tailnum text, dep_time time, dep_delay int,
  sched_arr_time time, arr_time time, arr_delay int, air_time int, distance int,
  PRIMARY KEY (origin, day, sched_dep_time, carrier, flight)
) USING cass WITH (partition_key = 'origin, day', clustering_order = 'sched_dep_time DESC');

-- The clustering column is the instant, not the hour of the local day: on 3 November the clock shows 01:00 twice.
CREATE TABLE weather (
  origin text, day date, time_hour timestamptz,
  temp float8, dewp float8, humid float8, wind_dir int, wind_speed float8, wind_gust float8,
  precip float8, pressure float8, visib float8,
  PRIMARY KEY (origin, day, time_hour)
) USING cass WITH (partition_key = 'origin, day', clustering_order = 'time_hour DESC');

\cd :data
\timing on
\copy flights FROM 'flights.csv' WITH (FORMAT csv)
\copy weather FROM 'weather.csv' WITH (FORMAT csv)

-- VACUUM moves the new rows into segment files, in the order of their tokens and clustering columns.
VACUUM (ANALYZE) flights, weather;
\timing off

-- The library that wrote these tables; the demonstration loads again when another one is installed.
CREATE TABLE loaded (library text);
INSERT INTO loaded VALUES (:'library');
