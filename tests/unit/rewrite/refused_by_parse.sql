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

-- says: SELECT takes group columns and aggregates such as COUNT(*)
-- at: *
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
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
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

-- says: totals are written GROUP BY ROLLUP (a, b), without WITH
-- at: ROLLUP
SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ROLLUP

-- says: GROUP BY takes columns, and CASE, FLOOR or DATE_TRUNC of a column
-- at: age
-- try: SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age
SELECT sex, COUNT(*) FROM people GROUP BY age / 10

-- says: OFFSET needs an ORDER BY that says which groups come first
-- at: 3
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people OFFSET 3

-- says: QUALIFY is not available; HAVING chooses among the groups
-- at: QUALIFY
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people QUALIFY age > 3

-- says: joins are not available: a question is about one table; the data owner can join tables behind it, as a view
-- at: towns
SELECT COUNT(*) FROM people, towns

-- says: joins are not available: a question is about one table; the data owner can join tables behind it, as a view
-- at: JOIN
SELECT COUNT(*) FROM people JOIN towns USING (town)

-- says: joins are not available: a question is about one table; the data owner can join tables behind it, as a view
-- at: JOIN
SELECT COUNT(*) FROM people p LEFT JOIN towns t ON p.town = t.town

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
-- try: SELECT COUNT(*) FROM people WHERE born = DATE '2024-02-29'
SELECT COUNT(*) FROM people WHERE born = TIMESTAMP '2024-02-29 00:00:00'

-- says: days are written out, as in DATE '2024-12-31'
-- at: CURRENT_DATE
SELECT COUNT(*) FROM people WHERE born > CURRENT_DATE

-- says: a column is expected on one side
-- at: 'a'
SELECT COUNT(*) FROM people WHERE 'a' = 'a'

-- says: a constant is expected here
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

-- says: a sub-select says FROM which table
-- at: 1)
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
-- try: SELECT AVG(CASE WHEN sex = 'F' THEN 1 WHEN NOT sex = 'F' THEN 0 END) AS s, AVG(CASE WHEN age IS NULL THEN 1 ELSE 0 END) AS n FROM people
SELECT AVG((sex = 'F')::INT) AS s, AVG((age IS NULL)::INT) AS n FROM people

-- says: AVG takes a column, or a CASE of columns and constants
-- at: COALESCE
-- try: SELECT AVG(CASE WHEN age > 5 AND age IS NOT NULL THEN 1 WHEN NOT (age > 5 AND age IS NOT NULL) THEN 0 END) AS a FROM people
SELECT AVG((COALESCE(age, 0) > 5)::INT) AS a FROM people

-- says: SUM takes a column, or a CASE of columns and constants
-- at: age
-- try: SELECT 2 * SUM(age) FROM people
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

-- says: this aggregate is not selected; the answers have what SELECT lists
-- at: SUM(height)
-- try: SELECT sex, COUNT(*), SUM(height) FROM people GROUP BY sex HAVING SUM(height) > 4
SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING SUM(height) > 4

-- says: a question asks for at least one COUNT(*)
-- at: sex
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > 5
SELECT sex FROM people GROUP BY sex HAVING COUNT(*) > 5

-- says: a question asks for at least one COUNT(*)
-- at: sex
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY COUNT(*) DESC LIMIT 3
SELECT sex FROM people GROUP BY sex ORDER BY COUNT(*) DESC LIMIT 3

-- says: LIMIT needs an ORDER BY that says which groups come first
-- at: 3
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY COUNT(*) DESC LIMIT 3
SELECT sex, COUNT(*) FROM people GROUP BY sex LIMIT 3

-- says: LIMIT takes a whole number from 1 on
-- at: 0
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY sex
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 1 LIMIT 0

-- says: LIMIT takes a whole number from 1 on
-- at: 2.5
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY sex
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 1 LIMIT 2.5

-- says: OFFSET needs an ORDER BY that says which groups come first
-- at: 2
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY COUNT(*) DESC OFFSET 2
SELECT sex, COUNT(*) FROM people GROUP BY sex OFFSET 2

-- says: OFFSET takes a whole number from 0 on
-- at: 1.5
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY sex LIMIT 3
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 1 LIMIT 3 OFFSET 1.5

-- says: ORDER BY counts the selected columns from 1 to 2
-- at: 3
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 3

-- says: height is not selected; the answers have what SELECT lists
-- at: height
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY height

-- says: HAVING is about aggregates; a condition on sex goes into WHERE
-- at: sex
-- try: SELECT sex, COUNT(*) AS n FROM people WHERE sex = 'F' GROUP BY sex HAVING n > 3
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING sex = 'F' AND n > 3

-- says: a number with an error is hardly ever equal to another; compare by <, <=, >, >= or BETWEEN
-- at: n
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n = 5

-- says: a number with an error is hardly ever equal to another; compare by <, <=, >, >= or BETWEEN
-- at: n
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n > 2
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n <> 5 AND n > 2

-- says: HAVING compares an aggregate with a number, by <, <=, >, >= or BETWEEN
-- at: n
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n IN (5, 6)

-- says: HAVING compares an aggregate with a number, by <, <=, >, >= or BETWEEN
-- at: n
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n IS NOT NULL

-- says: HAVING compares an aggregate with a number
-- at: n
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n > 'many'

-- says: this aggregate is not selected; the answers have what SELECT lists
-- at: COUNT(height)
-- try: SELECT sex, COUNT(*) AS n, COUNT(height) FROM people GROUP BY sex
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n > COUNT(height)

-- says: m is not selected; the answers have what SELECT lists
-- at: m
-- try: SELECT sex, COUNT(*) AS n FROM people WHERE m > 3 GROUP BY sex
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING m > 3

-- says: this aggregate is not selected; the answers have what SELECT lists
-- at: COUNT(*)
-- try: SELECT sex, COUNT(*) AS n, COUNT(*) / 2 FROM people GROUP BY sex ORDER BY COUNT(*) / 2
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY COUNT(*) / 2

-- says: the least and greatest values would show single people; ask for QUANTILE_CONT(x, 0.95)
-- at: MAX(height)
-- try: SELECT sex, COUNT(*) AS n, QUANTILE_CONT(height, 0.95) FROM people GROUP BY sex HAVING QUANTILE_CONT(height, 0.95) > 180
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING MAX(height) > 180

-- says: LIMIT needs an ORDER BY that says which groups come first
-- at: 1
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people LIMIT 1

-- says: LIMIT needs an ORDER BY that says which groups come first
-- at: 3
-- try: SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((sex), ()) ORDER BY n DESC LIMIT 3
SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY ROLLUP (k) LIMIT 3

-- says: a CASE that rows are grouped by is about columns, and this is about none
-- at: 1 = 1
-- try: SELECT COUNT(*) FROM people
SELECT CASE WHEN 1 = 1 THEN 'girl' ELSE 'other' END AS g, COUNT(*) FROM people GROUP BY g

-- says: GROUPING takes what is in GROUP BY, and age is not
-- at: age
-- try: SELECT sex, GROUPING(sex), COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ())
SELECT sex, GROUPING(age), GROUPING(sex), COUNT(*) FROM people GROUP BY ROLLUP (sex)

-- says: this GROUPING is not selected; the answers have what SELECT lists
-- at: GROUPING
-- try: SELECT sex, GROUPING(sex), COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ()) ORDER BY GROUPING(sex)
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) ORDER BY GROUPING(sex)

-- says: a question asks for at least one COUNT(*)
-- at: GROUPING
-- try: SELECT sex, GROUPING(sex), COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ())
SELECT GROUPING(sex) FROM people GROUP BY ROLLUP (sex)

-- says: GROUPING is selected, ordered by, or compared with a number in HAVING
-- at: GROUPING
SELECT COUNT(*) FROM people WHERE GROUPING(sex) = 1

-- says: the labels of a CASE that rows are grouped by are of one type
-- at: age
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
SELECT CASE WHEN age < 18 THEN 'child' ELSE 0 END AS g, COUNT(*) FROM people GROUP BY g

-- says: the labels of a CASE that rows are grouped by are constants
-- at: height
-- try: SELECT height, age, COUNT(*) FROM people GROUP BY height, age
SELECT CASE WHEN age < 18 THEN height ELSE 0 END AS g, COUNT(*) FROM people GROUP BY g

-- says: g is selected but not in GROUP BY
-- at: age
-- try: SELECT CASE WHEN age < 18 THEN 'child' ELSE 'adult' END AS g, COUNT(*) FROM people GROUP BY CASE WHEN age < 18 THEN 'child' ELSE 'adult' END
SELECT CASE WHEN age < 18 THEN 'child' ELSE 'adult' END AS g, COUNT(*) FROM people

-- says: a CASE that rows are grouped by is about columns, and this is about none
-- at: 'all'
-- try: SELECT COUNT(*) FROM people
SELECT CASE WHEN TRUE THEN 'all' END AS g, COUNT(*) FROM people GROUP BY g

-- says: whole-number division is not available; / gives the ratio
-- at: MOD(age,
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
SELECT MOD(age, 10) AS g, COUNT(*) FROM people GROUP BY g

-- says: ROUND is not available; round the answers, which costs nothing
-- at: ROUND(height,
-- try: SELECT height, COUNT(*) FROM people GROUP BY height
SELECT ROUND(height, -1) AS g, COUNT(*) FROM people GROUP BY g

-- says: a group has a width above 0, as in FLOOR(x / 10) * 10
-- at: height
-- try: SELECT height, COUNT(*) FROM people GROUP BY height
SELECT FLOOR(height / 0) AS g, COUNT(*) FROM people GROUP BY g

-- says: groups of equal width are written FLOOR(x / 10) * 10
-- at: height
-- try: SELECT height, COUNT(*) FROM people GROUP BY height
SELECT height * 2 AS g, COUNT(*) FROM people GROUP BY g

-- says: DATE_TRUNC goes back to day, week, month, quarter or year
-- at: DATE_TRUNC('hour',
-- try: SELECT day, COUNT(*) FROM people GROUP BY day
SELECT DATE_TRUNC('hour', day) AS g, COUNT(*) FROM people GROUP BY g

-- says: EXTRACT takes year, quarter, month, day or dayofweek out of a day
-- at: day)
-- try: SELECT day, COUNT(*) FROM people GROUP BY day
SELECT EXTRACT(hour FROM day) AS g, COUNT(*) FROM people GROUP BY g

-- says: functions are not available: STRFTIME
-- at: STRFTIME(day,
-- try: SELECT DATE_TRUNC('year', day) AS g, COUNT(*) FROM people GROUP BY DATE_TRUNC('year', day)
SELECT STRFTIME(day, '%Y') AS g, COUNT(*) FROM people GROUP BY g

-- says: WIDTH_BUCKET takes a column, two ends and a number of buckets
-- at: WIDTH_BUCKET(height,
-- try: SELECT height, COUNT(*) FROM people GROUP BY height
SELECT WIDTH_BUCKET(height, 100, 220) AS g, COUNT(*) FROM people GROUP BY g

-- says: WIDTH_BUCKET takes a lower end, a higher one, and from 1 to 1000 buckets
-- at: WIDTH_BUCKET(height,
-- try: SELECT height, COUNT(*) FROM people GROUP BY height
SELECT WIDTH_BUCKET(height, 220, 100, 5) AS g, COUNT(*) FROM people GROUP BY g

-- says: these buckets have edges without an exact decimal form; write them as CASE
-- at: WIDTH_BUCKET(height,
-- try: SELECT height, COUNT(*) FROM people GROUP BY height
SELECT WIDTH_BUCKET(height, 100, 200, 3) AS g, COUNT(*) FROM people GROUP BY g

-- says: this can be grouped by; in a condition, compare the column itself with constants
-- at: height
SELECT COUNT(*) FROM people WHERE FLOOR(height / 10) = 17

-- says: this can be grouped by; in a condition, compare the column itself with constants
-- at: DATE_TRUNC('month',
-- try: SELECT COUNT(*) FROM people WHERE day >= DATE '2024-02-01' AND day < DATE '2024-03-01'
SELECT COUNT(*) FROM people WHERE DATE_TRUNC('month', day) = DATE '2024-02-01'

-- says: age is selected but not in GROUP BY
-- at: age,
-- try: SELECT sex, age, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex, age), (age))
SELECT sex, age, COUNT(*) FROM people GROUP BY ROLLUP (sex)

-- says: a question has at most 64 sets of groups
-- at: age,
SELECT COUNT(*) FROM people GROUP BY CUBE (age, height, sex, country, active, code, region)

-- says: GROUP BY cannot mean an aggregate
-- at: 2)
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (2)

-- says: a sub-select in FROM may choose rows, columns and groups of values, and nothing else; the rest belongs into the question around it
-- at: sex,
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex
SELECT COUNT(*) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)

-- says: a sub-select in FROM may choose rows, columns and groups of values, and nothing else; the rest belongs into the question around it
-- at: sex
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT COUNT(*) FROM (SELECT DISTINCT sex FROM people)

-- says: the sub-select does not hand on a column sex
-- at: sex
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
SELECT COUNT(*) FROM (SELECT age FROM people) WHERE sex = 'F'

-- says: a sub-select in FROM may choose rows, columns and groups of values, and nothing else; compute in the question around it
-- at: age
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
SELECT COUNT(*) FROM (SELECT age + 1 AS a FROM people)

-- says: a sub-select in FROM may choose rows, columns and groups of values, and nothing else; compute in the question around it
-- at: *
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM (SELECT * EXCLUDE (age) FROM people)

-- says: two columns of the sub-select are called age
-- at: sex
-- try: SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex
SELECT COUNT(*) FROM (SELECT age, sex AS age FROM people)

-- says: a sub-select in FROM may choose rows, columns and groups of values, and nothing else; the rest belongs into the question around it
-- at: age
-- try: SELECT age, COUNT(*) FROM people GROUP BY age ORDER BY COUNT(*) DESC LIMIT 5
SELECT COUNT(*) FROM (SELECT age FROM people LIMIT 5)

-- says: there is no table y in this question
-- at: y.age,
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
SELECT y.age, COUNT(*) FROM (SELECT age FROM people) AS x GROUP BY y.age

-- says: WITH names plain sub-selects, without RECURSIVE or a list of columns
-- at: x
-- try: SELECT COUNT(*) FROM people
WITH RECURSIVE x AS (SELECT * FROM people) SELECT COUNT(*) FROM x

-- says: WITH names plain sub-selects, without RECURSIVE or a list of columns
-- at: x(a)
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
WITH x(a) AS (SELECT age FROM people) SELECT COUNT(*) FROM x

-- says: a sub-select in FROM may choose rows, columns and groups of values, and nothing else
-- at: *
WITH x AS (SELECT * FROM people UNION ALL SELECT * FROM people) SELECT COUNT(*) FROM x

-- says: a sub-select in FROM may choose rows, columns and groups of values, and nothing else; the rest belongs into the question around it
-- at: sex,
-- try: SELECT sex, AVG(age) AS a FROM people GROUP BY sex
WITH x AS (SELECT sex, AVG(age) AS a FROM people GROUP BY sex) SELECT sex, COUNT(*) FROM x GROUP BY sex

-- says: expecting ( here
-- at: SELECT
WITH x SELECT COUNT(*) FROM people

-- says: this is written AT_LEAST(2, condition, condition, ...)
-- at: AT_LEAST(3,
SELECT COUNT(*) FROM people WHERE AT_LEAST(3, age > 3, sex = 'F')

-- says: this is written AT_LEAST(2, condition, condition, ...)
-- at: AT_LEAST(age
-- try: SELECT COUNT(*) FROM people WHERE AT_LEAST(1, age > 3, sex = 'F')
SELECT COUNT(*) FROM people WHERE AT_LEAST(age > 3, sex = 'F')

-- says: this is written AT_LEAST(2, condition, condition, ...)
-- at: AT_LEAST(0,
SELECT COUNT(*) FROM people WHERE AT_LEAST(0, age > 3, sex = 'F')

-- says: functions are not available: AT_MOST
-- at: AT_MOST(1,
-- try: SELECT COUNT(*) FROM people WHERE NOT AT_LEAST(2, age > 3, sex = 'F')
SELECT COUNT(*) FROM people WHERE AT_MOST(1, age > 3, sex = 'F')

-- says: functions are not available: AT_MOST
-- at: AT_MOST(2,
SELECT COUNT(*) FROM people WHERE AT_MOST(2, age > 3, sex = 'F')

-- says: functions are not available: AT_MOST
-- at: AT_MOST(2,
-- try: SELECT COUNT(*) FROM people WHERE NOT AT_LEAST(3, age > 3, sex = 'F', code = 1)
SELECT COUNT(*) FROM people WHERE AT_MOST(2, age > 3, sex = 'F', code = 1)

-- says: AT_LEAST is a condition, for WHERE and FILTER
-- at: AT_LEAST(1,
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
SELECT AT_LEAST(1, age > 3) FROM people

-- says: nothing can follow the accuracy clause
-- at: HAVING
SELECT sex, COUNT(*) FROM people WITH ERROR 5 HAVING COUNT(*) > 3

-- says: GROUPING chooses among sets of groups; what is beside it is joined by AND
-- at: COUNT
-- try: SELECT sex, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ())
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) HAVING GROUPING(sex) = 1 OR COUNT(*) > 5

-- says: no set of groups in GROUP BY has such a GROUPING
-- at: GROUPING
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING GROUPING(sex) = 1

-- says: GROUPING is a number, and is compared with numbers
-- at: GROUPING
-- try: SELECT sex, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ()) HAVING COUNT(*) > 5
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) HAVING GROUPING(sex) = 'yes' AND COUNT(*) > 5

-- says: GROUPING takes what is in GROUP BY, and age is not
-- at: age
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING GROUPING(age) = 0

-- says: a CASE of GROUPING names a total, as in CASE WHEN GROUPING(x) = 1 THEN 'all' ELSE x END
-- at: GROUPING
-- try: SELECT sex, age, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex, age), (age))
SELECT CASE WHEN GROUPING(sex) = 1 THEN age ELSE sex END AS s, COUNT(*) FROM people GROUP BY ROLLUP (sex)

-- says: a CASE of GROUPING names a total, as in CASE WHEN GROUPING(x) = 1 THEN 'all' ELSE x END
-- at: GROUPING
-- try: SELECT sex, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ())
SELECT CASE WHEN GROUPING(sex) = 1 THEN 'all' END AS s, COUNT(*) FROM people GROUP BY ROLLUP (sex)

-- says: s is selected but not in GROUP BY
-- at: GROUPING
-- try: SELECT CASE WHEN GROUPING(sex) = 1 THEN 'all' ELSE sex END AS s, COUNT(*) FROM people GROUP BY sex
SELECT CASE WHEN GROUPING(sex) = 1 THEN 'all' ELSE sex END AS s, COUNT(*) FROM people

-- says: COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL
-- at: COALESCE
-- try: SELECT CASE WHEN GROUPING(sex) = 1 THEN 'all' ELSE sex END AS s, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ())
SELECT COALESCE(sex, 'all') AS s, COUNT(*) FROM people GROUP BY ROLLUP (sex)

-- says: COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL
-- at: COALESCE
-- try: SELECT sex AS s, COUNT(*) FROM people GROUP BY sex
SELECT COALESCE(sex, 'none') AS s, COUNT(*) FROM people GROUP BY s

-- says: a CASE of GROUPING names a total, as in CASE WHEN GROUPING(x) = 1 THEN 'all' ELSE x END
-- at: GROUPING
-- try: SELECT sex, GROUPING(sex), COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ()) ORDER BY GROUPING(sex) DESC, sex
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) ORDER BY CASE WHEN GROUPING(sex) = 1 THEN 0 ELSE 1 END, sex

-- says: a CASE of GROUPING names a total, as in CASE WHEN GROUPING(x) = 1 THEN 'all' ELSE x END
-- at: GROUPING
-- try: SELECT sex, GROUPING(sex), COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ()) ORDER BY GROUPING(sex), sex
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) ORDER BY CASE WHEN GROUPING(sex) = 0 THEN 0 ELSE 1 END, sex

-- says: a CASE of GROUPING names a total, as in CASE WHEN GROUPING(x) = 1 THEN 'all' ELSE x END
-- at: GROUPING
-- try: SELECT sex, GROUPING(sex), COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ()) ORDER BY GROUPING(sex), sex
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) ORDER BY CASE GROUPING(sex) WHEN 0 THEN 2 ELSE 1 END DESC, sex

-- says: a CASE of GROUPING names a total, as in CASE WHEN GROUPING(x) = 1 THEN 'all' ELSE x END
-- at: GROUPING
-- try: SELECT sex, GROUPING(sex), COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ()) ORDER BY sex
SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) ORDER BY CASE WHEN GROUPING(sex) = 0 AND sex = 'F' THEN 0 ELSE 1 END, sex

-- says: HAVING is about aggregates; a condition on sex goes into WHERE
-- at: sex
-- try: SELECT sex, code, COUNT(*) AS n FROM people WHERE sex = 'F' GROUP BY GROUPING SETS ((sex, code), (sex), ()) HAVING GROUPING(sex, code) <> 3 AND n > 5
SELECT sex, code, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex, code) HAVING sex = 'F' AND n > 5

-- says: HAVING is about aggregates; a condition on sex goes into WHERE
-- at: sex
-- try: SELECT sex, code, COUNT(*) AS n FROM people WHERE sex = 'F' GROUP BY GROUPING SETS ((sex, code), (sex))
SELECT sex, code, COUNT(*) AS n FROM people GROUP BY sex, ROLLUP (code) HAVING sex = 'F'

-- says: HAVING is about aggregates; a condition on sex goes into WHERE
-- at: sex
SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex) HAVING sex IS NULL

-- says: HAVING is about aggregates; a condition on sex goes into WHERE
-- at: sex
SELECT sex, code, COUNT(*) AS n FROM people GROUP BY CUBE (sex, code) HAVING sex = 'F' OR code = 1

-- says: COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL
-- at: COALESCE
-- try: SELECT COUNT(*) FROM people WHERE age > 5
SELECT COUNT(*) FROM people WHERE COALESCE(age, 0) > 5

-- says: COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL
-- at: COALESCE
-- try: SELECT COUNT(*) FROM people WHERE age <= 5 OR age IS NULL
SELECT COUNT(*) FROM people WHERE 5 >= COALESCE(age, 0)

-- says: COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL
-- at: COALESCE
-- try: SELECT COUNT(*) FROM people WHERE age = 0 OR age IS NULL
SELECT COUNT(*) FROM people WHERE COALESCE(age, 0) = 0

-- says: COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL
-- at: COALESCE
-- try: SELECT COUNT(*) FROM people WHERE age <> 0
SELECT COUNT(*) FROM people WHERE COALESCE(age, 0) <> 0

-- says: COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL
-- at: COALESCE
-- try: SELECT COUNT(*) FROM people WHERE NOT (age > 5 AND age IS NOT NULL) OR (NOT (height > 150 AND height IS NOT NULL)) IS TRUE
SELECT COUNT(*) FROM people WHERE NOT COALESCE(age, 0) > 5 OR (COALESCE(height, 0) > 150) IS FALSE

-- says: COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL
-- at: COALESCE
-- try: SELECT COUNT(*) FROM people WHERE sex <> 'F' OR sex IS NULL
SELECT COUNT(*) FROM people WHERE COALESCE(sex, 'none') <> 'F'

-- says: COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL
-- at: COALESCE
SELECT COUNT(*) FROM people WHERE COALESCE(sex, 'none') = 'none'

-- says: COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL
-- at: COALESCE
SELECT COUNT(*) FROM people WHERE COALESCE(age, '10') < '9'

-- says: two columns cannot be compared, and this is the name of one; text is written 'like this'
-- at: "country"
SELECT COUNT(*) FROM people WHERE sex = "country"

-- says: two columns cannot be compared, and this is the name of one; text is written 'like this'
-- at: "F"
SELECT COUNT(*) FROM people WHERE sex IN ("F", 'M')

-- says: a column is compared with one constant; two comparisons are joined by AND
-- at: 20
-- try: SELECT COUNT(*) FROM people WHERE age >= 20 AND age <= 30
SELECT COUNT(*) FROM people WHERE 20 <= age <= 30

-- says: arithmetic is not available; compare a column with a constant
-- at: age
SELECT COUNT(*) FROM people WHERE -age < 3

-- says: && is not available; write AND
-- at: &
SELECT COUNT(*) FROM people WHERE age >= 20 && sex = 'F'

-- says: arithmetic is not available; compare a column with a constant
-- at: age
SELECT COUNT(*) FROM people WHERE age % 2 = 0

-- says: this can be grouped by; in a condition, compare the column itself with constants
-- at: YEAR
-- try: SELECT COUNT(*) FROM people WHERE day >= DATE '2024-01-01' AND day < DATE '2025-01-01' AND day >= DATE '2024-03-01'
SELECT COUNT(*) FROM people WHERE YEAR(day) = 2024 AND MONTH(day) >= 3

-- says: this can be grouped by; in a condition, compare the column itself with constants
-- at: YEAR
-- try: SELECT COUNT(*) FROM people WHERE day >= DATE '2024-01-01' AND day < DATE '2025-01-01' AND (day >= DATE '2024-01-01' AND day < DATE '2024-04-01' OR day >= DATE '2024-10-01' AND day < DATE '2025-01-01')
SELECT COUNT(*) FROM people WHERE YEAR(day) = 2024 AND QUARTER(day) IN (1, 4)

-- says: this can be grouped by; in a condition, compare the column itself with constants
-- at: day
-- try: SELECT COUNT(*) FROM people WHERE day >= DATE '2024-01-01'
SELECT COUNT(*) FROM people WHERE 2023 < EXTRACT(year FROM day)

-- says: this can be grouped by; in a condition, compare the column itself with constants
-- at: YEAR
-- try: SELECT COUNT(*) FROM people WHERE day >= DATE '2023-01-01' AND day < DATE '2025-01-01'
SELECT COUNT(*) FROM people WHERE YEAR(day) BETWEEN 2023 AND 2024

-- says: this can be grouped by; in a condition, compare the column itself with constants
-- at: YEAR
-- try: SELECT COUNT(*) FROM people WHERE NOT (day >= DATE '2024-01-01' AND day < DATE '2025-01-01')
SELECT COUNT(*) FROM people WHERE YEAR(day) <> 2024

-- says: this can be grouped by; in a condition, compare the column itself with constants
-- at: MONTH
SELECT COUNT(*) FROM people WHERE MONTH(day) = 3

-- says: this can be grouped by; in a condition, compare the column itself with constants
-- at: DATE_TRUNC
-- try: SELECT COUNT(*) FROM people WHERE day < DATE '2024-01-08'
SELECT COUNT(*) FROM people WHERE DATE_TRUNC('week', day) <= DATE '2024-01-01'

-- says: this can be grouped by; in a condition, compare the column itself with constants
-- at: DATE_TRUNC
SELECT COUNT(*) FROM people WHERE DATE_TRUNC('month', day) = DATE '2024-02-02'

-- says: this can be grouped by; in a condition, compare the column itself with constants
-- at: YEAR
-- try: SELECT COUNT(*) FROM people
SELECT SUM(CASE WHEN YEAR(day) = 2024 AND EXTRACT(day FROM day) = 5 THEN 1 END), COUNT(*) FROM people

-- says: functions are not available: DATE_PART
-- at: DATE_PART
-- try: SELECT EXTRACT(year FROM day) AS y, COUNT(*) FROM people GROUP BY EXTRACT(year FROM day) ORDER BY EXTRACT(year FROM day)
SELECT DATE_PART('year', day) AS y, COUNT(*) FROM people GROUP BY y ORDER BY y

-- says: functions are not available: WEEKOFYEAR
-- at: WEEKOFYEAR
-- try: SELECT DATE_TRUNC('week', day) AS w, COUNT(*) FROM people GROUP BY DATE_TRUNC('week', day)
SELECT WEEKOFYEAR(day) AS w, COUNT(*) FROM people GROUP BY w

-- says: functions are not available: DAYNAME
-- at: DAYNAME
-- try: SELECT EXTRACT(dayofweek FROM day) AS d, COUNT(*) FROM people GROUP BY EXTRACT(dayofweek FROM day)
SELECT DAYNAME(day) AS d, COUNT(*) FROM people GROUP BY d

-- says: days are written out, as in DATE '2024-12-31'
-- at: '2024
SELECT COUNT(*) FROM people WHERE day >= DATE '2024-02-01' - INTERVAL 1 MONTH

-- says: ROUND is not available; round the answers, which costs nothing
-- at: ROUND
-- try: SELECT 100 * COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*) AS share FROM people
SELECT ROUND(100.0 * COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*), 2) AS share FROM people

-- says: of casts, those to DOUBLE, FLOAT and DATE are available
-- at: 10
-- try: SELECT AVG(age) AS a FROM people
SELECT CAST(AVG(age) AS DECIMAL(10, 2)) AS a FROM people

-- says: AVG takes a column, or a CASE of columns and constants
-- at: age
-- try: SELECT AVG(age) AS a, SUM(age) FILTER (WHERE sex = 'F') / 2 AS h FROM people
SELECT AVG(age * 1.0) AS a, SUM(age / 2) FILTER (WHERE sex = 'F') AS h FROM people

-- says: SUM takes a column, or a CASE of columns and constants
-- at: active
-- try: SELECT SUM(active) FROM people
SELECT SUM(active::INT) FROM people

-- says: a column stands inside of an aggregate here, as in SUM(x)
-- at: s
-- try: SELECT COUNT(*) AS n, SUM(age) AS s, SUM(age) / COUNT(*) AS mean FROM people
SELECT COUNT(*) AS n, SUM(age) AS s, s / n AS mean FROM people

-- says: SELECT takes group columns and aggregates such as COUNT(*)
-- at: people
-- try: SELECT COUNT(*) FROM people
SELECT people.* FROM people

-- says: FETCH is not available; write LIMIT
-- at: FETCH
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC LIMIT 3
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC FETCH FIRST 3 ROWS ONLY

-- says: LIMIT takes a whole number from 1 on
-- at: 50
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n LIMIT 50%

-- says: names are quoted like "this"
-- at: `
-- try: SELECT "sex", COUNT(*) FROM people GROUP BY "sex"
SELECT `sex`, COUNT(*) FROM people GROUP BY `sex`

-- says: the sub-select does not hand on a column age
-- at: age
-- try: SELECT sex AS s, COUNT(*) FROM people GROUP BY sex
SELECT COUNT(*) FROM (SELECT * FROM (SELECT sex AS s FROM people)) WHERE age > 3

-- says: arithmetic is not available; compare a column with a constant
-- at: age
-- try: SELECT age // 10 AS d, COUNT(*) FROM people GROUP BY age // 10
WITH x AS (SELECT age // 10 AS d FROM people) SELECT COUNT(*) FROM x WHERE d = 3

-- says: SELECT takes group columns and aggregates such as COUNT(*)
-- at: age
-- try: SELECT CASE WHEN age < 30 THEN TRUE WHEN NOT age < 30 THEN FALSE END AS young, COUNT(*) FROM people GROUP BY CASE WHEN age < 30 THEN TRUE WHEN NOT age < 30 THEN FALSE END
SELECT age < 30 AS young, COUNT(*) FROM people GROUP BY young

-- says: SELECT takes group columns and aggregates such as COUNT(*)
-- at: active
-- try: SELECT CASE WHEN active = TRUE AND age > 3 THEN TRUE WHEN NOT (active = TRUE AND age > 3) THEN FALSE END AS b, COUNT(*) FROM people GROUP BY CASE WHEN active = TRUE AND age > 3 THEN TRUE WHEN NOT (active = TRUE AND age > 3) THEN FALSE END
SELECT active AND age > 3 AS b, COUNT(*) FROM people GROUP BY 1

-- says: functions are not available: TRUNC
-- at: TRUNC
-- try: SELECT age // 10 AS d, COUNT(*) FROM people GROUP BY age // 10
SELECT TRUNC(age / 10) AS d, COUNT(*) FROM people GROUP BY d

-- says: only counts, sums, averages and constants can be computed with
-- at: age
-- try: SELECT FLOOR(age / 10) AS d, COUNT(*) FROM people GROUP BY FLOOR(age / 10) ORDER BY FLOOR(age / 10)
SELECT FLOOR(age / 10)::INT AS d, COUNT(*) FROM people GROUP BY d ORDER BY d

-- says: only counts, sums, averages and constants can be computed with
-- at: day
-- try: SELECT day AS d, COUNT(*) FROM people WHERE day < '2024-02-01' GROUP BY day
SELECT day::DATE AS d, COUNT(*) FROM people WHERE day::DATE < '2024-02-01' GROUP BY d

-- says: SUM takes a column, or a CASE of columns and constants
-- at: 2
-- try: SELECT 2 * COUNT(*) FILTER (WHERE sex = 'F') AS s, COUNT(*) AS n FROM people
SELECT SUM(2) FILTER (WHERE sex = 'F') AS s, SUM(1) AS n FROM people

-- says: SUM takes a column, or a CASE of columns and constants
-- at: COALESCE
-- try: SELECT SUM(CASE WHEN age IS NULL THEN 0 ELSE age END) AS s FROM people
SELECT SUM(COALESCE(age, 0)) AS s FROM people

-- says: ANY and ALL are not available; list the values with IN
-- at: ANY
SELECT COUNT(*) FROM people WHERE sex = ANY(['F'])

-- says: IN takes a list of values in brackets
-- at: 'F'
-- try: SELECT COUNT(*) FROM people WHERE sex IN ('F')
SELECT COUNT(*) FROM people WHERE sex IN 'F'
