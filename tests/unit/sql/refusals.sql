--- Each block: what is said, at which word, what is offered instead (if anything), and the question.

-- says: the least and greatest values would show single people; ask for QUANTILE_CONT(x, 0.95)
-- at: MIN(age),
-- try: SELECT sex, QUANTILE_CONT(age, 0.05), QUANTILE_CONT(age, 0.95) AS quantile_cont_2 FROM people GROUP BY sex
SELECT sex, MIN(age), MAX(age) FROM people GROUP BY sex

-- says: DISTINCT is not available; GROUP BY the column and count the groups
-- at: DISTINCT
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(DISTINCT sex) FROM people

-- says: APPROX_COUNT_DISTINCT is not available; COUNT, SUM, AVG, STDDEV and QUANTILE_CONT are
-- at: APPROX_COUNT_DISTINCT(sex)
-- try: SELECT COUNT(*) FROM people
SELECT APPROX_COUNT_DISTINCT(sex) FROM people

-- says: OVER is not available
-- at: COUNT(*)
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) OVER () FROM people

-- says: only counts, sums, averages and constants can be computed with
-- at: COUNT(*)::INT
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*)::INT FROM people

-- says: COUNT takes * or one column
-- at: sex)
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(age, sex) FROM people

-- says: a column is expected here
-- at: people.*)
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(people.*) FROM people

-- says: SELECT takes group columns and aggregates such as COUNT(*)
-- at: *
-- try: SELECT COUNT(*) FROM people
SELECT * FROM people

-- says: LIMIT is not available; every group is answered, and the price is for all of them
-- at: LIMIT
-- try: SELECT COUNT(*) FROM people
SELECT * FROM people LIMIT 10

-- says: a question asks for at least one COUNT(*)
-- at: sex
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex FROM people

-- says: SELECT DISTINCT is not available; GROUP BY lists every value
-- at: DISTINCT
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT DISTINCT sex FROM people

-- says: sex is selected but not in GROUP BY
-- at: sex,
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex, COUNT(*) FROM people

-- says: age is selected but not in GROUP BY
-- at: age,
-- try: SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age
SELECT sex, age, COUNT(*) FROM people GROUP BY sex

-- says: functions are not available: UPPER
-- at: upper(sex),
-- try: SELECT COUNT(*) FROM people
SELECT upper(sex), COUNT(*) FROM people GROUP BY 1

-- says: GROUP BY counts the selected columns from 1 to 2
-- at: 3
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
SELECT age, COUNT(*) FROM people GROUP BY 3

-- says: GROUP BY cannot mean an aggregate
-- at: 2
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
SELECT age, COUNT(*) FROM people GROUP BY 2

-- says: two selected columns are called N
-- at: COUNT(*)
-- try: SELECT COUNT(*) AS n, COUNT(*) FROM people
SELECT COUNT(*) AS n, COUNT(*) AS N FROM people

-- says: GROUP BY ALL is not available; name the columns
-- at: GROUP
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people GROUP BY ALL

-- says: GROUP BY ALL is not available; name the columns
-- at: GROUP
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex, COUNT(*) FROM people GROUP BY ALL

-- says: GROUP BY takes plain columns
-- at: sex,
-- try: SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex, age)

-- says: after WITH comes ERROR, RMSE, EPSILON or RHO, for example WITH ERROR 50 CONFIDENCE 95%
-- at: ROLLUP
SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ROLLUP

-- says: arithmetic is not available; compare a column with a constant
-- at: age
-- try: SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age
SELECT sex, COUNT(*) FROM people GROUP BY age / 10

-- says: HAVING is not available; filter the answers, which costs nothing
-- at: HAVING
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > 10

-- says: LIMIT is not available; every group is answered, and the price is for all of them
-- at: LIMIT
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 2 DESC LIMIT 3

-- says: OFFSET is not available; every group is answered
-- at: OFFSET
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people OFFSET 3

-- says: QUALIFY is not available; filter the answers, which costs nothing
-- at: QUALIFY
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people QUALIFY age > 3

-- says: joins are not available: a question is about one table
-- at: towns
SELECT COUNT(*) FROM people, towns

-- says: joins are not available: a question is about one table
-- at: JOIN
SELECT COUNT(*) FROM people JOIN towns USING (town)

-- says: joins are not available: a question is about one table
-- at: JOIN
SELECT COUNT(*) FROM people p LEFT JOIN towns t ON p.town = t.town

-- says: sub-selects are not available
-- at: SELECT
SELECT COUNT(*) FROM (SELECT * FROM people)

-- says: sub-selects are not available; list the values
-- at: IN
SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people)

-- says: sub-selects are not available
-- at: SELECT
SELECT COUNT(*) FROM people WHERE age > (SELECT 3)

-- says: sub-selects are not available
-- at: SELECT
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1)

-- says: UNION, INTERSECT and EXCEPT are not available; ask one question at a time
-- at: UNION
SELECT COUNT(*) FROM people UNION SELECT 1

-- says: sampling is not available; every row is counted
-- at: TABLESAMPLE
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people TABLESAMPLE 10%

-- says: sampling is not available; every row is counted
-- at: 10
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people USING SAMPLE 10

-- says: functions are not available: READ_CSV
-- at: read_csv('people.csv')
SELECT COUNT(*) FROM read_csv('people.csv')

-- says: a table is named without its schema
-- at: main.people
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM main.people

-- says: the columns of a table cannot be renamed
-- at: a,
SELECT COUNT(*) FROM people AS p(a, b)

-- says: a question says FROM which table
-- at: COUNT(*)
SELECT COUNT(*)

-- says: there is no table town in this question
-- at: town.name
-- try: SELECT COUNT(*) FROM people WHERE name = 'x'
SELECT COUNT(*) FROM people WHERE town.name = 'x'

-- says: there is no table people in this question
-- at: people.age
-- try: SELECT COUNT(*) FROM people WHERE age = 3
SELECT COUNT(*) FROM people AS p WHERE people.age = 3

-- says: a condition is expected here, for example a column compared with a value
-- at: active
-- try: SELECT COUNT(*) FROM people WHERE active = TRUE
SELECT COUNT(*) FROM people WHERE active

-- says: a condition is expected here, for example a column compared with a value
-- at: active
-- try: SELECT COUNT(*) FROM people WHERE NOT active = TRUE AND age = 3
SELECT COUNT(*) FROM people WHERE NOT active AND age = 3

-- says: a condition is expected here, for example a column compared with a value
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE age = TRUE
SELECT COUNT(*) FROM people WHERE age

-- says: a comparison with NULL is never true; ask for IS NULL or IS NOT NULL
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE age IS NULL
SELECT COUNT(*) FROM people WHERE age = NULL

-- says: a comparison with NULL is never true; ask for IS NULL or IS NOT NULL
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE age IS NOT NULL
SELECT COUNT(*) FROM people WHERE age <> NULL

-- says: a comparison with NULL is never true; ask for IS NULL or IS NOT NULL
-- at: sex
-- try: SELECT COUNT(*) FROM people WHERE sex IN ('F')
SELECT COUNT(*) FROM people WHERE sex IN ('F', NULL)

-- says: two columns cannot be compared; compare a column with a constant
-- at: height
SELECT COUNT(*) FROM people WHERE age = height

-- says: arithmetic is not available; compare a column with a constant
-- at: age
SELECT COUNT(*) FROM people WHERE age + 1 > 30

-- says: arithmetic is not available; compare a column with a constant
-- at: 10
SELECT COUNT(*) FROM people WHERE age > 10 * 3

-- says: arithmetic is not available; compare a column with a constant
-- at: sex
SELECT COUNT(*) FROM people WHERE sex || 'x' = 'Fx'

-- says: functions are not available: LOWER
-- at: lower(sex)
SELECT COUNT(*) FROM people WHERE lower(sex) = 'f'

-- says: CASE stands inside of SUM, AVG or COUNT; here, use AND, OR and NOT
-- at: age
SELECT COUNT(*) FROM people WHERE CASE WHEN age = 3 THEN TRUE END

-- says: parameters are not available; write the value
-- at: age
SELECT COUNT(*) FROM people WHERE age = ?

-- says: this is not a number in range
-- at: 1e5000
SELECT COUNT(*) FROM people WHERE age = 1e5000

-- says: '2024-02-30' is not a day; days are written 2024-12-31
-- at: '2024-02-30'
SELECT COUNT(*) FROM people WHERE born = DATE '2024-02-30'

-- says: functions are not available: DATE
-- at: DATE('2024-02-29')
-- try: SELECT COUNT(*) FROM people WHERE born = DATE '2024-02-29'
SELECT COUNT(*) FROM people WHERE born = DATE('2024-02-29')

-- says: only DATE '2024-12-31' can be cast
-- at: '2024-02-29
SELECT COUNT(*) FROM people WHERE born = TIMESTAMP '2024-02-29 00:00:00'

-- says: functions are not available: CURRENT_DATE
-- at: born
SELECT COUNT(*) FROM people WHERE born > CURRENT_DATE

-- says: a column is expected on one side
-- at: 'a'
SELECT COUNT(*) FROM people WHERE 'a' = 'a'

-- says: this is not available in a question: TUPLE
-- at: age,
SELECT COUNT(*) FROM people WHERE (age, sex) = (3, 'F')

-- says: IS is for NULL, TRUE and FALSE
-- at: sex
-- try: SELECT COUNT(*) FROM people WHERE sex = 'F'
SELECT COUNT(*) FROM people WHERE sex IS 'F'

-- says: BETWEEN SYMMETRIC is not available; write the smaller bound first
-- at: age
SELECT COUNT(*) FROM people WHERE age BETWEEN SYMMETRIC 5 AND 3

-- says: IN takes a list of values in brackets
-- at: ages
SELECT COUNT(*) FROM people WHERE age IN ages

-- says: expecting ) here
-- at: 3
SELECT COUNT(*) FROM people WHERE (age = 3

-- says: the question cannot be understood from here on
-- at: =
SELECT COUNT(*) FROM people WHERE age = = 3

-- says: the question cannot be understood from here on
-- at: age
SELECT COUNT(*) FROM people WHERE age = 3 age

-- says: only one statement can be asked at a time
-- at: ;
SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people

-- says: a question begins with SELECT, or EXPLAIN SELECT; nothing else is run
-- at: WITH
WITH x AS (SELECT 1) SELECT COUNT(*) FROM x

-- says: a question begins with SELECT, or EXPLAIN SELECT; nothing else is run
-- at: FROM
FROM people SELECT COUNT(*)

-- says: a question begins with SELECT, or EXPLAIN SELECT; nothing else is run
-- at: (SELECT
-- try: SELECT COUNT(*) FROM people
(SELECT COUNT(*) FROM people)

-- says: a question begins with SELECT, or EXPLAIN SELECT; nothing else is run
-- at: DROP
DROP TABLE people

-- says: a question begins with SELECT, or EXPLAIN SELECT; nothing else is run
-- at: ATTACH
ATTACH 'other.db'

-- says: a question begins with SELECT, or EXPLAIN SELECT; nothing else is run
-- at: PRAGMA
PRAGMA database_list

-- says: a question begins with SELECT, or EXPLAIN SELECT; nothing else is run
-- at: ANALYZE
-- try: EXPLAIN SELECT COUNT(*) FROM people
EXPLAIN ANALYZE SELECT COUNT(*) FROM people

-- says: a question begins with SELECT, or EXPLAIN SELECT; nothing else is run
-- at: COPY
COPY people TO 'x.csv'

-- says: a question writes nothing
-- at: INTO
SELECT COUNT(*) INTO copy FROM people

-- says: a question locks nothing
-- at: FOR
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people FOR UPDATE

-- says: a ratio of ratios is not available; select them side by side
-- at: AVG(age)
-- try: SELECT AVG(age), AVG(height) AS avg_2 FROM people
SELECT AVG(age) / AVG(height) FROM people

-- says: a product of two aggregates is not available; select both
-- at: AVG(age)
-- try: SELECT AVG(age), COUNT(*) FROM people
SELECT AVG(age) * COUNT(*) AS t FROM people

-- says: ROUND is not available; round the answers, which costs nothing
-- at: ROUND(AVG(age),
-- try: SELECT AVG(age) AS r FROM people
SELECT ROUND(AVG(age), 2) AS r FROM people

-- says: ratios over different counts cannot be added up; select them side by side
-- at: AVG(age)
-- try: SELECT AVG(age), AVG(height) AS avg_2 FROM people WITH ERROR 5
SELECT AVG(age) + AVG(height) FROM people WITH ERROR 5

-- says: functions are not available: MEAN
-- at: mean(age)
-- try: SELECT AVG(age) AS m FROM people
SELECT mean(age) AS m FROM people

-- says: WITHIN GROUP is not available; write QUANTILE_CONT(x, 0.5)
-- at: PERCENTILE_CONT(0.3)
-- try: SELECT QUANTILE_CONT(age, 0.3) FROM people
SELECT PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY age) FROM people

-- says: SUM takes a column, or a CASE of columns and constants
-- at: age
-- try: SELECT SUM(CASE WHEN age > 3 THEN 1 ELSE 0 END) AS s FROM people
SELECT SUM(age > 3) AS s FROM people

-- says: AVG takes a column, or a CASE of columns and constants
-- at: sex
-- try: SELECT AVG(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) AS s FROM people
SELECT AVG((sex = 'F')::INT) AS s FROM people

-- says: SUM takes a column, or a CASE of columns and constants
-- at: age
-- try: SELECT COUNT(*) FROM people
SELECT SUM(age * 2) FROM people

-- says: whole-number division is not available; / gives the ratio
-- at: COUNT(*)
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) // 2 FROM people

-- says: whole-number division is not available; / gives the ratio
-- at: COUNT(*)
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) % 2 FROM people

-- says: only counts, sums, averages and constants can be computed with; select STDDEV_SAMP by itself
-- at: STDDEV(age)
-- try: SELECT AVG(age), STDDEV_SAMP(age) FROM people
SELECT AVG(age) + STDDEV(age) FROM people

-- says: a quantile is for a number from 0 to 1, as in QUANTILE_CONT(x, 0.9)
-- at: age,
-- try: SELECT COUNT(*) FROM people
SELECT QUANTILE(age, 2) FROM people

-- says: a quantile is for a number from 0 to 1, as in QUANTILE_CONT(x, 0.9)
-- at: age,
-- try: SELECT COUNT(*) FROM people
SELECT QUANTILE(age, sex) FROM people

-- says: functions are not available: ARRAY
-- at: 0.1,
-- try: SELECT COUNT(*) FROM people
SELECT QUANTILE_CONT(age, [0.1, 0.9]) FROM people

-- says: a quantile takes a column; use FILTER for a condition
-- at: sex
-- try: SELECT COUNT(*) FROM people
SELECT MEDIAN(CASE WHEN sex = 'F' THEN age END) FROM people

-- says: DISTINCT is not available; GROUP BY the column and count the groups
-- at: DISTINCT
-- try: SELECT COUNT(*) FROM people
SELECT SUM(DISTINCT age) FROM people

-- says: MODE is not available; COUNT, SUM, AVG, STDDEV and QUANTILE_CONT are
-- at: MODE(sex)
-- try: SELECT COUNT(*) FROM people
SELECT MODE(sex) FROM people

-- says: a condition is expected here, for example a column compared with a value
-- at: active
-- try: SELECT SUM(CASE WHEN active = TRUE THEN 1 ELSE 0 END) FROM people
SELECT SUM(CASE WHEN active THEN 1 ELSE 0 END) FROM people

-- says: THEN and ELSE take a number, a column or NULL
-- at: 'a'
-- try: SELECT COUNT(*) FROM people
SELECT SUM(CASE WHEN age < 30 THEN 'a' END) FROM people

-- says: arithmetic is not available; compare a column with a constant
-- at: age
-- try: SELECT COUNT(*) FROM people
SELECT SUM(CASE WHEN age < 30 THEN age + 1 END) FROM people

-- says: two columns cannot be compared; compare a column with a constant
-- at: country
SELECT COUNT(*) FROM people WHERE sex LIKE country

-- says: a pattern is text, as in LIKE 'A%'
-- at: sex
SELECT COUNT(*) FROM people WHERE sex LIKE 3

-- says: of patterns, LIKE and ILIKE without ESCAPE are available
-- at: sex
SELECT COUNT(*) FROM people WHERE sex LIKE 'a!%' ESCAPE '!'

-- says: of patterns, LIKE and ILIKE without ESCAPE are available
-- at: sex
SELECT COUNT(*) FROM people WHERE sex SIMILAR TO 'F'

-- says: an aggregate is selected; it cannot stand in a condition
-- at: AVG(age)
SELECT COUNT(*) FROM people WHERE AVG(age) > 3

-- says: an aggregate is selected; it cannot stand in a condition
-- at: COUNT(*)
SELECT COUNT(*) FROM people WHERE COUNT(*) > 3

-- says: a question asks about rows, and this is a constant
-- at: 5
-- try: SELECT COUNT(*) FROM people
SELECT 5 + 3 FROM people

-- says: this divides by 0
-- at: COUNT(*)
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) / 0 FROM people

-- says: a column stands inside of an aggregate here, as in SUM(x)
-- at: age
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
SELECT age + COUNT(*) FROM people GROUP BY age

-- says: only counts, sums, averages and constants can be computed with
-- at: COALESCE(COUNT(*),
-- try: SELECT COUNT(*) FROM people
SELECT COALESCE(COUNT(*), 1) FROM people

-- says: a comparison with NULL is never true; ask for IS NULL or IS NOT NULL
-- at: age
-- try: SELECT COUNT(*) FILTER (WHERE age IS NULL), SUM(age) FROM people
SELECT COUNT(*) FILTER (WHERE age = NULL), SUM(age) FROM people

-- says: OVER is not available
-- at: SUM(age)
-- try: SELECT SUM(age) FROM people
SELECT SUM(age) OVER () FROM people

-- says: SUM takes a column, or a CASE of columns and constants
-- at: *)
-- try: SELECT COUNT(*) FROM people
SELECT SUM(*) FROM people

-- says: the question cannot be understood from here on
-- at: )
SELECT SUM(age, height) FROM people

-- says: CORR is not available; COUNT, SUM, AVG, STDDEV and QUANTILE_CONT are
-- at: CORR(age,
-- try: SELECT COUNT(*) FROM people
SELECT CORR(age, height) FROM people

-- says: no error is given for t; an amount without ON is for all that are not named
-- at: 5
-- try: SELECT COUNT(*) AS n, SUM(age) AS t FROM people WITH ERROR 5 ON n, 5
SELECT COUNT(*) AS n, SUM(age) AS t FROM people WITH ERROR 5 ON n

-- says: nothing is called u here; there is n, t
-- at: 3
-- try: SELECT COUNT(*) AS n, SUM(age) AS t FROM people WITH ERROR 5 ON n, 5
SELECT COUNT(*) AS n, SUM(age) AS t FROM people WITH ERROR 5 ON n, 3 ON u

-- says: the error of n is given twice
-- at: 3
-- try: SELECT COUNT(*) AS n FROM people WITH ERROR 5 ON n
SELECT COUNT(*) AS n FROM people WITH ERROR 5 ON n, 3 ON n

-- says: after ON comes the name of an output
-- at: ON
SELECT COUNT(*) AS n FROM people WITH ERROR 5 ON

-- says: nothing can follow the accuracy clause
-- at: ON
SELECT COUNT(*) AS n FROM people WITH RMSE 5 ON n

-- says: nothing can follow the accuracy clause
-- at: ,
SELECT COUNT(*) AS n FROM people WITH ERROR 5, 6
