import csv

import opendp.prelude as dp

dp.enable_features("contrib")
EPSILON = 0.11372  # 16 counts within 50, all together, in 95 of 100 cases
EDUCATION = [
    "10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc", "Bachelors",
    "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school", "Some-college",
]  # fmt: skip
with open("people.csv", newline="") as file:
    rows = [row["education"] for row in csv.DictReader(file)]
space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
counts = space >> dp.t.then_count_by_categories(EDUCATION, null_category=False)
measurement = counts >> dp.m.then_laplace(scale=1 / EPSILON)
for key, value in zip(EDUCATION, measurement(rows), strict=True):
    print(key, value)
print("epsilon", measurement.map(1))
