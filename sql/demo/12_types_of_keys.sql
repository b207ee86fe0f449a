-- Lesson: types of keys
\set schema cycling
\ir common/schema.psql

-- A simple primary key, written in the two ways of the lesson.
CREATE TABLE cyclist_name (id uuid PRIMARY KEY, lastname text, firstname text) USING cass;
DROP TABLE cyclist_name;
CREATE TABLE cyclist_name (id uuid, lastname text, firstname text, PRIMARY KEY (id)) USING cass;

INSERT INTO cyclist_name (id, lastname, firstname) VALUES ('41d01b63-244e-435d-bd6d-5dc8a0addb8c', 'A', 'J');
SELECT cass_token(id), id, lastname, firstname FROM cyclist_name;
SELECT must_equal((SELECT cass_token(id) FROM cyclist_name), -2767158835560740559) AS "the lesson's token";

-- The name of a cyclist, given the ID. Only the key can be asked for.
SELECT lastname, firstname FROM cyclist_name WHERE id = '41d01b63-244e-435d-bd6d-5dc8a0addb8c';
\set want 42K01
\set ON_ERROR_STOP off
SELECT id FROM cyclist_name WHERE lastname = 'A';
\ir common/refused.psql

-- A composite partition key.
CREATE TABLE rank_by_year_and_name (
  race_year int,
  race_name text,
  cyclist_name text,
  rank int,
  PRIMARY KEY (race_year, race_name, rank)
) USING cass WITH (partition_key = 'race_year, race_name');

INSERT INTO rank_by_year_and_name (race_year, race_name, cyclist_name, rank) VALUES (2000, '1', 'A', 1);
SELECT cass_token(race_year, race_name), race_year, race_name, cyclist_name, rank FROM rank_by_year_and_name;
SELECT must_equal((SELECT cass_token(race_year, race_name) FROM rank_by_year_and_name), -108427357362698080)
         AS "the lesson's token";

-- Values for all columns of the partition key have to be supplied.
SELECT rank, cyclist_name FROM rank_by_year_and_name WHERE race_year = 2000 AND race_name = '1';
\set ON_ERROR_STOP off
SELECT rank, cyclist_name FROM rank_by_year_and_name WHERE race_year = 2000;
\ir common/refused.psql

-- A partition key with a clustering column, highest points first.
CREATE TABLE cyclist_category (
  category text,
  points int,
  id uuid,
  lastname text,
  PRIMARY KEY (category, points)
) USING cass WITH (clustering_order = 'points DESC');

INSERT INTO cyclist_category (category, points, id, lastname)
VALUES ('best', 1, '41d01b63-244e-435d-bd6d-5dc8a0addb8c', 'J');
SELECT cass_token(category), category, points, id, lastname FROM cyclist_category;
SELECT must_equal((SELECT cass_token(category) FROM cyclist_category), 8664726657035972693) AS "the lesson's token";
SELECT cass_token(points), category, points, id, lastname FROM cyclist_category;
SELECT must_equal((SELECT cass_token(points) FROM cyclist_category), -4069959284402364209) AS "the lesson's token";

-- The cyclists of a category, sorted by points: category and points together identify a row.
INSERT INTO cyclist_category (category, points, id, lastname) VALUES
  ('best', 3, 'e7ae5cf3-d358-4d99-b900-85902fda9bb0', 'F'),
  ('best', 2, 'fb372533-eb95-4bb4-8685-6ef61e994caa', 'M');
SELECT points, lastname FROM cyclist_category WHERE category = 'best';
SELECT must_equal(array_agg(points), '{3,2,1}') AS "sorted by points"
  FROM (SELECT points FROM cyclist_category WHERE category = 'best') c;
\set ON_ERROR_STOP off
SELECT lastname FROM cyclist_category WHERE points = 1;
\ir common/refused.psql
