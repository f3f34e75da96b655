--- Each block: what is said, at which word, what is offered instead (if anything), and the question.

-- says: COUNT(DISTINCT x) takes one column, or CASE WHEN condition THEN column END
-- at: COUNT(DISTINCT
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(DISTINCT sex, age) FROM people

-- says: KURTOSIS is not available; COUNT, SUM, AVG, STDDEV and QUANTILE_CONT are
-- at: KURTOSIS(sex)
-- try: SELECT COUNT(*) FROM people
SELECT KURTOSIS(sex) FROM people

-- says: SELECT takes group columns and aggregates such as COUNT(*)
-- at: COUNT(*)
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) OVER () FROM people

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

-- says: single rows are not shown; a question asks for numbers of groups, such as COUNT(*)
-- at: sex
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex FROM people

-- says: sex is selected but not in GROUP BY
-- at: sex,
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex, COUNT(*) FROM people

-- says: age is selected but not in GROUP BY
-- at: age,
-- try: SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age
SELECT sex, age, COUNT(*) FROM people GROUP BY sex

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

-- says: lines of ROLLUP, CUBE and GROUPING SETS are not computed with; select what you need of them
-- at: ROUND
-- try: SELECT sex, AVG(age) AS a FROM people GROUP BY GROUPING SETS ((sex), ())
SELECT sex, ROUND(AVG(age), 1) AS a FROM people GROUP BY ROLLUP (sex)

-- says: totals are written GROUP BY ROLLUP (a, b), without WITH
-- at: ROLLUP
SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ROLLUP

-- says: sex is selected but not in GROUP BY
-- at: sex,
-- try: SELECT sex, (age / 10), COUNT(*) FROM people GROUP BY sex, (age / 10)
SELECT sex, COUNT(*) FROM people GROUP BY age / 10

-- says: qualify is not available
-- at: age
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM people QUALIFY age > 3

-- says: joins are not available here: they are for tables that the config declares; the data owner can declare one under [tables], or join tables behind this one, as a view
-- at: towns
SELECT COUNT(*) FROM people, towns

-- says: joins are not available here: they are for tables that the config declares; the data owner can declare one under [tables], or join tables behind this one, as a view
-- at: JOIN
SELECT COUNT(*) FROM people JOIN towns USING (town)

-- says: joins are not available here: they are for tables that the config declares; the data owner can declare one under [tables], or join tables behind this one, as a view
-- at: JOIN
SELECT COUNT(*) FROM people p LEFT JOIN towns t ON p.town = t.town

-- says: sub-selects are not available; list the values
-- at: IN
SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people)

-- says: sub-selects are not available
-- at: SELECT
SELECT COUNT(*) FROM people WHERE age > (SELECT 3)

-- says: rows are chosen by constants; ask what is in the brackets first, and write its number here
-- at: SELECT
SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)

-- says: sub-selects are not available
-- at: SELECT
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1)

-- says: of operations on sets, UNION ALL is available; else ask one question at a time
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

-- says: a comparison with NULL is never true; ask for IS NULL or IS NOT NULL
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE age IS NULL
SELECT COUNT(*) FROM people WHERE age = NULL

-- says: a comparison with NULL is never true; ask for IS NULL or IS NOT NULL
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE age IS NOT NULL
SELECT COUNT(*) FROM people WHERE age <> NULL

-- says: this question has parameters, and there are no values for them
-- at: age
SELECT COUNT(*) FROM people WHERE age = ?

-- says: this is not a number in range
-- at: 1e5000
SELECT COUNT(*) FROM people WHERE age = 1e5000

-- says: '2024-02-30' is not a day; days are written 2024-12-31
-- at: '2024-02-30'
SELECT COUNT(*) FROM people WHERE born = DATE '2024-02-30'

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
FROM people

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
-- try: SELECT QUANTILE_CONT(age, 0.1) AS quantile_1, QUANTILE_CONT(age, 0.9) AS quantile_2 FROM people
SELECT QUANTILE_CONT(age, [0.1, 0.9]) FROM people

-- says: a quantile takes a column; use FILTER for a condition
-- at: sex
-- try: SELECT COUNT(*) FROM people
SELECT MEDIAN(CASE WHEN sex = 'F' THEN age END) FROM people

-- says: of DISTINCT, COUNT(DISTINCT column) is available
-- at: age
-- try: SELECT COUNT(*) FROM people
SELECT SUM(DISTINCT age) FROM people

-- says: KURTOSIS is not available; COUNT, SUM, AVG, STDDEV and QUANTILE_CONT are
-- at: KURTOSIS(sex)
-- try: SELECT COUNT(*) FROM people
SELECT KURTOSIS(sex) FROM people

-- says: of patterns, LIKE, ILIKE without ESCAPE, SIMILAR TO and REGEXP_MATCHES are available
-- at: sex
SELECT COUNT(*) FROM people WHERE sex LIKE 'a!%' ESCAPE '!'

-- says: ~ means a part of the text to some databases and the whole of it to others; write REGEXP_MATCHES
-- at: ~
SELECT COUNT(*) FROM people WHERE sex ~ 'F'

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

-- says: a comparison with NULL is never true; ask for IS NULL or IS NOT NULL
-- at: age
-- try: SELECT COUNT(*) FILTER (WHERE age IS NULL), SUM(age) FROM people
SELECT COUNT(*) FILTER (WHERE age = NULL), SUM(age) FROM people

-- says: SELECT takes group columns and aggregates such as COUNT(*)
-- at: SUM(age)
-- try: SELECT SUM(age) FROM people
SELECT SUM(age) OVER () FROM people

-- says: this is not available in a question: STAR
-- at: *)
-- try: SELECT COUNT(*) FROM people
SELECT SUM(*) FROM people

-- says: the question cannot be understood from here on
-- at: )
SELECT SUM(age, height) FROM people

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

-- says: LIMIT takes a whole number from 1 on
-- at: 0
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY sex
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 1 LIMIT 0

-- says: LIMIT takes a whole number from 1 on
-- at: 2.5
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY sex
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 1 LIMIT 2.5

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

-- says: m is not selected; the answers have what SELECT lists
-- at: m
-- try: SELECT sex, COUNT(*) AS n FROM people WHERE m > 3 GROUP BY sex
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING m > 3

-- says: height is not selected; the answers have what SELECT lists
-- at: height)
-- try: SELECT sex, COUNT(*) AS n, QUANTILE_CONT(height, 0.95) FROM people GROUP BY sex HAVING QUANTILE_CONT(height, 0.95) > 180
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING MAX(height) > 180

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

-- says: GROUPING is selected, ordered by, or compared with a number in HAVING
-- at: GROUPING
SELECT COUNT(*) FROM people WHERE GROUPING(sex) = 1

-- says: g is selected but not in GROUP BY
-- at: age
-- try: SELECT CASE WHEN age < 18 THEN 'child' ELSE 'adult' END AS g, COUNT(*) FROM people GROUP BY CASE WHEN age < 18 THEN 'child' ELSE 'adult' END
SELECT CASE WHEN age < 18 THEN 'child' ELSE 'adult' END AS g, COUNT(*) FROM people

-- says: a CASE that rows are grouped by is about columns, and this is about none
-- at: 'all'
-- try: SELECT COUNT(*) FROM people
SELECT CASE WHEN TRUE THEN 'all' END AS g, COUNT(*) FROM people GROUP BY g

-- says: DATE_TRUNC goes back to day, week, month, quarter or year
-- at: DATE_TRUNC('hour',
-- try: SELECT day, COUNT(*) FROM people GROUP BY day
SELECT DATE_TRUNC('hour', day) AS g, COUNT(*) FROM people GROUP BY g

-- says: days are known, and no times of day; the data owner can put a column of hours beside them
-- at: HOUR
-- try: SELECT day, COUNT(*) FROM people GROUP BY day
SELECT HOUR(day) AS g, COUNT(*) FROM people GROUP BY g

-- says: EXTRACT takes year, quarter, month, day or dayofweek out of a day
-- at: day)
-- try: SELECT day, COUNT(*) FROM people GROUP BY day
SELECT EXTRACT(hour FROM day) AS g, COUNT(*) FROM people GROUP BY g

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

-- says: this counts the groups that somebody is in; COUNT(DISTINCT column) does
-- at: COUNT(*)
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex
SELECT COUNT(*) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)

-- says: this would count the groups that occur; ask for COUNT(DISTINCT column)
-- at: sex
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT COUNT(*) FROM (SELECT DISTINCT sex FROM people)

-- says: the sub-select does not hand on a column sex
-- at: sex
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
SELECT COUNT(*) FROM (SELECT age FROM people) WHERE sex = 'F'

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

-- says: this counts the groups that somebody is in; COUNT(DISTINCT column) does
-- at: COUNT(*)
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

-- says: s is selected but not in GROUP BY
-- at: COALESCE
-- try: SELECT CASE WHEN GROUPING(sex) = 1 THEN 'all' ELSE sex END AS s, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), ())
SELECT COALESCE(sex, 'all') AS s, COUNT(*) FROM people GROUP BY ROLLUP (sex)

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

-- says: two columns cannot be compared, and this is the name of one; text is written 'like this'
-- at: "F"
SELECT COUNT(*) FROM people WHERE sex IN ("F", 'M')

-- says: a column is compared with one constant; two comparisons are joined by AND
-- at: 20
-- try: SELECT COUNT(*) FROM people WHERE age >= 20 AND age <= 30
SELECT COUNT(*) FROM people WHERE 20 <= age <= 30

-- says: && is not available; write AND
-- at: &
SELECT COUNT(*) FROM people WHERE age >= 20 && sex = 'F'

-- says: SELECT takes group columns and aggregates such as COUNT(*)
-- at: people
-- try: SELECT COUNT(*) FROM people
SELECT people.* FROM people

-- says: LIMIT takes a whole number from 1 on
-- at: 50
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n LIMIT 50%

-- says: the sub-select does not hand on a column age
-- at: age
-- try: SELECT sex AS s, COUNT(*) FROM people GROUP BY sex
SELECT COUNT(*) FROM (SELECT * FROM (SELECT sex AS s FROM people)) WHERE age > 3

-- says: functions are not available: TRUNC
-- at: TRUNC
-- try: SELECT age // 10 AS d, COUNT(*) FROM people GROUP BY age // 10
SELECT TRUNC(age / 10) AS d, COUNT(*) FROM people GROUP BY d

-- says: ANY and ALL are not available; list the values with IN
-- at: ANY
SELECT COUNT(*) FROM people WHERE sex = ANY(['F'])

-- says: IN takes a list of values in brackets
-- at: 'F'
-- try: SELECT COUNT(*) FROM people WHERE sex IN ('F')
SELECT COUNT(*) FROM people WHERE sex IN 'F'

-- says: BOOL_OR is not available; COUNT, SUM, AVG, STDDEV and QUANTILE_CONT are
-- at: BOOL_OR(age
-- try: SELECT COUNT(*) FILTER (WHERE age > 30), COUNT(*) FILTER (WHERE NOT sex = 'F') AS count_2 FROM people
SELECT BOOL_OR(age > 30), EVERY(sex = 'F') FROM people

-- says: functions are not available: ARRAY
-- at: 0.25,
-- try: SELECT sex, QUANTILE_CONT(age, 0.25) AS q_1, MEDIAN(age) AS q_2 FROM people GROUP BY sex
SELECT sex, QUANTILE_CONT(age, [0.25, 0.5]) AS q FROM people GROUP BY sex

-- says: functions are not available: ARRAY
-- at: 0.1,
-- try: SELECT QUANTILE_CONT(age, 0.1) AS quantile_1, QUANTILE_CONT(age, 0.9) AS quantile_2 FROM people
SELECT PERCENTILE_CONT(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY age) FROM people

-- says: APPROX_QUANTILES is not available; COUNT, SUM, AVG, STDDEV and QUANTILE_CONT are
-- at: APPROX_QUANTILES(age,
-- try: SELECT QUANTILE_CONT(age, 0.25) AS quantile_1, MEDIAN(age) AS quantile_2, QUANTILE_CONT(age, 0.75) AS quantile_3 FROM people
SELECT APPROX_QUANTILES(age, 4) FROM people

-- says: functions are not available: APPROX_TOP_COUNT
-- at: APPROX_TOP_COUNT(code,
-- try: SELECT code, COUNT(*) FROM people WHERE sex = 'F' GROUP BY code ORDER BY COUNT(*) DESC LIMIT 2
SELECT APPROX_TOP_COUNT(code, 2) FROM people WHERE sex = 'F'

-- says: who is protected, delta and all bounds are declared by the data owner, and are not part of a question; what it may cost stands behind it, as in WITH EPSILON 0.1
-- at: WITH
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex WITH EPSILON 0.5
-- but: has the bounds and the delta of the config, whatever the options say
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, delta = 1e-6) sex, COUNT(*) AS n FROM people GROUP BY sex

-- says: who is protected, delta and all bounds are declared by the data owner, and are not part of a question; what it may cost stands behind it, as in WITH EPSILON 0.1
-- at: WITH
SELECT WITH ANONYMIZATION OPTIONS (delta = 1e-6) sex, COUNT(*) AS n FROM people GROUP BY sex

-- says: bounds are declared by the data owner, and are not part of a question; leave them out
-- at: CLAMPED
SELECT ANON_SUM(age CLAMPED BETWEEN 0 AND 50) FROM people

-- says: a * stands for all columns, or around groups for all but those in EXCLUDE; name the columns you want
-- at: age
-- try: SELECT COUNT(*) FROM people
SELECT * EXCLUDE (age) FROM people

-- says: a * stands for all columns, or around groups for all but those in EXCLUDE; name the columns you want
-- at: n
-- try: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex
SELECT * EXCLUDE (n) RENAME (sex AS k) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t

-- says: of DISTINCT, COUNT(DISTINCT column) is available
-- at: age
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY COUNT(*) DESC LIMIT 2
SELECT sex, SUM(DISTINCT age) AS s FROM people GROUP BY sex ORDER BY s DESC LIMIT 2

-- says: a column stands inside of an aggregate here, as in SUM(x)
-- at: 1 + 1
-- try: SELECT COUNT(*) FROM people
SELECT SUM(1 + 1) FROM people

-- says: REGR_SLOPE takes two columns
-- at: REGR_SLOPE
-- try: SELECT COUNT(*) FROM people
SELECT REGR_SLOPE(age) FROM people

-- says: there is no window w; WINDOW w AS (...) makes one
-- at: w
-- try: SELECT sex, COUNT(*) AS n, COUNT(*) FROM people GROUP BY sex
SELECT sex, COUNT(*) AS n, RANK() OVER w AS r FROM people GROUP BY sex

-- says: a frame of OVER begins before it ends
-- at: 1 FOLLOWING
-- try: SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT sex, SUM(COUNT(*)) OVER (ORDER BY sex ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) AS s FROM people GROUP BY sex

-- says: frames of OVER are counted in ROWS
-- at: SUM
-- try: SELECT born, COUNT(*) FROM people GROUP BY born
SELECT born, SUM(COUNT(*)) OVER (ORDER BY born RANGE BETWEEN INTERVAL 2 YEARS PRECEDING AND CURRENT ROW) AS s FROM people GROUP BY born
