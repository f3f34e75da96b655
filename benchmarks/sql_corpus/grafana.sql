SELECT floor(extract(epoch from joined)/86400)*86400 AS "time", count(*) AS n FROM people WHERE joined BETWEEN '2021-01-01T00:00:00Z' AND '2021-02-01T00:00:00Z' GROUP BY 1 ORDER BY 1;
SELECT joined AS "time", count(*) AS n FROM people WHERE joined BETWEEN '2021-01-01T00:00:00Z' AND '2021-01-31T00:00:00Z' GROUP BY joined ORDER BY joined;
SELECT date_trunc('week', joined) AS "time", region AS metric, count(*) AS value FROM people GROUP BY 1, 2 ORDER BY 1, 2;
SELECT count(*) AS value FROM people WHERE joined >= '2021-01-01T00:00:00Z';
SELECT region AS metric, avg(income) AS value FROM people GROUP BY region LIMIT 50;
SELECT DISTINCT region FROM people ORDER BY region;
SELECT region AS __text, region AS __value FROM people GROUP BY region;
SELECT count(*) AS "n" FROM people WHERE region IN ('Lakeside','Eastvale') AND sex IN ('F');
SELECT time_bucket('1 month', joined) AS t, count(*) FROM people GROUP BY t;
SELECT to_char(joined, 'YYYY-MM') AS month, count(*) FROM people GROUP BY month ORDER BY month;
SELECT percentile_disc(0.95) WITHIN GROUP (ORDER BY hours) AS p95 FROM people;
SELECT joined::date AS d, sum(hours) AS h FROM people WHERE joined >= now() - interval '7 days' GROUP BY d ORDER BY d
