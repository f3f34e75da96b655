--- Each block: what is said, at which word, what is offered instead (if anything), and the question.

-- says: there is no table persons; the table is people
-- at: persons
-- try: SELECT COUNT(*) FROM people
-- but: reads people instead of persons
SELECT COUNT(*) FROM persons

-- says: there is no table People; the table is people
-- at: "People"
-- try: SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM "People"

-- says: there is no column agge; did you mean age?
-- at: agge
-- try: SELECT COUNT(*) FROM people WHERE age < 3 AND income < 10 AND age >= 0
-- but: has the condition age < 3 AND income < 10 AND age >= 0 instead of agge < 3 AND income < 10
SELECT COUNT(*) FROM people WHERE agge < 3 AND income < 10

-- says: there is no column agge; did you mean age?
-- at: agge,
-- try: SELECT age, COUNT(*) FROM people GROUP BY age
-- but: asks for age instead of agge; has GROUP BY age instead of agge
SELECT agge, COUNT(*) FROM people GROUP BY 1

-- says: there is no column colour; the columns are age, height, income, weight, sex, country, active, code, region, day, seen, born, Zip Code
-- at: colour
SELECT COUNT(*) FROM people WHERE colour = 'red'

-- says: there is no column AGE; did you mean age?
-- at: "AGE"
-- try: SELECT COUNT(*) FROM people WHERE age BETWEEN 1 AND 3
SELECT COUNT(*) FROM people WHERE "AGE" BETWEEN 1 AND 3

-- says: there is no column zipcode; did you mean Zip Code?
-- at: zipcode
-- try: SELECT COUNT(*) FROM people WHERE "Zip Code" = 3
-- but: has the condition "zip code" = 3 instead of zipcode = 3
SELECT COUNT(*) FROM people WHERE zipcode = 3

-- says: GROUP BY sex means the column of that name, and age is not in GROUP BY
-- at: sex
-- try: SELECT age AS sex, COUNT(*) FROM people GROUP BY age
SELECT age AS sex, COUNT(*) FROM people GROUP BY sex

-- says: values of age outside 0 to 99 are kept together as other, and this condition would keep some of them and not the rest
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE age < 30 AND age >= 0
-- but: has the condition age < 30 AND age >= 0 instead of age < 30
SELECT COUNT(*) FROM people WHERE age < 30

-- says: values of age outside 0 to 99 are kept together as other, and this condition would keep some of them and not the rest
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE age >= 30 AND age <= 99
-- but: has the condition age >= 30 AND age <= 99 instead of age >= 30
SELECT COUNT(*) FROM people WHERE age >= 30

-- says: values of age outside 0 to 99 are kept together as other, and this condition would keep some of them and not the rest
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE (age < 30 OR sex = 'F') AND age BETWEEN 0 AND 99
-- but: has the condition (age < 30 OR sex = 'F') AND age BETWEEN 0 AND 99 instead of age < 30 OR sex = 'F'
SELECT COUNT(*) FROM people WHERE age < 30 OR sex = 'F'

-- says: values of age outside 0 to 99 are kept together as other, and 200 lies among them
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE NOT age = 30 AND age <= 99 AND age >= 0
-- but: has the condition NOT age = 30 AND age <= 99 AND age >= 0 instead of NOT age = 30 AND age < 200
SELECT COUNT(*) FROM people WHERE NOT age = 30 AND age < 200

-- says: values of age outside 0 to 99 are kept together as other, and 150 lies among them
-- at: age
SELECT COUNT(*) FROM people WHERE age = 150

-- says: values of age outside 0 to 99 are kept together as other, and 150 lies among them
-- at: age
SELECT COUNT(*) FROM people WHERE age <> 150

-- says: values of age outside 0 to 99 are kept together as other, and 150 lies among them
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE age >= 20 AND age <= 99
-- but: has the condition age >= 20 AND age <= 99 instead of age BETWEEN 20 AND 150
SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 150

-- says: values of age outside 0 to 99 are kept together as other, and this condition would keep some of them and not the rest
-- at: age
-- try: SELECT COUNT(*) FILTER (WHERE age > 30 AND age <= 99) AS n, COUNT(*) FROM people WHERE height < 150
-- but: asks for COUNT(*) FILTER(WHERE age > 30 AND age <= 99) AS n instead of COUNT(*) FILTER(WHERE age > 30) AS n
SELECT COUNT(*) FILTER (WHERE age > 30) AS n, COUNT(*) FROM people WHERE height < 150

-- says: age holds numbers, and '30' is none
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE age = 30
-- but: has the condition age = 30 instead of age = '30'
SELECT COUNT(*) FROM people WHERE age = '30'

-- says: age holds numbers, and '30' is none
-- at: age
-- try: SELECT COUNT(*) FROM people WHERE age IN (30, 40)
-- but: has the condition age IN (30, 40) instead of age IN ('30', '40')
SELECT COUNT(*) FROM people WHERE age IN ('30', '40')

-- says: age holds numbers, and 'thirty' is none
-- at: age
SELECT COUNT(*) FROM people WHERE age = 'thirty'

-- says: height holds numbers, and TRUE is none
-- at: height
SELECT COUNT(*) FROM people WHERE height = TRUE

-- says: height holds numbers, and DATE '2024-01-01' is none
-- at: height
SELECT COUNT(*) FROM people WHERE height > DATE '2024-01-01'

-- says: income is known by bin only, and 14 cuts through [10, 20); the nearest edges are 10 and 20
-- at: income
-- try: SELECT COUNT(*) FROM people WHERE income < 10
-- but: has the condition income < 10 instead of income < 14
SELECT COUNT(*) FROM people WHERE income < 14

-- says: income is known by bin only, and 16 cuts through [10, 20); the nearest edges are 10 and 20
-- at: income
-- try: SELECT COUNT(*) FROM people WHERE income < 20
-- but: has the condition income < 20 instead of income < 16
SELECT COUNT(*) FROM people WHERE income < 16

-- says: income is known by bin only, and 20 cuts through [20, 50]; the nearest edges are 20 and 50
-- at: income
-- try: SELECT COUNT(*) FROM people WHERE income < 20
-- but: has the condition income < 20 instead of income <= 20
SELECT COUNT(*) FROM people WHERE income <= 20

-- says: income is known by bin only, and 10 cuts through [10, 20); the nearest edges are 10 and 20
-- at: income
-- try: SELECT COUNT(*) FROM people WHERE income >= 10
-- but: has the condition income >= 10 instead of income > 10
SELECT COUNT(*) FROM people WHERE income > 10

-- says: income is known by bin only, and 50 cuts through [20, 50]; the nearest edges are 20 and 50
-- at: income
-- try: SELECT COUNT(*) FROM people WHERE income <= 50
-- but: has the condition income <= 50 instead of income < 50
SELECT COUNT(*) FROM people WHERE income < 50

-- says: income is known by bin only, and 10 cuts through [10, 20); the nearest edges are 10 and 20
-- at: income
-- try: SELECT COUNT(*) FROM people WHERE income >= 10 AND income < 20
-- but: has the condition income >= 10 AND income < 20 instead of income = 10
SELECT COUNT(*) FROM people WHERE income = 10

-- says: income is known by bin only, and 45 cuts through [20, 50]; the nearest edges are 20 and 50
-- at: income
-- try: SELECT COUNT(*) FROM people WHERE NOT (income >= 20 AND income <= 50)
-- but: has the condition NOT (income >= 20 AND income <= 50) instead of income <> 45
SELECT COUNT(*) FROM people WHERE income <> 45

-- says: income is known by bin only, and 10 cuts through [10, 20); the nearest edges are 10 and 20
-- at: income
-- try: SELECT COUNT(*) FROM people WHERE income IN (99) OR income >= 10 AND income < 20
-- but: has the condition income IN (99) OR income >= 10 AND income < 20 instead of income IN (10, 99, 15)
SELECT COUNT(*) FROM people WHERE income IN (10, 99, 15)

-- says: income is known by bin only, and 20 cuts through [20, 50]; the nearest edges are 20 and 50
-- at: income
-- try: SELECT COUNT(*) FROM people WHERE income >= 10 AND income < 20
-- but: has the condition income >= 10 AND income < 20 instead of income BETWEEN 10 AND 20
SELECT COUNT(*) FROM people WHERE income BETWEEN 10 AND 20

-- says: income is known by bin only, and 1 cuts through [0, 10); the nearest edges are 0 and 10
-- at: income
-- try: SELECT COUNT(*) FROM people WHERE NOT (income >= 0 AND income <= 50)
-- but: has the condition NOT (income >= 0 AND income <= 50) instead of NOT income BETWEEN 1 AND 49
SELECT COUNT(*) FROM people WHERE income NOT BETWEEN 1 AND 49

-- says: values of weight outside 0.5 to 90 are kept together as other, and this condition would keep some of them and not the rest
-- at: weight
-- try: SELECT COUNT(*) FROM people WHERE weight < 60 AND weight >= 0.5
-- but: has the condition weight < 60 AND weight >= 0.5 instead of weight < 60
SELECT COUNT(*) FROM people WHERE weight < 60

-- says: weight is known by bin only, and 75 cuts through [60, 90]; the nearest edges are 60 and 90
-- at: weight
-- try: SELECT COUNT(*) FROM people WHERE weight >= 60 AND weight <= 90
-- but: has the condition weight >= 60 AND weight <= 90 instead of weight > 75
SELECT COUNT(*) FROM people WHERE weight > 75

-- says: values of weight outside 0.5 to 90 are kept together as other, and 95 lies among them
-- at: weight
SELECT COUNT(*) FROM people WHERE weight > 95

-- says: 'f' is not a declared value of sex: it cannot be told from the rest, which is called other
-- at: sex
-- try: SELECT COUNT(*) FROM people WHERE sex = 'F'
-- but: has the condition sex = 'F' instead of sex = 'f'
SELECT COUNT(*) FROM people WHERE sex = 'f'

-- says: 'Atlantis' is not a declared value of country: it cannot be told from the rest, which is called other
-- at: country
-- try: SELECT COUNT(*) FROM people WHERE country = 'other'
-- but: has the condition country = 'other' instead of country = 'Atlantis'
SELECT COUNT(*) FROM people WHERE country = 'Atlantis'

-- says: 'Atlantis' is not a declared value of country: it cannot be told from the rest, which is called other
-- at: country
-- try: SELECT COUNT(*) FROM people WHERE country IN ('DE', 'other')
-- but: has the condition country IN ('DE', 'other') instead of country IN ('DE', 'Atlantis')
SELECT COUNT(*) FROM people WHERE country IN ('DE', 'Atlantis')

-- says: sex has values like 'F', and 1 is none
-- at: sex
SELECT COUNT(*) FROM people WHERE sex = 1

-- says: code has values like 1, and '7' is none
-- at: code
-- try: SELECT COUNT(*) FROM people WHERE code = 7
-- but: has the condition code = 7 instead of code = '7'
SELECT COUNT(*) FROM people WHERE code = '7'

-- says: active has values like TRUE, and 'true' is none
-- at: active
-- try: SELECT COUNT(*) FROM people WHERE active = TRUE
-- but: has the condition active = TRUE instead of active = 'true'
SELECT COUNT(*) FROM people WHERE active = 'true'

-- says: country has listed values without an order; list those you mean with IN
-- at: country
-- try: SELECT COUNT(*) FROM people WHERE country IN ('DE')
-- but: has the condition country IN ('DE') instead of country < 'FR'
SELECT COUNT(*) FROM people WHERE country < 'FR'

-- says: country has listed values without an order; list those you mean with IN
-- at: country
-- try: SELECT COUNT(*) FROM people WHERE country IN ('FR', 'IT')
-- but: has the condition country IN ('FR', 'IT') instead of country BETWEEN 'E' AND 'J'
SELECT COUNT(*) FROM people WHERE country BETWEEN 'E' AND 'J'

-- says: country has listed values without an order; list those you mean with IN
-- at: country
-- try: SELECT COUNT(*) FROM people WHERE FALSE
-- but: has the condition FALSE instead of country > 'X'
SELECT COUNT(*) FROM people WHERE country > 'X'

-- says: values of country that are not listed and NULL are kept together as other, and this condition would keep some of them and not the rest
-- at: country
-- try: SELECT COUNT(*) FROM people WHERE country <> 'DE' AND country <> 'other'
-- but: has the condition country <> 'DE' AND country <> 'other' instead of country <> 'DE'
SELECT COUNT(*) FROM people WHERE country <> 'DE'

-- says: values of country that are not listed and NULL are kept together as other, and this condition would keep some of them and not the rest
-- at: country
-- try: SELECT COUNT(*) FROM people WHERE country = 'other'
-- but: has the condition country = 'other' instead of country IS NULL
SELECT COUNT(*) FROM people WHERE country IS NULL

-- says: values of country that are not listed and NULL are kept together as other, and this condition would keep some of them and not the rest
-- at: country)
-- try: SELECT COUNT(country) FROM people WHERE country <> 'other'
-- but: adds the condition country <> 'other'
SELECT COUNT(country) FROM people

-- says: NULL counts as N in region, so it cannot be told apart
-- at: region
-- try: SELECT COUNT(*) FROM people WHERE region = 'N'
-- but: has the condition region = 'N' instead of region IS NULL
SELECT COUNT(*) FROM people WHERE region IS NULL

-- says: NULL counts as 1900-01-01 in born, so it cannot be told apart
-- at: born
-- try: SELECT COUNT(*) FROM people WHERE NOT (born >= DATE '1900-01-01' AND born < DATE '1900-02-01')
-- but: has the condition NOT (born >= CAST('1900-01-01' AS DATE) AND born < CAST('1900-02-01' AS DATE)) instead of NOT born IS NULL
SELECT COUNT(*) FROM people WHERE born IS NOT NULL

-- says: values of seen outside DATE '2024-01-01' to DATE '2025-01-05' and NULL are kept together as other, and this condition would keep some of them and not the rest
-- at: seen
-- try: SELECT COUNT(*) FROM people WHERE seen IS NULL OR seen NOT BETWEEN DATE '2024-01-01' AND DATE '2025-01-05'
-- but: has the condition seen IS NULL OR NOT seen BETWEEN CAST('2024-01-01' AS DATE) AND CAST('2025-01-05... instead of seen IS NULL
SELECT COUNT(*) FROM people WHERE seen IS NULL

-- says: values of seen outside DATE '2024-01-01' to DATE '2025-01-05' and NULL are kept together as other, and this condition would keep some of them and not the rest
-- at: seen
-- try: SELECT COUNT(*) FROM people WHERE NOT (seen IS NULL OR seen NOT BETWEEN DATE '2024-01-01' AND DATE '2025-01-05')
-- but: has the condition NOT (seen IS NULL OR NOT seen BETWEEN CAST('2024-01-01' AS DATE) AND CAST('2025-... instead of NOT seen IS NULL
SELECT COUNT(*) FROM people WHERE seen IS NOT NULL

-- says: born is known by month only, and DATE '2000-01-10' cuts through the month of 2000-01-01; the nearest edges are DATE '2000-01-01' and DATE '2000-02-01'
-- at: born
-- try: SELECT COUNT(*) FROM people WHERE born < DATE '2000-01-01'
-- but: has the condition born < CAST('2000-01-01' AS DATE) instead of born < '2000-01-10'
SELECT COUNT(*) FROM people WHERE born < '2000-01-10'

-- says: born is known by month only, and DATE '2000-01-20' cuts through the month of 2000-01-01; the nearest edges are DATE '2000-01-01' and DATE '2000-02-01'
-- at: born
-- try: SELECT COUNT(*) FROM people WHERE born < DATE '2000-02-01'
-- but: has the condition born < CAST('2000-02-01' AS DATE) instead of born <= '2000-01-20'
SELECT COUNT(*) FROM people WHERE born <= '2000-01-20'

-- says: born is known by month only, and DATE '2000-01-01' cuts through the month of 2000-01-01; the nearest edges are DATE '2000-01-01' and DATE '2000-02-01'
-- at: born
-- try: SELECT COUNT(*) FROM people WHERE born >= DATE '2000-01-01' AND born < DATE '2000-02-01'
-- but: has the condition born >= CAST('2000-01-01' AS DATE) AND born < CAST('2000-02-01' AS DATE) instead of born = '2000-01-01'
SELECT COUNT(*) FROM people WHERE born = '2000-01-01'

-- says: '2000-13-01' is not a day; days are written 2024-12-31
-- at: born
SELECT COUNT(*) FROM people WHERE born >= '2000-13-01'

-- says: born holds days, written DATE '2024-12-31'
-- at: born
SELECT COUNT(*) FROM people WHERE born >= 2000

-- says: seen is known by week only, and DATE '2024-01-02' cuts through the week of 2024-01-01; the nearest edges are DATE '2024-01-01' and DATE '2024-01-08'
-- at: seen
-- try: SELECT COUNT(*) FROM people WHERE seen >= DATE '2024-01-01' AND seen < DATE '2024-01-22'
-- but: has the condition seen >= CAST('2024-01-01' AS DATE) AND seen < CAST('2024-01-22' AS DATE) instead of seen BETWEEN '2024-01-02' AND '2024-01-20'
SELECT COUNT(*) FROM people WHERE seen BETWEEN '2024-01-02' AND '2024-01-20'

-- says: values of seen outside DATE '2024-01-01' to DATE '2025-01-05' and NULL are kept together as other, and this condition would keep some of them and not the rest
-- at: seen
-- try: SELECT COUNT(*) FROM people WHERE seen >= '2024-01-08' AND seen <= DATE '2025-01-05'
-- but: has the condition seen >= '2024-01-08' AND seen <= CAST('2025-01-05' AS DATE) instead of seen >= '2024-01-08'
SELECT COUNT(*) FROM people WHERE seen >= '2024-01-08'

-- says: a condition that ties age and Zip Code together spans 102000102 cells; 1048576 are possible. Conditions on single columns joined by AND have no such limit, and neither has COUNT, in few groups
-- at: "Zip
-- try: SELECT sex, COUNT(*) FROM people WHERE "Zip Code" = 3 OR age = 2 GROUP BY sex
-- but: asks for COUNT(*) instead of SUM(height)
SELECT sex, SUM(height) FROM people WHERE "Zip Code" = 3 OR age = 2 GROUP BY sex

-- says: counts that tie age and Zip Code together are counted one by one, and this asks for more than 64 of them: groups times counts
-- at: "Zip Code" = 3
-- try: SELECT sex, COUNT(*) AS a FROM people WHERE "Zip Code" = 3 OR age = 2 GROUP BY sex
-- but: leaves out height; has GROUP BY sex instead of sex, height
SELECT sex, height, COUNT(*) AS a FROM people WHERE "Zip Code" = 3 OR age = 2 GROUP BY sex, height

-- says: counts that tie age and height and Zip Code together are counted one by one, and this asks for more than 64 of them: groups times counts
-- at: "Zip Code" = 3
-- try: SELECT COUNT(*) FILTER (WHERE "Zip Code" = 3 OR age = 2) AS b FROM people
-- but: leaves out height; leaves out GROUP BY height
SELECT height, COUNT(*) FILTER (WHERE "Zip Code" = 3 OR age = 2) AS b FROM people GROUP BY height

-- says: this asks for 1000001 answers; 1000000 are possible
-- at: "Zip
SELECT "Zip Code", COUNT(*) FROM people GROUP BY 1

-- says: this asks for 4566948 answers; 1000000 are possible
-- at: age,
SELECT age, height, day, COUNT(*) FROM people GROUP BY age, height, day

-- says: there is no column agee; did you mean age?
-- at: agee)
-- try: SELECT SUM(age) FROM people WHERE age >= 0 AND age <= 99
-- but: asks for SUM(age) instead of SUM(agee); has the condition age >= 0 AND age <= 99 instead of age >= 0
SELECT SUM(agee) FROM people WHERE age >= 0

-- says: sex holds no numbers; it can be counted and grouped by
-- at: sex)
-- try: SELECT COUNT(sex) FROM people
-- but: asks for COUNT(sex) instead of SUM(sex)
SELECT SUM(sex) FROM people

-- says: born holds no numbers; it can be counted and grouped by
-- at: born)
-- try: SELECT COUNT(born) FROM people
-- but: asks for COUNT(born) instead of AVG(born)
SELECT AVG(born) FROM people

-- says: a quantile is of a column of numbers
-- at: MEDIAN(active)
-- try: SELECT AVG(CASE WHEN active = TRUE THEN 1 WHEN active = FALSE THEN 0 END) FROM people
-- but: asks for AVG(CASE WHEN active = TRUE THEN 1 WHEN active = FALSE THEN 0 END) instead of MEDIAN(active)
SELECT MEDIAN(active) FROM people

-- says: values of age outside 0 to 99 are kept together as other, and this condition would keep some of them and not the rest
-- at: age
-- try: SELECT SUM(CASE WHEN age < 30 THEN 1 ELSE 0 END) FROM people WHERE age BETWEEN 0 AND 99
-- but: adds the condition age BETWEEN 0 AND 99
SELECT SUM(CASE WHEN age < 30 THEN 1 ELSE 0 END) FROM people

-- says: income is known by bin only, and 15 cuts through [10, 20); the nearest edges are 10 and 20
-- at: income
-- try: SELECT AVG(CASE WHEN income < 20 THEN 1 ELSE 0 END) FROM people
-- but: asks for AVG(CASE WHEN income < 20 THEN 1 ELSE 0 END) instead of AVG(CASE WHEN income < 15 THEN 1 ELSE 0 END)
SELECT AVG(CASE WHEN income < 15 THEN 1 ELSE 0 END) FROM people

-- says: age holds no text for LIKE to look at
-- at: age
SELECT COUNT(*) FROM people WHERE age LIKE '1%'

-- says: day holds no text for LIKE to look at
-- at: day
SELECT COUNT(*) FROM people WHERE day LIKE '2024%'

-- says: this asks for 1000000 answers; 100000 are possible
-- at: MEDIAN("Zip
-- try: SELECT AVG("Zip Code") FROM people
-- but: asks for AVG("zip code") instead of MEDIAN("zip code")
SELECT MEDIAN("Zip Code") FROM people

-- says: income is known by bin only, and 15 cuts through [10, 20); the nearest edges are 10 and 20
-- at: income
-- try: SELECT COUNT(*) FILTER (WHERE income < 20) / COUNT(*) FROM people
-- but: asks for COUNT(*) FILTER(WHERE income < 20) / COUNT(*) instead of COUNT(*) FILTER(WHERE income < 15) * 1.0 / COUNT(*)
SELECT COUNT(*) FILTER (WHERE income < 15) * 1.0 / COUNT(*) FROM people

-- says: a CASE that ties height and Zip Code together spans 122000122 cells; 1048576 are possible
-- at: SUM(CASE
SELECT SUM(CASE WHEN height < 150 THEN 1 WHEN "Zip Code" < 5 THEN 2 ELSE 3 END) FROM people

-- says: there is no column heigth; did you mean height?
-- at: heigth)
-- try: SELECT AVG(height) FROM people WITH ERROR 5
-- but: asks for AVG(height) instead of AVG(heigth)
SELECT AVG(heigth) FROM people WITH ERROR 5

-- says: there is no column agee; did you mean age?
-- at: agee)
-- try: SELECT COUNT(age) FROM people
-- but: asks for COUNT(age) instead of COUNT(agee)
SELECT COUNT(agee) FROM people

-- says: income is known by bin only, and 15 cuts through [10, 20); the nearest edges are 10 and 20
-- at: income
-- try: SELECT CASE WHEN income < 20 THEN 'low' ELSE 'high' END AS g, COUNT(*) FROM people GROUP BY CASE WHEN income < 20 THEN 'low' ELSE 'high' END
-- but: asks for CASE WHEN income < 20 THEN 'low' ELSE 'high' END AS g instead of CASE WHEN income < 15 THEN 'low' ELSE 'high' END AS g; has GROUP BY CASE WHEN income < 20 THEN 'low' ELSE 'high' END instead of CASE WHEN income < 15 THEN 'low' ELSE 'high' END
SELECT CASE WHEN income < 15 THEN 'low' ELSE 'high' END AS g, COUNT(*) FROM people GROUP BY g

-- says: there is no column agee; did you mean age?
-- at: agee
-- try: SELECT CASE WHEN age BETWEEN 0 AND 99 AND age < 15 THEN 'low' ELSE 'high' END AS g, COUNT(*) FROM people GROUP BY CASE WHEN age BETWEEN 0 AND 99 AND age < 15 THEN 'low' ELSE 'high' END
-- but: asks for CASE WHEN age BETWEEN 0 AND 99 AND age < 15 THEN 'low' ELSE 'high' END AS g instead of CASE WHEN agee < 15 THEN 'low' ELSE 'high' END AS g; has GROUP BY CASE WHEN age BETWEEN 0 AND 99 AND age < 15 THEN 'low' ELSE 'high' END instead of CASE WHEN agee < 15 THEN 'low' ELSE 'high' END
SELECT CASE WHEN agee < 15 THEN 'low' ELSE 'high' END AS g, COUNT(*) FROM people GROUP BY g

-- says: values of age outside 0 to 99 are kept together as other, and this condition would keep some of them and not the rest
-- at: age
-- try: SELECT CASE WHEN age BETWEEN 0 AND 99 AND age < 15 THEN 'low' ELSE 'high' END AS g, COUNT(*) FROM people GROUP BY CASE WHEN age BETWEEN 0 AND 99 AND age < 15 THEN 'low' ELSE 'high' END
-- but: asks for CASE WHEN age BETWEEN 0 AND 99 AND age < 15 THEN 'low' ELSE 'high' END AS g instead of CASE WHEN age < 15 THEN 'low' ELSE 'high' END AS g; has GROUP BY CASE WHEN age BETWEEN 0 AND 99 AND age < 15 THEN 'low' ELSE 'high' END instead of CASE WHEN age < 15 THEN 'low' ELSE 'high' END
SELECT CASE WHEN age < 15 THEN 'low' ELSE 'high' END AS g, COUNT(*) FROM people GROUP BY g

-- says: 'EN' is not a declared value of country: it cannot be told from the rest, which is called other
-- at: country
-- try: SELECT CASE WHEN country = 'other' THEN 1 ELSE 0 END AS g, COUNT(*) FROM people GROUP BY CASE WHEN country = 'other' THEN 1 ELSE 0 END
-- but: asks for CASE WHEN country = 'other' THEN 1 ELSE 0 END AS g instead of CASE WHEN country = 'EN' THEN 1 ELSE 0 END AS g; has GROUP BY CASE WHEN country = 'other' THEN 1 ELSE 0 END instead of CASE WHEN country = 'EN' THEN 1 ELSE 0 END
SELECT CASE WHEN country = 'EN' THEN 1 ELSE 0 END AS g, COUNT(*) FROM people GROUP BY g

-- says: income is known by bin only, and groups of 15 cut through [10, 20)
-- at: income
-- try: SELECT income AS g, COUNT(*) FROM people GROUP BY income
-- but: asks for income AS g instead of FLOOR(income / 15) AS g; has GROUP BY income instead of FLOOR(income / 15)
SELECT FLOOR(income / 15) AS g, COUNT(*) FROM people GROUP BY g

-- says: sex cannot be grouped like this: it holds no numbers to divide
-- at: sex
-- try: SELECT sex AS g, COUNT(*) FROM people GROUP BY sex
-- but: asks for sex AS g instead of FLOOR(sex / 10) AS g; has GROUP BY sex instead of FLOOR(sex / 10)
SELECT FLOOR(sex / 10) AS g, COUNT(*) FROM people GROUP BY g

-- says: income cannot be grouped like this: // is for whole numbers; write FLOOR(x / 10)
-- at: income
-- try: SELECT income AS g, COUNT(*) FROM people GROUP BY income
-- but: asks for income AS g instead of income // 10 AS g; has GROUP BY income instead of income // 10
SELECT income // 10 AS g, COUNT(*) FROM people GROUP BY g

-- says: height holds no days; group by the column itself
-- at: DATE_TRUNC('month',
-- try: SELECT height AS g, COUNT(*) FROM people GROUP BY height
-- but: asks for height AS g instead of DATE_TRUNC('MONTH', height) AS g; has GROUP BY height instead of DATE_TRUNC('MONTH', height)
SELECT DATE_TRUNC('month', height) AS g, COUNT(*) FROM people GROUP BY g

-- says: seen is known by week only, which is not enough to tell the month
-- at: DATE_TRUNC('month',
-- try: SELECT seen AS g, COUNT(*) FROM people GROUP BY seen
-- but: asks for seen AS g instead of DATE_TRUNC('MONTH', seen) AS g; has GROUP BY seen instead of DATE_TRUNC('MONTH', seen)
SELECT DATE_TRUNC('month', seen) AS g, COUNT(*) FROM people GROUP BY g

-- says: born is known by month only, which is not enough to tell the week
-- at: DATE_TRUNC('week',
-- try: SELECT born AS g, COUNT(*) FROM people GROUP BY born
-- but: asks for born AS g instead of DATE_TRUNC('WEEK', born) AS g; has GROUP BY born instead of DATE_TRUNC('WEEK', born)
SELECT DATE_TRUNC('week', born) AS g, COUNT(*) FROM people GROUP BY g

-- says: born is known by month only, which is not enough to tell the day
-- at: DAY(born)
-- try: SELECT born AS g, COUNT(*) FROM people GROUP BY born
-- but: asks for born AS g instead of DAY(born) AS g; has GROUP BY born instead of DAY(born)
SELECT DAY(born) AS g, COUNT(*) FROM people GROUP BY g

-- says: seen is known by week only, which is not enough to tell the dayofweek
-- at: DAYOFWEEK(seen)
-- try: SELECT seen AS g, COUNT(*) FROM people GROUP BY seen
-- but: asks for seen AS g instead of DAYOFWEEK(seen) AS g; has GROUP BY seen instead of DAYOFWEEK(seen)
SELECT DAYOFWEEK(seen) AS g, COUNT(*) FROM people GROUP BY g

-- says: income is known by bin only, and 30 cuts through [20, 50]; the nearest edges are 20 and 50
-- at: WIDTH_BUCKET(income,
-- try: SELECT income AS g, COUNT(*) FROM people GROUP BY income
-- but: asks for income AS g instead of WIDTH_BUCKET(income, 0, 50, 5) AS g; has GROUP BY income instead of WIDTH_BUCKET(income, 0, 50, 5)
SELECT WIDTH_BUCKET(income, 0, 50, 5) AS g, COUNT(*) FROM people GROUP BY g

-- says: sex has values like 'F', and 0 is none
-- at: WIDTH_BUCKET(sex,
-- try: SELECT sex AS g, COUNT(*) FROM people GROUP BY sex
-- but: asks for sex AS g instead of WIDTH_BUCKET(sex, 0, 50, 5) AS g; has GROUP BY sex instead of WIDTH_BUCKET(sex, 0, 50, 5)
SELECT WIDTH_BUCKET(sex, 0, 50, 5) AS g, COUNT(*) FROM people GROUP BY g

-- says: there is no column heigth; did you mean height?
-- at: heigth,
-- try: SELECT height, COUNT(*) AS n FROM people GROUP BY height HAVING n > 5 ORDER BY n DESC LIMIT 3
-- but: asks for height instead of heigth; has GROUP BY height instead of heigth
SELECT heigth, COUNT(*) AS n FROM people GROUP BY heigth HAVING n > 5 ORDER BY n DESC LIMIT 3

-- says: day holds no numbers; it can be counted and grouped by
-- at: day)
-- try: SELECT sex, COUNT(day) FROM people GROUP BY sex HAVING COUNT(day) > 5 ORDER BY COUNT(day)
-- but: asks for COUNT(day) instead of MEDIAN(day); has HAVING COUNT(day) > 5 instead of MEDIAN(day) > 5; has ORDER BY COUNT(day) instead of MEDIAN(day)
SELECT sex, MEDIAN(day) FROM people GROUP BY sex HAVING MEDIAN(day) > 5 ORDER BY 2

-- says: this asks for 1000002 answers; 1000000 are possible
-- at: "Zip
SELECT "Zip Code", COUNT(*) FROM people GROUP BY ROLLUP ("Zip Code")

-- says: there is no column heigth; did you mean height?
-- at: heigth
-- try: SELECT COUNT(*) FROM people WHERE height > 150
-- but: has the condition height > 150 instead of heigth > 150
SELECT COUNT(*) FROM (SELECT heigth FROM people) WHERE heigth > 150

-- says: there is no table peple; the table is people
-- at: peple)
-- try: SELECT COUNT(*) FROM people WHERE height > 150
-- but: reads people instead of peple
WITH x AS (SELECT height AS h FROM peple) SELECT COUNT(*) FROM x WHERE h > 150

-- says: income is known by bin only, and 15 cuts through [10, 20); the nearest edges are 10 and 20
-- at: income
-- try: SELECT COUNT(*) FROM people WHERE AT_LEAST(2, income < 20, sex = 'F')
-- but: has the condition AT_LEAST(2, income < 20, sex = 'F') instead of AT_LEAST(2, income < 15, sex = 'F')
SELECT COUNT(*) FROM people WHERE AT_LEAST(2, income < 15, sex = 'F')

-- says: a condition that ties height and sex and Zip Code together spans 488000488 cells; 1048576 are possible. Conditions on single columns joined by AND have no such limit, and neither has COUNT, in few groups
-- at: height
-- try: SELECT COUNT(*) FROM people WHERE AT_LEAST(2, height < 150, "Zip Code" < 5, sex = 'F')
-- but: asks for COUNT(*) instead of AVG(age)
SELECT AVG(age) FROM people WHERE AT_LEAST(2, height < 150, "Zip Code" < 5, sex = 'F')

-- says: values of age outside 0 to 99 are kept together as other, and 150 lies among them
-- at: age
SELECT COUNT(*) FROM people WHERE AT_LEAST(1, age < 5, age > 150)

-- says: groups that tie sex and Zip Code together span 4000004 cells; 1048576 are possible
-- at: "Zip Code"
-- try: SELECT COUNT(*) FILTER (WHERE "Zip Code" = 5 OR sex = 'F') AS yes, COUNT(*) FILTER (WHERE NOT ("Zip Code" = 5 OR sex = 'F') IS TRUE) AS no FROM people
-- but: asks for COUNT(*) FILTER(WHERE "zip code" = 5 OR sex = 'F') AS yes, COUNT(*) FILTER(WHERE... instead of CASE WHEN "zip code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, COUNT(*); leaves out GROUP BY CASE WHEN "zip code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END
SELECT CASE WHEN "Zip Code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, COUNT(*) FROM people GROUP BY c

-- says: groups that tie sex and Zip Code together span 4000004 cells; 1048576 are possible
-- at: "Zip Code"
SELECT CASE WHEN "Zip Code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, AVG(height) FROM people GROUP BY c

-- says: groups that tie height and sex together, and conditions that tie these to others, span 2928000 cells; 1048576 are possible
-- at: height
-- try: SELECT COUNT(*) FILTER (WHERE height < 150 OR sex = 'F') AS yes, COUNT(*) FILTER (WHERE NOT (height < 150 OR sex = 'F') IS TRUE) AS no_group FROM people WHERE (height > 160 OR born < DATE '1950-01-01') AND (sex = 'M' OR code = 2)
-- but: asks for COUNT(*) FILTER(WHERE height < 150 OR sex = 'F') AS yes, COUNT(*) FILTER(WHERE N... instead of CASE WHEN height < 150 OR sex = 'F' THEN 'yes' END AS c, COUNT(*); leaves out GROUP BY CASE WHEN height < 150 OR sex = 'F' THEN 'yes' END
SELECT CASE WHEN height < 150 OR sex = 'F' THEN 'yes' END AS c, COUNT(*) FROM people WHERE (height > 160 OR born < DATE '1950-01-01') AND (sex = 'M' OR code = 2) GROUP BY c

-- says: groups that tie sex and active together cannot stand beside a condition that ties too many columns together
-- at: sex
-- try: SELECT COUNT(*) AS "1" FROM people WHERE "Zip Code" = 5 OR sex = 'F'
-- but: asks for COUNT(*) AS "1" instead of CASE WHEN sex = 'F' OR active = TRUE THEN 1 ELSE 1 END AS c, COUNT(*); leaves out GROUP BY CASE WHEN sex = 'F' OR active = TRUE THEN 1 ELSE 1 END
SELECT CASE WHEN sex = 'F' OR active = TRUE THEN 1 ELSE 1 END AS c, COUNT(*) FROM people WHERE "Zip Code" = 5 OR sex = 'F' GROUP BY c

-- says: values of age outside 0 to 99 are kept together as other, and this condition would keep some of them and not the rest
-- at: age
-- try: SELECT CASE WHEN age BETWEEN 0 AND 99 AND (age > 5 OR sex = 'F') THEN 1 ELSE 2 END AS c, COUNT(*) FROM people GROUP BY CASE WHEN age BETWEEN 0 AND 99 AND (age > 5 OR sex = 'F') THEN 1 ELSE 2 END
-- but: asks for CASE WHEN age BETWEEN 0 AND 99 AND (age > 5 OR sex = 'F') THEN 1 ELSE 2 END AS c instead of CASE WHEN age > 5 OR sex = 'F' THEN 1 ELSE 2 END AS c; has GROUP BY CASE WHEN age BETWEEN 0 AND 99 AND (age > 5 OR sex = 'F') THEN 1 ELSE 2 END instead of CASE WHEN age > 5 OR sex = 'F' THEN 1 ELSE 2 END
SELECT CASE WHEN age > 5 OR sex = 'F' THEN 1 ELSE 2 END AS c, COUNT(*) FROM people GROUP BY c

-- says: income is known by bin only, and 15 cuts through [10, 20); the nearest edges are 10 and 20
-- at: income
-- try: SELECT CASE WHEN income < 20 OR sex = 'F' THEN 1 ELSE 2 END AS c, COUNT(*) FROM people GROUP BY CASE WHEN income < 20 OR sex = 'F' THEN 1 ELSE 2 END
-- but: asks for CASE WHEN income < 20 OR sex = 'F' THEN 1 ELSE 2 END AS c instead of CASE WHEN income < 15 OR sex = 'F' THEN 1 ELSE 2 END AS c; has GROUP BY CASE WHEN income < 20 OR sex = 'F' THEN 1 ELSE 2 END instead of CASE WHEN income < 15 OR sex = 'F' THEN 1 ELSE 2 END
SELECT CASE WHEN income < 15 OR sex = 'F' THEN 1 ELSE 2 END AS c, COUNT(*) FROM people GROUP BY c

-- says: the sub-select hands on two columns region; give the one that is not the column of the table another name
-- at: region
SELECT region, COUNT(*) FROM (SELECT *, sex AS region FROM people) GROUP BY region

-- says: GROUP BY age means the column of that name, and what is made of age is not in GROUP BY
-- at: age
-- try: SELECT FLOOR(age / 10) AS age, COUNT(*) FROM people GROUP BY FLOOR(age / 10)
SELECT FLOOR(age / 10) AS age, COUNT(*) FROM people GROUP BY age

-- says: active has values like TRUE, and 0 is none
-- at: active
-- try: SELECT COUNT(*) FROM people WHERE active IN (FALSE, TRUE)
-- but: has the condition active IN (FALSE, TRUE) instead of active IN (0, 1)
SELECT COUNT(*) FROM people WHERE active IN (0, 1)

-- says: this looks at 122000122 joint cells at once; 67108864 are possible for anything but a COUNT in few groups
-- at: SUM
-- try: SELECT COUNT(*) FROM people WHERE "Zip Code" < 5
-- but: asks for COUNT(*) instead of SUM(height)
SELECT SUM(height) FROM people WHERE "Zip Code" < 5

-- says: this looks at 488000488 joint cells at once; 67108864 are possible for anything but a COUNT in few groups
-- at: AVG
-- try: SELECT sex, COUNT(*) AS n FROM people WHERE "Zip Code" < 5 GROUP BY sex
-- but: leaves out AVG(height)
SELECT sex, AVG(height), COUNT(*) AS n FROM people WHERE "Zip Code" < 5 GROUP BY sex

-- says: this looks at 122000122 joint cells at once; 67108864 are possible for anything but a COUNT in few groups
-- at: MEDIAN
-- try: SELECT COUNT(*) FROM people WHERE "Zip Code" < 5
-- but: asks for COUNT(*) instead of MEDIAN(height)
SELECT MEDIAN(height) FROM people WHERE "Zip Code" < 5

-- says: counts that tie height and Zip Code together are counted one by one, and this asks for more than 64 of them: groups times counts
-- at: "Zip
-- try: SELECT COUNT(*) FROM people WHERE "Zip Code" < 5
-- but: leaves out height; leaves out GROUP BY height
SELECT height, COUNT(*) FROM people WHERE "Zip Code" < 5 GROUP BY height

-- says: groups that tie sex and Zip Code together span 4000004 cells; 1048576 are possible
-- at: "Zip
-- try: SELECT COUNT(*) FILTER (WHERE "Zip Code" = 5 OR sex = 'F') AS yes, COUNT(*) FILTER (WHERE NOT ("Zip Code" = 5 OR sex = 'F') IS TRUE) AS no FROM people WITH ERROR 9 ON yes, 9 ON no
-- but: asks for COUNT(*) FILTER(WHERE "zip code" = 5 OR sex = 'F') AS yes, COUNT(*) FILTER(WHERE... instead of CASE WHEN "zip code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, COUNT(*) AS...; leaves out GROUP BY CASE WHEN "zip code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END
SELECT CASE WHEN "Zip Code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, COUNT(*) AS n FROM people GROUP BY c WITH ERROR 9 ON n

-- says: groups that tie sex and Zip Code together span 4000004 cells; 1048576 are possible
-- at: "Zip
-- try: SELECT active, GROUPING(active) AS g, COUNT(*) FILTER (WHERE "Zip Code" = 5 OR sex = 'F') AS yes, COUNT(*) FILTER (WHERE NOT ("Zip Code" = 5 OR sex = 'F') IS TRUE) AS no FROM people GROUP BY GROUPING SETS ((active), ()) ORDER BY GROUPING(active)
-- but: asks for COUNT(*) FILTER(WHERE "zip code" = 5 OR sex = 'F') AS yes, COUNT(*) FILTER(WHERE... instead of CASE WHEN "zip code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, COUNT(*) AS...; has GROUP BY GROUPING SETS (active, ()) instead of ROLLUP (active), CASE WHEN "zip code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END; leaves out HAVING COUNT(*) > 5; has ORDER BY GROUPING(active) instead of GROUPING(active), COUNT(*) DESC; leaves out LIMIT 3
SELECT active, CASE WHEN "Zip Code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, GROUPING(active) AS g, COUNT(*) AS n FROM people GROUP BY ROLLUP (active), c HAVING n > 5 ORDER BY g, n DESC LIMIT 3

-- says: groups that tie sex and Zip Code together span 4000004 cells; 1048576 are possible
-- at: "Zip
-- try: SELECT active, GROUPING(active) AS g, COUNT(*) FILTER (WHERE "Zip Code" = 5 OR sex = 'F') AS yes, COUNT(*) FILTER (WHERE NOT ("Zip Code" = 5 OR sex = 'F') IS TRUE) AS no, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((active), ()) WITH ERROR 9 ON n, 9 ON yes, 9 ON no
-- but: asks for GROUPING(active) AS g, COUNT(*) FILTER(WHERE "zip code" = 5 OR sex = 'F') AS yes... instead of CASE WHEN "zip code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, GROUPING(ac...; has GROUP BY GROUPING SETS (active, ()) instead of ROLLUP (active, c)
SELECT active, CASE WHEN "Zip Code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, GROUPING(active, c) AS g, COUNT(*) AS n FROM people GROUP BY ROLLUP (active, c) WITH ERROR 9 ON n

-- says: groups that tie sex and active and Zip Code together span 12000012 cells; 1048576 are possible
-- at: "Zip
-- try: SELECT COUNT(*) FILTER (WHERE "Zip Code" = 5 OR active = TRUE AND NOT (sex = 'F') IS TRUE) AS x, COUNT(*) FILTER (WHERE sex = 'F' AND NOT ("Zip Code" = 5) IS TRUE) AS y, COUNT(*) FILTER (WHERE NOT ("Zip Code" = 5) IS TRUE AND NOT (sex = 'F') IS TRUE AND NOT (active = TRUE) IS TRUE) AS no_group FROM people
-- but: asks for COUNT(*) FILTER(WHERE "zip code" = 5 OR active = TRUE AND NOT (sex = 'F') IS TRU... instead of CASE WHEN "zip code" = 5 THEN 'x' WHEN sex = 'F' THEN 'y' WHEN active = TRUE THE...; leaves out GROUP BY CASE WHEN "zip code" = 5 THEN 'x' WHEN sex = 'F' THEN 'y' WHEN active = TRUE THE...
SELECT CASE WHEN "Zip Code" = 5 THEN 'x' WHEN sex = 'F' THEN 'y' WHEN active = TRUE THEN 'x' END AS c, COUNT(*) FROM people GROUP BY c

-- says: groups that tie sex and Zip Code together span 4000004 cells; 1048576 are possible
-- at: "Zip
-- try: SELECT COUNT(*) FILTER (WHERE "Zip Code" = 5 OR sex = 'F') AS yes_count, COUNT(code) FILTER (WHERE "Zip Code" = 5 OR sex = 'F') AS yes_codes, COUNT(*) FILTER (WHERE NOT ("Zip Code" = 5 OR sex = 'F') IS TRUE) AS Yes_count_2, COUNT(code) FILTER (WHERE NOT ("Zip Code" = 5 OR sex = 'F') IS TRUE) AS Yes_codes_2 FROM people
-- but: asks for COUNT(*) FILTER(WHERE "zip code" = 5 OR sex = 'F') AS yes_count, COUNT(code) FIL... instead of CASE WHEN "zip code" = 5 OR sex = 'F' THEN 'yes' ELSE 'Yes' END AS c, COUNT(*), ...; leaves out GROUP BY CASE WHEN "zip code" = 5 OR sex = 'F' THEN 'yes' ELSE 'Yes' END
SELECT CASE WHEN "Zip Code" = 5 OR sex = 'F' THEN 'yes' ELSE 'Yes' END AS c, COUNT(*), COUNT(code) AS codes FROM people GROUP BY c

-- says: groups that tie sex and Zip Code together span 4000004 cells; 1048576 are possible
-- at: "Zip
-- try: SELECT SUM(code) FILTER (WHERE "Zip Code" = 5) + SUM(code) FILTER (WHERE sex = 'F' AND NOT ("Zip Code" = 5) IS TRUE) AS yes, SUM(code) FILTER (WHERE NOT ("Zip Code" = 5) IS TRUE AND NOT (sex = 'F') IS TRUE) AS no FROM people
-- but: asks for SUM(code) FILTER(WHERE "zip code" = 5) + SUM(code) FILTER(WHERE sex = 'F' AND NO... instead of CASE WHEN "zip code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, SUM(code) A...; leaves out GROUP BY CASE WHEN "zip code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END
SELECT CASE WHEN "Zip Code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, SUM(code) AS s FROM people GROUP BY c

-- says: groups that tie sex and Zip Code together span 4000004 cells; 1048576 are possible
-- at: "Zip
-- try: SELECT AVG(code) FILTER (WHERE "Zip Code" = 5 AND sex = 'F') AS yes_a, COUNT(*) FILTER (WHERE "Zip Code" = 5 AND sex = 'F') AS yes_n, (SUM(code) FILTER (WHERE NOT ("Zip Code" = 5) IS TRUE) + SUM(code) FILTER (WHERE NOT (sex = 'F') IS TRUE AND "Zip Code" = 5)) / (COUNT(code) FILTER (WHERE NOT ("Zip Code" = 5) IS TRUE) + COUNT(code) FILTER (WHERE NOT (sex = 'F') IS TRUE AND "Zip Code" = 5)) AS no_a, COUNT(*) FILTER (WHERE NOT ("Zip Code" = 5 AND sex = 'F') IS TRUE) AS no_n FROM people WITH ERROR 9 ON yes_a, 9 ON no_a, 5
-- but: asks for AVG(code) FILTER(WHERE "zip code" = 5 AND sex = 'F') AS yes_a, COUNT(*) FILTER(W... instead of CASE WHEN "zip code" = 5 AND sex = 'F' THEN 'yes' ELSE 'no' END AS c, AVG(code) ...; leaves out GROUP BY CASE WHEN "zip code" = 5 AND sex = 'F' THEN 'yes' ELSE 'no' END
SELECT CASE WHEN "Zip Code" = 5 AND sex = 'F' THEN 'yes' ELSE 'no' END AS c, AVG(code) AS a, COUNT(*) AS n FROM people GROUP BY c WITH ERROR 9 ON a, 5

-- says: groups that tie sex and Zip Code together span 4000004 cells; 1048576 are possible
-- at: "Zip
SELECT CASE WHEN "Zip Code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, MEDIAN(code) AS m FROM people GROUP BY c

-- says: groups that tie sex and Zip Code together span 4000004 cells; 1048576 are possible
-- at: "Zip
SELECT height, CASE WHEN "Zip Code" = 5 OR sex = 'F' THEN 'yes' ELSE 'no' END AS c, COUNT(*) FROM people GROUP BY height, c

-- says: groups that tie height and seen and born together span 9882000 cells; 1048576 are possible
-- at: height
SELECT day, CASE WHEN height < 150 OR seen < DATE '2024-02-05' OR born < DATE '1950-01-01' THEN 'yes' ELSE 'no' END AS c, COUNT(*) AS n FROM people WHERE seen BETWEEN DATE '2024-01-01' AND DATE '2024-12-30' GROUP BY day, c

-- says: there is no column n; the columns are age, height, income, weight, sex, country, active, code, region, day, seen, born, Zip Code
-- at: n
-- try: SELECT sex, COUNT(*) AS n FROM people WHERE height > 150 GROUP BY sex HAVING n < 99 AND n > 10
-- but: has the condition height > 150 instead of n > 10 AND height > 150; has HAVING COUNT(*) < 99 AND COUNT(*) > 10 instead of COUNT(*) < 99
SELECT sex, COUNT(*) AS n FROM people WHERE n > 10 AND height > 150 GROUP BY sex HAVING n < 99

-- says: NULL counts as N in region, so it cannot be told apart
-- at: region
SELECT COUNT(*) FROM people WHERE region = 'S' OR region IS NULL

-- says: a number is rounded to a constant number of decimals, at most 100
-- at: ROUND
SELECT ROUND(AVG(age), 1e9) AS a FROM people

-- says: these numbers are too large to be added up
-- at: SUM
SELECT SUM(height * 1e200) AS s FROM people

-- says: LAG takes a whole number from 0 to 10000
-- at: LAG
SELECT sex, n, LAG(n, n) OVER (ORDER BY sex) AS w FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t

-- says: day is known by day only, and '2024-01-03 10:00:00' is within one
-- at: day
-- try: SELECT COUNT(*) FROM people WHERE day >= DATE '2024-01-03'
-- but: has the condition day >= CAST('2024-01-03' AS DATE) instead of day >= CAST('2024-01-03 10:00:00' AS TIMESTAMP)
SELECT COUNT(*) FROM people WHERE day >= TIMESTAMP '2024-01-03 10:00:00'

-- says: day is known by day only, and '2024-01-03 23:59:59' is within one
-- at: day
-- try: SELECT COUNT(*) FROM people WHERE day >= DATE '2024-01-03'
-- but: has the condition day >= CAST('2024-01-03' AS DATE) instead of day >= '2024-01-03 23:59:59'
SELECT COUNT(*) FROM people WHERE day >= '2024-01-03 23:59:59'

-- says: day is known by day only, and '2024-01-03 23:59:59+05:00' is within one
-- at: day
-- try: SELECT COUNT(*) FROM people WHERE day <= DATE '2024-01-03'
-- but: has the condition day <= CAST('2024-01-03' AS DATE) instead of day <= '2024-01-03 23:59:59+05:00'
SELECT COUNT(*) FROM people WHERE day <= '2024-01-03 23:59:59+05:00'
