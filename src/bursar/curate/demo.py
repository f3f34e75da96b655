"""People who do not exist: a table to try Bursar on, and the config that declares it.

Nothing here is private, so the generator is seeded and the same seed gives the same people. This is the only place in
Bursar with a seed: the noise of answers never has one.
"""

from __future__ import annotations

import csv
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEED = 1597
REGIONS = ("Northmark", "Eastvale", "Southport", "Westmoor", "Lakeside", "Highfell", "Rivermouth", "Old Harbour")
EDUCATION = ("primary", "secondary", "vocational", "bachelor", "master", "doctorate")
OCCUPATIONS = (
    "student", "retired", "at home", "farming", "crafts", "industry", "trade", "office", "teaching", "health",
    "engineering", "management",
)  # fmt: skip
MARITAL = ("single", "married", "divorced", "widowed")
COLUMNS = (
    "person_id", "age", "sex", "region", "education", "occupation", "income", "hours", "marital", "member", "joined",
)  # fmt: skip
FIRST_DAY, DAYS = date(2020, 1, 1), 1461

_CONFIG = """\
# The demo data: {rows:,} people who do not exist. What each key means is told in docs/config.md.
# Everything in this file is public; the rows of people.csv are not.

dataset = "demo-people"       # the ledger, and with it the budget, is bound to this name

[source]
path = "{name}"
table = "people"              # SELECT ... FROM people
max_rows = {max_rows}             # a public number that the table will never exceed
public_size = {public_size}           # no secret here, so that an error may be given as a percentage of it

[privacy]
unit = "row"                  # each person has one row
neighbours = "add-remove"     # hide whether a person is in the table at all

[budget]
epsilon = 1.0                 # the most that all answers together may reveal about anybody

[goal]                        # for questions that name no accuracy
error = "1%"
confidence = 0.95

[columns.age]                 # whole numbers; the few who are older count as 99
lower = 16
upper = 99

[columns.sex]                 # listed values; anything else is counted as "other"
values = ["F", "M"]

[columns.region]
values = [{regions}]

[columns.education]           # some did not say: NULL has a cell of its own
values = [{education}]

[columns.occupation]
values = [{occupations}]

[columns.income]              # numbers in bins; higher incomes fall into the last one
edges = {{ from = 0, to = 150000, step = 10000 }}

[columns.hours]               # hours of paid work in a week
lower = 0
upper = 80

[columns.marital]
values = [{marital}]

[columns.member]              # of the library
values = [true, false]
outside = {{ as = false }}
null = {{ as = false }}

[columns.joined]              # the month in which the person came into the register
first = {first}
last = {last}
by = "month"
"""


def generate(path: str | Path, rows: int = 50_000, seed: int = SEED) -> Path:
    """Write a CSV of fictitious people to `path` and the config `bursar.toml` beside it; returns the config's path."""
    path = Path(path)
    columns = _people(rows, np.random.default_rng(seed))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(zip(*(columns[name] for name in COLUMNS), strict=True))
    config = path.with_name("bursar.toml")
    text = _CONFIG.format(
        rows=rows,
        name=path.name,
        max_rows=2 * rows,
        public_size=rows,
        regions=_listed(REGIONS),
        education=_listed(EDUCATION),
        occupations=_listed(OCCUPATIONS),
        marital=_listed(MARITAL),
        first=FIRST_DAY,
        last=FIRST_DAY + timedelta(days=DAYS - 1),
    )
    config.write_text(text, encoding="utf-8")
    return config


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def _people(rows: int, rng: np.random.Generator) -> dict[str, list[object]]:
    """Columns that hang together: the old are retired, the educated earn more, the young are single."""
    age = np.clip(16 + rng.gamma(2.6, 11.5, rows), 16, 96).astype(np.int64)
    age[rng.random(rows) < 0.0004] += 30
    female = rng.random(rows) < 0.505 + 0.001 * (age - 40)
    sex = np.where(rng.random(rows) < 0.004, "X", np.where(female, "F", "M"))
    region = rng.choice(len(REGIONS), rows, p=[0.21, 0.17, 0.15, 0.13, 0.11, 0.1, 0.08, 0.05])
    education = _education(age, region, rng)
    occupation = _occupation(age, education, female, rng)
    hours, income = _work(age, education, occupation, region, female, rng)
    joined = FIRST_DAY.toordinal() + (DAYS * rng.beta(1.6, 1.1, rows)).astype(np.int64)
    return {
        "person_id": [f"P{number:06d}" for number in rng.permutation(rows)],
        "age": age.tolist(),
        "sex": sex.tolist(),
        "region": [REGIONS[place] for place in region],
        "education": _with_gaps([EDUCATION[place] for place in education], 0.03, rng),
        "occupation": [OCCUPATIONS[place] for place in occupation],
        "income": _with_gaps([f"{amount:.2f}" for amount in income], 0.02, rng),
        "hours": hours.tolist(),
        "marital": [MARITAL[place] for place in _marital(age, rng)],
        "member": np.where(rng.random(rows) < 0.12 + 0.07 * education, "true", "false").tolist(),
        "joined": [date.fromordinal(day).isoformat() for day in joined],
    }


def _draw(weights: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One draw per line, with the line's weights as odds."""
    ladder = np.cumsum(weights, axis=1)
    steps: NDArray[np.int64] = (ladder < rng.random((len(ladder), 1)) * ladder[:, -1:]).sum(axis=1)
    return steps


def _education(age: NDArray[np.int64], region: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    weights = np.tile([9.0, 28.0, 27.0, 21.0, 12.0, 3.0], (len(age), 1))
    weights[:, 0] += np.maximum(age - 55, 0) * 0.8
    weights[:, 3:] *= (1 + 0.12 * (region % 3))[:, None]
    weights[age < 24, 4:] = 0
    weights[age < 20, 2:] *= 0.05
    return _draw(weights, rng)


def _occupation(
    age: NDArray[np.int64], education: NDArray[np.int64], female: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.int64]:
    weights = np.tile([2.0, 0.2, 8, 4, 10, 14, 15, 17, 7, 10, 8, 5], (len(age), 1))
    high, low = education >= 3, education <= 1
    weights[high, 3:7] *= 0.35
    weights[high, 8:] *= 2.5
    weights[low, 8:] *= 0.3
    weights[female, 8:10] *= 1.8
    weights[~female, 4:6] *= 1.8
    weights[age < 26, 0] += 500 / (1 + np.exp(age[age < 26] - 20.0))
    weights[age > 58, 1] += np.exp(0.7 * (np.minimum(age[age > 58], 75) - 58.0))
    return _draw(weights, rng)


def _work(
    age: NDArray[np.int64],
    education: NDArray[np.int64],
    occupation: NDArray[np.int64],
    region: NDArray[np.int64],
    female: NDArray[np.bool_],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Weekly hours and yearly income."""
    part_time = rng.random(len(age)) < np.where(female, 0.32, 0.12)
    hours = np.where(part_time, rng.normal(21, 5, len(age)), rng.normal(39, 4.5, len(age)))
    hours += np.where(occupation == OCCUPATIONS.index("management"), 7, 0)
    hours = np.where(occupation <= OCCUPATIONS.index("at home"), rng.exponential(1.5, len(age)), hours)
    pay = np.array([9, 17, 6, 27, 31, 34, 29, 36, 40, 39, 52, 68])[occupation] * 1000.0
    pay *= 1 + 0.07 * education + 0.006 * np.clip(age - 25, 0, 30) + 0.03 * (region == 1)
    worked = np.where(occupation <= OCCUPATIONS.index("at home"), 1.0, np.clip(hours, 5, 60) / 39)
    income = pay * worked * rng.lognormal(0, 0.28, len(age))
    income[rng.random(len(age)) < 0.0005] *= 40
    hours[rng.random(len(age)) < 0.0005] = 95
    return np.clip(hours, 0, 95).astype(np.int64), income


def _marital(age: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    years = age - 16.0
    weights = np.stack(
        [8 + 90 * np.exp(-years / 12), 1.6 * years, np.maximum(years - 9, 0) * 0.35, np.exp((years - 38) / 11)], axis=1
    )
    return _draw(weights, rng)


def _with_gaps(values: list[str], share: float, rng: np.random.Generator) -> list[str]:
    """Some people do not say; an empty field is NULL."""
    return ["" if gap else value for value, gap in zip(values, rng.random(len(values)) < share, strict=True)]
