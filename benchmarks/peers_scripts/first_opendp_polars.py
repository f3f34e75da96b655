import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")
EPSILON = 0.11372  # 16 counts within 50, all together, in 95 of 100 cases
EDUCATION = [
    "10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc", "Bachelors",
    "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school", "Some-college",
]  # fmt: skip
context = dp.Context.compositor(
    data=pl.read_csv("people.csv").lazy(),
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=1.0),
    margins=[dp.polars.Margin(max_length=100_000, max_groups=100)],
)
query = context.query(epsilon=EPSILON).group_by("education").agg(dp.len(signed=True))
print(query.with_keys(pl.LazyFrame({"education": EDUCATION})).release().collect())
print("epsilon", context.current_privacy_loss())
