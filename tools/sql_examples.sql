-- # Counts
-- `n` is the name of the column in the answer; without a name it is called `count`, and the next one `count_2`.

-- all rows
SELECT COUNT(*) AS n FROM people

-- the rows of each group, and of groups that nobody is in
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex

-- rows where the column is not NULL
SELECT COUNT(education) AS known FROM people

-- the same as COUNT(*)
SELECT COUNT() AS n, COUNT(1) AS m FROM people

-- rows that meet a condition, side by side with others
SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE age >= 65) AS old, COUNT_IF(member = TRUE) AS members FROM people

-- a name in any letter case, or in quotes as it is declared; a table may have an alias
SELECT p.Sex AS "which sex", COUNT(*) FROM people AS p WHERE p."age" < 30 GROUP BY p.sex

-- # Sums and averages
-- Of numbers only. A value outside of the declared range counts as the config says (`outside`), and a column in bins
-- counts with the middle of each bin, or the number declared for it (`representatives`); the answer then says by how much
-- that can be off. A sum of no rows is 0; an average, ratio, variance or quantile of no rows is NULL, and shown as such
-- where the conditions, or the measured numbers, leave no row for it. What a goal means for these is told [below](#accuracy).

-- a sum, and an average
SELECT sex, SUM(hours) AS hours, AVG(hours) AS each FROM people GROUP BY sex

-- under a condition
SELECT AVG(age) FILTER (WHERE occupation = 'retired') AS age FROM people

-- numbers that depend on conditions, in both forms of CASE, or with IF
SELECT SUM(CASE WHEN hours >= 35 THEN 1 WHEN hours > 0 THEN 0.5 ELSE 0 END) AS jobs,
  AVG(CASE sex WHEN 'F' THEN hours END) AS women,
  SUM(IF(member = TRUE, 1, 0)) AS members FROM people

-- a CASE in COUNT counts the rows where it is not NULL
SELECT COUNT(CASE WHEN age < 18 THEN 1 END) AS minors FROM people

-- # Each once
-- How many different values of a column occur; and, where the config declares a unit column (`unit = { column = "person" }`),
-- how many people: `SELECT ward, COUNT(DISTINCT person) FROM visits GROUP BY ward`. Each is measured by itself: the people
-- of two groups are not the sum of both.

-- values that occur, of all rows, under a condition, and by group
SELECT sex, COUNT(DISTINCT region) AS regions, COUNT(DISTINCT age) FILTER (WHERE member = TRUE) AS ages,
  COUNT(DISTINCT CASE WHEN age < 18 THEN education END) AS schools FROM people GROUP BY sex

-- # Spread and quantiles
-- Of a column. A quantile is found among the values that the column can have.

-- samples: n - 1 in the denominator
SELECT VARIANCE(hours) AS v, VAR_SAMP(hours) AS same, STDDEV(hours) AS s, STDDEV_SAMP(hours) AS same_s FROM people

-- populations: n in the denominator
SELECT VAR_POP(hours) AS v, STDDEV_POP(hours) AS s FROM people

-- medians and other quantiles, between two values or one of them
SELECT MEDIAN(age) AS half, QUANTILE_CONT(age, 0.9) AS ninth, QUANTILE_DISC(age, 0.9) AS one_of_them FROM people

-- the same as QUANTILE_DISC
SELECT QUANTILE(age, 0.25) AS quarter FROM people

-- the value that most rows have, and counts of values as lines: the counts are bought, the choice among them is free
SELECT sex, MODE(region) AS usual, COUNT(*) AS n FROM people GROUP BY sex

-- the same as GROUP BY age with COUNT(*), without NULL
SELECT sex, HISTOGRAM(age) AS n FROM people GROUP BY sex

-- the least and greatest values: what is declared, for nothing; with an accuracy (WITH ERROR 50, within=50), bounds that
-- are measured: somebody lies at or beyond each of them, and at most 50 rows lie beyond it
SELECT MIN(age) AS youngest, MAX(joined) AS last FROM people

-- two columns together: covariance, correlation, and the line of least squares
SELECT COVAR_POP(hours, age) AS p, COVAR_SAMP(hours, age) AS s, CORR(hours, age) AS c,
  REGR_SLOPE(hours, age) AS slope, REGR_INTERCEPT(hours, age) AS intercept, REGR_R2(hours, age) AS r2 FROM people

-- # Arithmetic
-- On counts, sums, averages and constants: sums, differences, multiples, and one ratio. The error follows from the errors
-- of the parts; that of a ratio from their joint law, where an answer has no other outputs.

-- a share, here in percent; NULLIF is not needed and does no harm
SELECT 100.0 * COUNT(*) FILTER (WHERE member = TRUE) / NULLIF(COUNT(*), 0) AS percent FROM people

-- differences and multiples; a cast to DOUBLE or FLOAT changes nothing
SELECT SUM(hours) - 40 * COUNT(*) AS over, COUNT(*)::DOUBLE / 1000 AS thousands FROM people

-- a ratio of two sums, and a sum of which nothing is 0
SELECT SUM(hours) / COUNT(*) + 1 AS each, COALESCE(SUM(hours), 0) AS hours, -COUNT(*) AS less FROM people

-- # Conditions
-- Behind WHERE, in FILTER and in CASE. A condition compares a column with a constant. A column in bins can be cut at the
-- edges of its bins only (one of decimals, declared by a `step`, anywhere), and dates by week or month at the first day of one. `OR`, `NOT` and `AT_LEAST` may tie columns together:
-- up to 2^20 joint cells for any aggregate, and beyond that for `COUNT` and fractions of counts, of which one question can
-- have 64 (groups times counts). Joined by `AND` alone, conditions on single columns leave room for more: 2^26 joint cells
-- of all columns that are named, and beyond that the same 64 counts.

-- comparisons
SELECT COUNT(*) FROM people WHERE age >= 18 AND age < 65 AND sex <> 'F' AND sex != 'M' AND 30 > hours AND hours <= 80

-- equality, lists, ranges
SELECT COUNT(*) FROM people WHERE region = 'Lakeside' OR region IN ('Highfell', 'Westmoor') AND age BETWEEN 20 AND 29

-- NULL, and truth values
SELECT COUNT(*) FROM people WHERE education IS NOT NULL AND income IS NULL AND member = TRUE AND (age > 30) IS FALSE

-- comparisons that know NULL
SELECT COUNT(*) FROM people WHERE education IS DISTINCT FROM 'master' AND region IS NOT DISTINCT FROM 'Lakeside'

-- patterns: % is any text, _ any character; ILIKE in any letter case
SELECT COUNT(*) FROM people WHERE marital LIKE '_i%' AND marital NOT LIKE '%w%' AND marital NOT ILIKE 'S%'

-- regular expressions, of a part of the text or, with SIMILAR TO and REGEXP_FULL_MATCH, of the whole of it
SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(region, 'side$|^east', 'i') AND NOT REGEXP_FULL_MATCH(region, 'L.*')
  OR marital SIMILAR TO '(single|widowed)'

-- dates, also as moments at midnight or up to the end of a day, as three numbers, or so many days, months or years from another
SELECT COUNT(*) FROM people WHERE joined >= DATE '2021-01-01' AND joined < TIMESTAMP '2022-01-01 00:00:00'
  OR joined >= MAKE_DATE(2022, 6, 1) AND joined < DATE '2022-06-01' + INTERVAL 1 MONTH OR joined <= '2020-12-31 23:59:59'

-- the day on which the question is asked; the answer says which one that is
SELECT COUNT(*) FROM people WHERE joined < DATE_TRUNC('month', CURRENT_DATE) - INTERVAL 1 YEAR

-- a column of truth values by itself
SELECT COUNT(*) FROM people WHERE member AND NOT (age < 30)

-- what is made of columns: arithmetic, functions of text and of dates, and one column beside another
SELECT COUNT(*) FROM people WHERE age + 1 > 30 AND age % 2 = 0 AND age > 2 * hours AND UPPER(region) = 'LAKESIDE'
  AND YEAR(joined) = 2021

-- NOT, brackets, negative numbers, constants
SELECT COUNT(*) FROM people WHERE NOT (age < 18 OR hours > -1) AND TRUE

-- at least so many of several conditions
SELECT COUNT(*) FROM people WHERE AT_LEAST(2, age >= 65, member = TRUE, hours = 0)

-- # Functions of columns
-- In conditions, as groups, and in what is added up. They are computed value by value from what is declared, which is
-- public and free. Text that is not listed reads `other`; numbers that are not declared are left out, as NULL is, and the
-- answer says so. A column in bins has no values to look at but its edges; added up,
-- each bin counts with its middle.

-- text
SELECT UPPER(region) AS a, LOWER(LEFT(region, 4)) AS b, RIGHT(region, 2) || '/' || SUBSTR(region, 1, 1) AS c, COUNT(*)
  FROM people GROUP BY a, b, c

-- more text
SELECT CONCAT(region, ', ', sex) AS a, REPLACE(marital, 'ed', '') AS b, LENGTH(marital) AS c, COUNT(*)
  FROM people GROUP BY a, b, c

-- and more
SELECT TRIM(LTRIM(region)) AS a, REVERSE(sex) AS b, COUNT(*) FROM people
  WHERE STARTS_WITH(region, 'L') OR ENDS_WITH(region, 'moor') OR CONTAINS(region, 'port') GROUP BY a, b

-- numbers
SELECT MOD(age, 10) AS a, ROUND(age, -1) AS b, SIGN(age - 40) AS c, ABS(age - 40) AS d, COUNT(*)
  FROM people WHERE age < 20 GROUP BY a, b, c, d

-- numbers that are added up; CASE may stand in them
SELECT SUM(age * hours) AS s, AVG(hours / 5) AS a, SUM(POWER(hours, 2)) AS p, SUM(GREATEST(hours - 40, 0)) AS more,
  AVG(LEAST(hours, 40)) AS capped FROM people

-- roots, logarithms and the like, rounded to a grid that is fine enough
SELECT AVG(SQRT(hours)) AS r, AVG(LN(hours + 1)) AS l, AVG(LOG(10, hours + 1)) AS l10, AVG(EXP(hours / 80)) AS e,
  SUM(CEIL(hours / 10)) AS c, SUM(FLOOR(hours / 7)) AS f FROM people

-- truth values count as 1 and 0; a cast to another type of number, or to text
SELECT SUM(age > 30) AS n, AVG(CAST(member AS INT)) AS share, AVG(CAST(hours AS DECIMAL(10, 2))) AS hours FROM people

-- dates; DATEDIFF counts beginnings of months, quarters and years, and whole weeks
SELECT STRFTIME(joined, '%Y-%m') AS month, MONTHNAME(joined) AS name, COUNT(*) FROM people GROUP BY month, name

SELECT LAST_DAY(joined) AS month, AVG(DATEDIFF('day', joined, DATE '2024-12-31')) AS days_ago FROM people
  WHERE DATEDIFF('month', joined, DATE '2024-12-31') <= 24 GROUP BY month

-- parts of texts
SELECT REGEXP_REPLACE(region, '[aeiou]', '', 'g') AS a, SPLIT_PART(region, 'e', 1) AS b, STRPOS(region, 'e') AS c, COUNT(*)
  FROM people GROUP BY a, b, c

-- of a column that is known by day
SELECT WEEK(joined) AS a, WEEKOFYEAR(joined) AS b, DAYNAME(joined) AS c, DAYOFYEAR(joined) AS d, ISODOW(joined) AS e,
  EPOCH(joined) AS f, COUNT(*) FROM people GROUP BY a, b, c, d, e, f

-- NULL
SELECT COALESCE(education, 'none') AS e, NULLIF(sex, 'F') AS s, COUNT(*) FROM people GROUP BY e, s

-- a condition
SELECT age < 30 AS young, COUNT(*) AS n FROM people GROUP BY young

-- a value, or another in its place
SELECT CASE WHEN region = 'Lakeside' THEN 'lakes' ELSE region END AS r, TRY_CAST(age AS VARCHAR) AS a, COUNT(*)
  FROM people WHERE age < 20 GROUP BY r, a

-- # Groups
-- Every group that the config makes possible is listed, in the order of the config, whether or not anybody is in it. Of an [open column](open-columns.md) these are the texts that were named so far, and `other`.

-- several columns
SELECT sex, marital, COUNT(*) FROM people GROUP BY sex, marital

-- by place in the select list
SELECT region AS where_from, COUNT(*) FROM people GROUP BY 1

-- by name in the answer
SELECT region AS home, COUNT(*) FROM people GROUP BY home

-- all columns that are selected beside aggregates
SELECT sex, COUNT(*) FROM people GROUP BY ALL

-- groups of values
SELECT CASE WHEN age < 18 THEN 'minor' WHEN age < 65 THEN 'adult' ELSE 'old' END AS stage, COUNT(*) AS n
  FROM people GROUP BY stage

-- or of several columns, as long as they do not have too many joint cells
SELECT CASE WHEN age < 18 THEN 'minor' WHEN hours >= 35 OR marital = 'married' THEN 'settled' ELSE 'free' END AS life,
  COUNT(*) AS n FROM people GROUP BY life

-- periods of dates, as their first day
SELECT date_trunc('year', joined) AS year, COUNT(*) AS n FROM people GROUP BY year

-- parts of dates, as numbers
SELECT EXTRACT(year FROM joined) AS y, COUNT(*) AS n FROM people GROUP BY y

-- the same as EXTRACT
SELECT YEAR(joined) AS y, QUARTER(joined) AS q, MONTH(joined) AS m, COUNT(*) AS n FROM people GROUP BY y, q, m

-- parts of days, for dates that are declared by day
SELECT DAY(joined) AS d, COUNT(*) AS n FROM people GROUP BY d

SELECT DAYOFMONTH(joined) AS d, COUNT(*) AS n FROM people GROUP BY d

SELECT DAYOFWEEK(joined) AS d, COUNT(*) AS n FROM people GROUP BY d

-- groups of equal width, by their lower ends or by number; the upper end of the last bin of a column in bins is in the group before it
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM people GROUP BY decade

-- whole-number division
SELECT age // 10 AS decade, COUNT(*) AS n FROM people GROUP BY decade

-- a number of bins of equal width
SELECT width_bucket(age, 20, 80, 6) AS bin, COUNT(*) AS n FROM people GROUP BY bin

-- totals along with groups: their lines read (all) where DuckDB has NULL, which is a group of its own here
SELECT sex, marital, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex, marital)

-- all combinations of totals
SELECT sex, marital, COUNT(*) AS n FROM people GROUP BY CUBE (sex, marital)

-- totals that you name
SELECT sex, marital, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((sex, marital), (sex), ())

-- which lines are totals: 1 where a column is put together; of several columns, one bit each
SELECT sex, marital, GROUPING(sex) AS all_sexes, GROUPING_ID(sex, marital) AS level, COUNT(*) AS n
  FROM people GROUP BY ROLLUP (sex, marital) ORDER BY level, n DESC

-- a name for the totals
SELECT CASE WHEN GROUPING(sex) = 1 THEN 'everybody' ELSE sex END AS sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)

-- some of the sets only; the others are neither shown nor paid for
SELECT sex, marital, COUNT(*) AS n FROM people GROUP BY CUBE (sex, marital) HAVING GROUPING(sex, marital) IN (1, 2)

-- # After the answer
-- These work on the noisy numbers, so they cost nothing, and the price is that of all groups. With the confidence of the
-- answer, no group is on the wrong side of a threshold whose true number is further from it than the error; and no two
-- groups are in the wrong order whose true numbers are further apart than their errors together. Without ORDER BY lines
-- stand in the declared order of the first key, then of the second, whatever the data hold.

-- groups with large values
SELECT occupation, COUNT(*) AS n FROM people GROUP BY occupation HAVING COUNT(*) >= 3000

-- sorted
SELECT occupation, COUNT(*) AS n FROM people GROUP BY occupation ORDER BY n DESC

-- sorted by a column, with NULL first
SELECT education, COUNT(*) AS n FROM people GROUP BY education ORDER BY education NULLS FIRST

-- sorted by all that is selected, from left to right
SELECT sex, marital, COUNT(*) AS n FROM people GROUP BY sex, marital ORDER BY ALL

-- the first few
SELECT occupation, COUNT(*) AS n FROM people GROUP BY occupation ORDER BY COUNT(*) DESC LIMIT 3

-- the next few
SELECT occupation, COUNT(*) AS n FROM people GROUP BY occupation ORDER BY n DESC LIMIT 3 OFFSET 3

-- all but the first few, in no order
SELECT occupation, COUNT(*) AS n FROM people GROUP BY occupation OFFSET 3

-- # Around the answer
-- SELECTs around a grouped one, in WITH or in FROM, and what the select list does with groups and aggregates, are computed
-- from the numbers that were bought: they cost nothing. Error bars go along, and hold whenever those of the numbers do. Where
-- lines are chosen by noisy numbers, the answer says how many of them are there for certain. The lines of the inner SELECT
-- are all groups that are possible, also those that nobody is in.

-- a condition on groups, an order, and a part of the lines
SELECT region, n FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region) AS t WHERE n > 1000 ORDER BY n DESC LIMIT 3

-- a sub-select that is one number, of the same rows
SELECT region, COUNT(*) / (SELECT COUNT(*) FROM people) AS share, AVG(age) - (SELECT AVG(age) FROM people) AS older
  FROM people GROUP BY region

-- both sides under their own condition
SELECT COUNT(*) / (SELECT COUNT(*) FROM people WHERE age >= 18) AS share FROM people WHERE age >= 65

-- aggregates of aggregates
WITH t AS (SELECT region, sex, COUNT(*) AS n FROM people GROUP BY region, sex)
  SELECT sex, SUM(n) AS s, AVG(n) AS a, MIN(n) AS least, MAX(n) AS most, COUNT(*) FILTER (WHERE n > 500) AS large
  FROM t GROUP BY sex

-- shares of the total
SELECT region, 100 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM people GROUP BY region

-- shares within groups
SELECT sex, marital, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex) AS share FROM people GROUP BY sex, marital

-- running totals, averages of neighbours, differences from line to line
SELECT y, n, SUM(n) OVER (ORDER BY y) AS total, AVG(n) OVER (ORDER BY y ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS smooth,
  n - LAG(n, 1, 0) OVER (ORDER BY y) AS more, LEAD(n, 1, 0) OVER (ORDER BY y) AS next
  FROM (SELECT YEAR(joined) AS y, COUNT(*) AS n FROM people GROUP BY y) AS t

-- groups of the largest few of one column, as BI tools write it
SELECT joined, region, COUNT(*) AS n FROM people JOIN (SELECT region AS r, COUNT(*) AS m FROM people GROUP BY region
  ORDER BY m DESC LIMIT 2) AS top ON region = r GROUP BY joined, region

-- lines above the average of all lines
WITH g AS (SELECT region, AVG(hours) AS h FROM people GROUP BY region) SELECT region, h FROM g WHERE h > (SELECT AVG(h) FROM g)

-- SELECTs about one table, or about the lines of one in WITH, one below the other: bought together
SELECT region AS who, COUNT(*) AS n FROM people GROUP BY region UNION ALL SELECT 'all', COUNT(*) FROM people

-- each may choose other rows, groups and numbers
SELECT region AS who, AVG(hours) AS hours FROM people WHERE age < 65 GROUP BY region
  UNION ALL SELECT marital, AVG(age) FROM people WHERE member GROUP BY marital

-- groups of one table beside each other, joined by all that they are grouped by, or beside a total: bought together
WITH young AS (SELECT region, COUNT(*) AS n FROM people WHERE age < 30 GROUP BY region),
  old AS (SELECT region, COUNT(*) AS n FROM people WHERE age >= 30 GROUP BY region),
  everybody AS (SELECT COUNT(*) AS n FROM people)
  SELECT young.region, old.n - young.n AS more, 100.0 * old.n / everybody.n AS share
  FROM young JOIN old ON young.region = old.region CROSS JOIN everybody

-- averages of groups beside that of all rows
WITH by_region AS (SELECT region, AVG(hours) AS hours FROM people GROUP BY region),
  everybody AS (SELECT AVG(hours) AS hours FROM people)
  SELECT region, by_region.hours - everybody.hours AS more FROM by_region CROSS JOIN everybody

-- the same with FULL JOIN
SELECT region, young.n AS young, old.n AS old FROM (SELECT region, COUNT(*) AS n FROM people WHERE age < 30 GROUP BY region) AS young
  FULL JOIN (SELECT region, COUNT(*) AS n FROM people WHERE age >= 30 GROUP BY region) AS old USING (region)

-- a column for each of some values
PIVOT people ON sex IN ('F', 'M') USING COUNT(*) AS n, AVG(age) AS age GROUP BY region

-- a column for each value that is declared, and for other; rows where it is NULL are in none of them
PIVOT people ON sex USING COUNT(*) GROUP BY region

-- or so
SELECT region, "F" - "M" AS more FROM people PIVOT (COUNT(*) FOR sex IN ('F', 'M') GROUP BY region)

-- all columns but some
SELECT * EXCLUDE (n) FROM (SELECT region, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY region) AS t WHERE n > 1000

-- what stands on the line with the largest or smallest number; the answer says whether another line may be the right one
SELECT sex, ARG_MAX(region, n) AS most, ARG_MIN(region, n) AS least
  FROM (SELECT sex, region, COUNT(*) AS n FROM people GROUP BY sex, region) AS t GROUP BY sex

-- ranks
SELECT region, n, RANK() OVER (ORDER BY n DESC) AS r, DENSE_RANK() OVER (ORDER BY n DESC) AS d,
  ROW_NUMBER() OVER (ORDER BY n DESC) AS place, PERCENT_RANK() OVER (ORDER BY n) AS p, CUME_DIST() OVER (ORDER BY n) AS c,
  NTILE(2) OVER (ORDER BY n) AS half,
  FIRST_VALUE(n) OVER (ORDER BY n DESC) AS most, LAST_VALUE(n) OVER (ORDER BY n DESC) AS own
  FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY region) AS t

-- a window with a name, and the lines around each one: before it, behind it, or both
SELECT age, COUNT(*) AS n, AVG(COUNT(*)) OVER (by_age ROWS BETWEEN 7 PRECEDING AND 1 PRECEDING) AS before,
  NTH_VALUE(COUNT(*), 2) OVER (by_age ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS next
  FROM people GROUP BY age WINDOW by_age AS (ORDER BY age)

-- the first lines of each group
SELECT sex, region, n FROM (SELECT sex, region, COUNT(*) AS n,
  ROW_NUMBER() OVER (PARTITION BY sex ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY sex, region) AS t WHERE r <= 2

-- the same with QUALIFY
SELECT region, COUNT(*) AS n FROM people GROUP BY region QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) <= 3

-- the first line of each, in the order of ORDER BY
SELECT DISTINCT ON (sex) sex, region, COUNT(*) AS n FROM people GROUP BY sex, region ORDER BY sex, n DESC

-- rounded to so many decimals
SELECT sex, CAST(100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS DECIMAL(5, 1)) AS percent FROM people GROUP BY sex

-- functions of aggregates, and names of what is selected
SELECT ROUND(AVG(age), 1) AS a, AVG(age) * AVG(hours) AS product, COUNT(*) AS n, n / 1000 AS thousands FROM people

-- HAVING on a group column, and on what is not selected
SELECT region, AVG(age) AS a FROM people GROUP BY region HAVING region <> 'Lakeside' AND COUNT(*) > 100

-- group columns alone: the declared values, for nothing
SELECT DISTINCT region, sex FROM people

-- the ends of the error bar, as numbers
SELECT SUM(hours) AS s, DP_INTERVAL_LOW(s) AS low, DP_INTERVAL_HIGH(s) AS high FROM people

-- # Parts of a question
-- There is one table. What can be written as one SELECT may be written in parts.

-- a named part that chooses rows
WITH adults AS (SELECT * FROM people WHERE age >= 18) SELECT sex, COUNT(*) FROM adults GROUP BY sex

-- a part inside of FROM
SELECT sex, COUNT(*) FROM (SELECT * FROM people WHERE age >= 18) AS adults GROUP BY sex

-- groups of values that have a name
WITH stages AS (SELECT *, CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END AS stage FROM people)
  SELECT stage, AVG(hours) AS hours FROM stages GROUP BY stage

-- # Accuracy
-- At the end of a question, or in a comment, or beside the SQL (`--within`, `within=`); in one of these places. In rows of
-- the table for counts, in units of the column for sums. For everything else (averages, ratios, variances, quantiles)
-- ERROR 50 means: as exact as if up to 50 rows more or less were in the data. A percentage is one of the number of
-- people, whatever is asked for. The answer says what the error came to, for each of its numbers. Averages and quantiles
-- are paid for as they are, about half of what their counts and sums would cost with bars of their own; a COUNT or a SUM
-- beside them is paid for as well. So
-- `AVG(distance)` with ERROR 20 is not one within 20 miles: `EXPLAIN` says what 20 people come to, and which number to ask
-- for instead. Where a column is [open](open-columns.md), `DISCOVERY` behind the accuracy (`WITH ERROR 20 DISCOVERY`, or with an
-- amount of rho, `DISCOVERY 0.05`) looks for its texts before they are grouped by.

-- every number within 200, all together with 95% confidence
SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ERROR 200

-- in percent of the number of rows
SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ERROR 1% CONFIDENCE 99%

-- each output with an error of its own; an amount without ON is for all others
SELECT COUNT(*) AS n, SUM(hours) AS hours FROM people WITH ERROR 200 ON n, 20000 ON hours

-- in percent of each true count; counts below 400 may be off by 8, which is 2% of 400
SELECT sex, COUNT(*) FROM people GROUP BY sex WITH RELATIVE ERROR 2% FLOOR 400

-- the root mean square error
SELECT sex, COUNT(*) FROM people GROUP BY sex WITH RMSE 100

-- the best answer for a price, in the unit of the budget
SELECT sex, COUNT(*) FROM people GROUP BY sex WITH EPSILON 0.01

-- as a comment, where a tool does not let the clause pass
SELECT sex, COUNT(*) FROM people GROUP BY sex /*+ error(200) confidence(95%) */

-- what it would cost, and nothing else
EXPLAIN SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ERROR 200

-- # Other spellings
-- What tools and other dialects write means the same here.

-- schemas, and names in other quotes
SELECT `region`, COUNT(*) AS n FROM main.people GROUP BY `region`

-- quantiles that other engines only estimate
SELECT sex, APPROX_PERCENTILE(age, 0.9) AS p90 FROM people GROUP BY sex

-- FROM first
FROM people SELECT region, COUNT(*) AS n GROUP BY ALL

-- TOP and FETCH for LIMIT
SELECT TOP 3 occupation, COUNT(*) AS n FROM people GROUP BY occupation ORDER BY n DESC

-- or so
SELECT occupation, COUNT(*) AS n FROM people GROUP BY occupation ORDER BY n DESC FETCH FIRST 3 ROWS ONLY

-- other names of functions
SELECT MEAN(age) AS m, FAVG(age) AS f, REGR_COUNT(hours, age) AS n, REGR_AVGX(hours, age) AS x, VAR(age) AS v, STD(age) AS s, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) AS half FROM people

-- months of other dialects
SELECT DATE_TRUNC(joined, MONTH) AS a, TO_CHAR(joined, 'YYYY-MM') AS b, DATE_FORMAT(joined, '%Y-%m') AS c, COUNT(*) AS n
  FROM people GROUP BY a, b, c

-- names of months, numbers of quarters, and moments of other dialects
SELECT TO_CHAR(joined, 'FMMonth YYYY') AS a, TO_CHAR(joined, 'Q') AS b, COUNT(*) AS n FROM people
  WHERE joined >= TO_TIMESTAMP('2021-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY a, b

-- other names of parts of dates, and casts of them
SELECT DATE_PART('year', joined) AS y, CAST(DATE_TRUNC('month', joined) AS DATE) AS m, COUNT(*) AS n FROM people GROUP BY y, m

-- escapes of ODBC and JDBC
SELECT {fn UCASE(sex)} AS s, COUNT(*) AS n FROM people WHERE joined >= {d '2021-01-01'} GROUP BY s

-- decades
SELECT FLOOR(age, -1) AS decade, COUNT(*) AS n FROM people GROUP BY decade

-- a division that gives NULL where it cannot be done
SELECT AVG(SAFE_DIVIDE(hours, age)) AS r FROM people

-- # Never
-- What would be about single people, about other tables, or about something else than rows.

SELECT * FROM people

SELECT DISTINCT region, COUNT(*) FROM people GROUP BY region, sex

SELECT SUM(DISTINCT age) FROM people

SELECT COUNT(DISTINCT region, sex) FROM people

SELECT COUNT(*) FROM people JOIN visits ON people.age = visits.age

SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM people

SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people)

SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)

SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1)

SELECT COUNT(*) FROM people WHERE region ~ '^L'

SELECT COUNT(*) FROM people WHERE region LIKE 'L!%' ESCAPE '!'

SELECT sex, COUNT(*) FROM people WHERE GROUPING(sex) = 1 GROUP BY ROLLUP (sex)

SELECT COUNT(*) FROM people WHERE age = ?

SELECT COUNT(*) FROM people WHERE age BETWEEN SYMMETRIC 30 AND 20

SELECT COUNT(*) FROM people WHERE age IN ages

SELECT COUNT(*) FROM people USING SAMPLE 10%

SELECT COUNT(*) FROM people AS p(a, b)

SELECT COUNT(*) INTO t FROM people

SELECT COUNT(*) FROM people FOR UPDATE

SELECT COUNT(*) // 10 FROM people

SELECT COUNT(*) % 10 FROM people

SELECT COALESCE(sex, 'everybody') AS sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)

SELECT COUNT(*) FROM people WHERE sex = ANY(['F'])

SELECT COUNT(*) FROM people WHERE sex = "F"

SELECT COUNT(*) FROM people WHERE 20 <= age <= 30

SELECT COUNT(*) FROM people WHERE age > 20 && sex = 'F'

SELECT occupation, COUNT(*) AS n FROM people GROUP BY occupation ORDER BY n DESC LIMIT 10%

SELECT occupation, COUNT(*) AS n FROM people GROUP BY occupation ORDER BY n DESC FETCH FIRST 10 PERCENT ROWS ONLY

SELECT HOUR(joined) AS h, COUNT(*) AS n FROM people GROUP BY h

SELECT sex, COUNT(*) FROM people GROUP BY sex WITH TOTALS

SELECT SUM(region) FROM people

SELECT COUNT(*) FROM people WHERE age = NULL

SELECT COUNT(*) FROM people WHERE income > 42500

SELECT COUNT(*) FROM people WHERE salary > 50000
