import pandas as pd
from diffprivlib import BudgetAccountant, tools

EPSILON = 0.11372  # 16 counts within 50, all together, in 95 of 100 cases
EDUCATION = [
    "10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc", "Bachelors",
    "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school", "Some-college",
]  # fmt: skip
accountant = BudgetAccountant(epsilon=1.0)
codes = pd.Categorical(pd.read_csv("people.csv")["education"], categories=EDUCATION).codes
bins = len(EDUCATION)
counts, _ = tools.histogram(codes, epsilon=EPSILON, bins=bins, range=(0, bins), accountant=accountant)
print(pd.Series(counts, index=EDUCATION))
print("epsilon", accountant.total()[0])
