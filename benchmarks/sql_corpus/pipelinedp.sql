SELECT day, COUNT(*) AS count FROM restaurants GROUP BY day;
SELECT day, SUM(money_spent) AS sum FROM restaurants GROUP BY day;
SELECT day, AVG(money_spent) AS mean, COUNT(*) AS count FROM restaurants GROUP BY day;
SELECT day, COUNT(DISTINCT visitor_id) AS privacy_id_count FROM restaurants GROUP BY day;
SELECT day, VAR_POP(money_spent) AS variance FROM restaurants GROUP BY day;
SELECT day, QUANTILE_CONT(money_spent, 0.5), QUANTILE_CONT(money_spent, 0.9) FROM restaurants GROUP BY day;
SELECT time_entered, COUNT(*) AS visits FROM restaurants GROUP BY time_entered ORDER BY time_entered;
SELECT day, time_entered, SUM(time_spent) FROM restaurants WHERE day IN (6, 7) GROUP BY day, time_entered;
SELECT SUM(money_spent) FROM restaurants;
SELECT COUNT(*) FROM restaurants WHERE time_spent > 30;
SELECT day FROM restaurants GROUP BY day;
SELECT day, COUNT(*) FROM restaurants GROUP BY day HAVING COUNT(*) > 10;
SELECT day, SUM(money_spent) / SUM(time_spent) AS per_minute FROM restaurants GROUP BY day;
SELECT AVG(visits) FROM (SELECT visitor_id, COUNT(*) AS visits FROM restaurants GROUP BY visitor_id) AS v;
SELECT visitor_id, SUM(money_spent) FROM restaurants GROUP BY visitor_id;
SELECT day, SUM(money_spent * time_spent) FROM restaurants GROUP BY day;
SELECT CASE WHEN day >= 6 THEN 'weekend' ELSE 'week' END AS part, AVG(time_spent) FROM restaurants GROUP BY part
