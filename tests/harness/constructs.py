"""Questions about every construct of the SQL reference, drawn anew, and what DuckDB answers to them.

Every question of docs/sql.md is a seed. From each, other questions are made: columns are exchanged for others of the
same kind, constants for others, aggregates for their relatives, and conditions come on top. So a construct that is new
on the page is tried by itself. Tables are drawn as well: with NULLs, values that are not listed, unicode, decimals,
days, and groups that nobody is in.
"""

from __future__ import annotations

import math
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import sqlglot
from sqlglot import exp

from bursar.answer import lines_of
from bursar.compile import Workload
from bursar.compile.compile_cache import CompileCache
from bursar.compile.compiler import ALL
from bursar.compile.partwise import PartwiseMap
from bursar.compile.values import Decimals
from bursar.config import load
from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Period
from bursar.core.queries import LinearMap
from bursar.core.source.duckdb import DuckDBSource
from bursar.core.tables import Tables
from bursar.errors import QueryError
from bursar.estimation.derived import Combination
from harness.exactly import Rows, dense_cells, plain, sparse_cells

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
Line = tuple[Any, ...]

# -------------------------------------------------------------------------------------------------------- seeds


@dataclass(frozen=True)
class Seed:
    """A question of the reference, in our spelling and in one that DuckDB reads."""

    section: str
    text: str
    duckdb: str


SPOKEN: tuple[tuple[str, str], ...] = (
    (r"^EXPLAIN ", ""),
    (r"\s+WITH (?:ERROR|RELATIVE|RMSE|EPSILON)\b.*$", ""),
    (r"DP_INTERVAL_(?:LOW|HIGH)\((\w+)\)", r"\1"),
    (r"`(\w+)`", r'"\1"'),
    (r"SELECT TOP 3 (.*)$", r"SELECT \1 LIMIT 3"),
    (r"FETCH FIRST 3 ROWS ONLY", "LIMIT 3"),
    (r"DATE_TRUNC\((\w+), MONTH\)", r"DATE_TRUNC('month', \1)"),
    (r"TO_CHAR\((\w+), 'YYYY-MM'\)|DATE_FORMAT\((\w+), '%Y-%m'\)", r"STRFTIME(\1\2, '%Y-%m')"),
    (r"TO_CHAR\((\w+), 'FMMonth YYYY'\)", r"STRFTIME(\1, '%B %Y')"),
    (r"TO_CHAR\((\w+), 'Q'\)", r"CAST(QUARTER(\1) AS VARCHAR)"),
    (r"TO_TIMESTAMP\('([0-9-]+) [^']*', '[^']*'\)", r"DATE '\1'"),
    (r"\{fn UCASE\((\w+)\)\}", r"UPPER(\1)"),
    (r"\{d ('[0-9-]+')\}", r"DATE \1"),
    (r"FLOOR\((\w+), -1\)", r"FLOOR(\1 / 10) * 10"),
    (r"SAFE_DIVIDE\((\w+), (\w+)\)", r"\1 / NULLIF(\2, 0)"),
    (r"APPROX_PERCENTILE\((\w+), ([0-9.]+)\)", r"QUANTILE_CONT(\1, \2)"),
    (r"\bVAR\(", "VAR_SAMP("),
    (r"\bSTD\(", "STDDEV("),
    (r"CURRENT_DATE", "DATE '2022-06-30'"),
    # people of whom every value is NULL have no number, whatever its bounds are, and are in no group of it
    (r"LEAST\((SUM\(\w+\)), (\d+)\)", r"CASE WHEN \1 IS NOT NULL THEN LEAST(\1, \2) END"),
    (
        r"(FLOOR.*(SUM\(\w+\)(?: FILTER \(WHERE [^)]*\))?) AS total .*GROUP BY person)\)",
        r"\1 HAVING \2 IS NOT NULL)",
    ),
    # where a function has no value, rows are left out
    (r"SQRT\((\w+)\)", r"SQRT(CASE WHEN \1 >= 0 THEN \1 END)"),
)
"""How DuckDB writes what is ours alone, or another database's."""

MACROS = """
CREATE MACRO at_least(k, a, b, c) AS (coalesce(a, FALSE)::INT + coalesce(b, FALSE)::INT + coalesce(c, FALSE)::INT >= k);
CREATE MACRO width_bucket(x, low, high, bins) AS
  (CASE WHEN x < low THEN 0 WHEN x >= high THEN bins + 1 ELSE FLOOR((x - low) * bins / (high - low)) + 1 END);
"""

UNLIKE = {
    "HISTOGRAM(age)": "DuckDB puts all values into one cell; lines are compared in test_stages",
    "MAX(joined)": "days are not looked for: their bounds are the declared ones",
    "GROUP BY occupation OFFSET 3": "which lines come first is not said; here they stand as values are declared",
}
"""Questions of the page that DuckDB answers in another form, by a part of their text."""


PER_PERSON = "(SELECT person, {} FROM visits WHERE cost IS NOT NULL GROUP BY person)"
BY_WARD = "(SELECT person, ward, {} FROM visits GROUP BY person, ward)"
FEW, LITTLE = "LEAST(COUNT(*), 20) AS n", "GREATEST(LEAST(SUM(cost), 10), -5) AS n"
MORE = (
    *(
        f"SELECT {'ward, ' if 'ward' in inner else ''}{outer} FROM {inner.format(number)}"
        f"{' GROUP BY ward' if 'ward' in inner else ''}"
        for inner in (PER_PERSON, BY_WARD)
        for number in (FEW, *([] if "ward" in inner else [LITTLE]))
        for outer in (
            "COUNT(*) AS people, SUM(n) AS s, AVG(n) AS a",
            "STDDEV(n) AS s, VAR_POP(n) AS v",
            "VARIANCE(n) AS v, STDDEV_POP(n) AS s",
            "MEDIAN(n) AS m, QUANTILE_CONT(n, 0.3) AS q, QUANTILE_DISC(n, 0.8) AS d",
            "MIN(n) AS least, MAX(n) AS most",
        )
        if not ("ward" in inner and "AS s" not in outer)
    ),
    f"SELECT AVG(CASE WHEN n > 2 THEN 1.0 ELSE 0.0 END) AS a, COUNT(*) AS c FROM {PER_PERSON.format(FEW)}",
    f"SELECT SUM(CASE WHEN n > 2 THEN 1 ELSE 0 END) AS s FROM {PER_PERSON.format(FEW)}",
    "SELECT ward, COUNT(DISTINCT person) AS people, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT COUNT(DISTINCT person) FILTER (WHERE cost > 3) AS people, COUNT(DISTINCT ward) AS wards FROM visits",
    "SELECT p.sex, STDDEV(v.cost) AS s, MEDIAN(v.cost) AS m, COUNT(*) AS n FROM visits v "
    "JOIN people p ON v.person = p.person GROUP BY p.sex",
    "SELECT sex, floor, COUNT(DISTINCT visits.person) AS n, CORR(cost, hours) AS r FROM visits "
    "LEFT JOIN people USING (person) LEFT JOIN wards ON visits.ward = wards.id GROUP BY sex, floor",
    "SELECT MIN(age) AS least, MAX(hours) AS most, COUNT(*) AS n FROM people",
    "SELECT region, MIN(age) AS least, MAX(hours) AS most FROM people GROUP BY region",
    "SELECT region, sex, CORR(age, hours) AS c, REGR_SLOPE(hours, age) AS s, COVAR_SAMP(age, hours) AS v FROM people "
    "GROUP BY region, sex",
    "SELECT region, STDDEV(hours) AS s, VAR_POP(age) AS v, MEDIAN(age) AS m, QUANTILE_DISC(hours, 0.2) AS q "
    "FROM people GROUP BY region",
    "SELECT day, STDDEV(hours) AS s, COUNT(DISTINCT region) AS r FROM people GROUP BY day",
    "SELECT DAY(day) AS d, DAYOFWEEK(day) AS w, COUNT(*) AS n FROM people GROUP BY d, w",
    "SELECT DAYOFMONTH(day) AS d, ISODOW(day) AS i, DAYOFYEAR(day) AS y, COUNT(*) AS n FROM people GROUP BY d, i, y",
    "SELECT WEEK(day) AS a, WEEKOFYEAR(day) AS b, DAYNAME(day) AS c, COUNT(*) AS n FROM people GROUP BY a, b, c",
    "SELECT LAST_DAY(joined) AS l, COUNT(*) AS n, SUM(DATEDIFF('month', joined, DATE '2022-12-31')) AS m FROM people "
    "GROUP BY l",
    "SELECT COUNT(*) AS n FROM people WHERE DATEDIFF('day', day, DATE '2022-01-20') < 9 AND EPOCH(day) > 1640000000",
    "SELECT AVG(income) AS a, STDDEV(income) AS s, CORR(income, age) AS c, MEDIAN(score) AS m FROM people",
)
"""Further questions, about what the page has an example or two of."""


def spoken(text: str) -> str:
    """A question in the words of DuckDB."""
    for pattern, instead in SPOKEN:
        text = re.sub(pattern, instead, text, flags=re.DOTALL)
    return text


@cache
def seeds() -> tuple[Seed, ...]:
    """Every question that the page says is answered, but for those that DuckDB answers in another form."""
    page = PAGE.read_text(encoding="utf-8").split("## Not available")
    people = re.split(r"^## ", page[1], flags=re.MULTILINE)
    found: list[Seed] = []
    for section in [*re.split(r"^## ", page[0], flags=re.MULTILINE)[1:], *people]:
        title = section.split("\n", 1)[0]
        for block in re.findall(r"```(?:sql)?\n(.*?)```", section, flags=re.DOTALL):
            for text in block.split(";\n"):
                lines = [line for line in text.strip().split("\n") if not line.startswith("-- ")]
                question = "\n".join(lines).strip().rstrip(";")
                question = question.replace("LEAST(SUM(cost), 500)", "LEAST(SUM(cost), 60)")  # medians are exact then
                if question and not any(part in question for part in UNLIKE):
                    found.append(Seed(title, question, spoken(question)))
    return (*found, *(Seed("", text, spoken(text)) for text in MORE))


# -------------------------------------------------------------------------------------------------------- tables

PEOPLE = Domain(
    (
        IntegerRange(name="age", lower=15, upper=34),
        Categories(name="sex", values=("F", "M")),
        Categories(name="region", values=("Lakeside", "Highfell", "Westmoor", "Zürich-ß", "it's")),
        Categories(name="education", values=("none", "master", "école")),
        Categories(name="occupation", values=("retired", "clerk", "teacher", "nurse"), null=0),
        Bins(name="income", edges=(0.0, 10000.0, 20000.0, 50000.0)),
        IntegerRange(name="hours", lower=0, upper=40),
        Decimals(
            name="score", edges=(-0.75, -0.25, 0.25, 0.75, 1.25, 1.75), lower=Decimal("-0.5"), step=Decimal("0.5")
        ),
        Categories(name="marital", values=("single", "married", "widowed"), outside=0),
        Categories(name="member", values=(True, False), outside=1),
        Dates(name="joined", first=date(2020, 11, 1), last=date(2022, 10, 31), by=Period.MONTH),
        Dates(name="day", first=date(2021, 12, 20), last=date(2022, 1, 20), by=Period.DAY),
    )
)
"""The columns of the demo, of which the page speaks, with few values; and decimals and days beside them."""

CLINIC = """
dataset = "clinic"
[source]
path = "clinic.duckdb"
table = "visits"
max_rows = 10000
[privacy]
unit = { column = "person" }
max_contributions = 60
[budget]
epsilon = 1
[tables.people]
columns = ["sex"]
[tables.wards]
key = { ward = "id" }
columns = ["floor"]
public = true
[columns.ward]
values = ["A", "B", "ß"]
[columns.cost]
lower = -3
upper = 12
[columns.hours]
lower = 0
upper = 2
step = 0.5
[columns.sex]
values = ["F", "M"]
[columns.floor]
lower = 1
upper = 3
"""


class Surveyed:
    """The table of the page."""

    name = "people"

    def __init__(self, seed: int, *, dense: bool) -> None:
        self.rows = Rows(seed, 2500 if dense else 40, PEOPLE, dense_cells if dense else sparse_cells)
        self.connection = self.rows.connection
        self.connection.execute(MACROS)
        self.reader = CompileCache(PEOPLE, "people")

    def answers(self, part: LinearMap) -> np.ndarray:
        return np.asarray(part.apply(self.rows.counts), np.float64)

    def close(self) -> None:
        self.connection.close()


class Clinic:
    """Visits of people who have several, with tables that are joined to them, read as an owner's file is."""

    name = "visits"

    def __init__(self, seed: int, *, dense: bool) -> None:
        draw = random.Random(seed)
        rows, people = (700, 120) if dense else (60, 25)
        visits = [
            (
                f"p{draw.randrange(people)}",
                draw.choice(["A", "B", "ß", None] if dense else ["A", "B"]),
                draw.choice([None, *range(-3, 13)]),
                draw.choice([None, 0.0, 0.5, 2.0]),
            )
            for _ in range(rows)
        ]
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        (folder / "clinic.toml").write_text(CLINIC, encoding="utf-8")
        path = folder / "clinic.duckdb"
        self.connection = duckdb.connect(str(path))
        self.connection.execute(
            "CREATE TABLE visits (person VARCHAR, ward VARCHAR, cost INTEGER, hours DECIMAL(12, 6))"
        )
        self.connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", visits)
        self.connection.execute("CREATE TABLE people (person VARCHAR, sex VARCHAR)")
        known = [(f"p{number}", draw.choice("FM")) for number in range(people - 4)]
        self.connection.executemany("INSERT INTO people VALUES (?, ?)", known)
        self.connection.execute("CREATE TABLE wards AS FROM (VALUES ('A', 1), ('B', 2)) AS wards (id, floor)")
        self.connection.close()
        self.connection = duckdb.connect(str(path), read_only=True)
        config = load(folder / "clinic.toml")
        self.reader = CompileCache(config.domain, config.table, config.levels, config.unit, config.tables)
        self.source = DuckDBSource(
            config.location,
            config.domain,
            config.unit,
            key=bytes(32),
            max_rows=config.max_rows,
            table=config.table,
            parents=config.parents,
        )
        self._tables = Tables(self.source, domain=config.domain)

    def answers(self, part: LinearMap) -> np.ndarray:
        return np.asarray(self._tables.answers(part), np.float64)

    def close(self) -> None:
        self.source.close()
        self.connection.close()
        self._folder.cleanup()


World = Surveyed | Clinic


def world_of(seed: Seed) -> type[World]:
    """Where a question is asked."""
    return Clinic if re.search(r"\bvisits\b", seed.text) else Surveyed


OPEN: dict[tuple[type[World], int, bool], World] = {}
"""Tables that questions share; `close_worlds` closes them."""


def world(kind: type[World], number: int, dense: bool) -> World:
    """The tables of this number, which are made once."""
    key = kind, number, dense
    if key not in OPEN:
        OPEN[key] = kind(number, dense=dense)
    return OPEN[key]


def close_worlds() -> None:
    while OPEN:
        OPEN.popitem()[1].close()


# ------------------------------------------------------------------------------------------------ other questions

KINDS = {
    Surveyed: (
        ("age", "hours", "score"),
        ("sex", "region", "education", "marital", "occupation"),
        ("joined", "day"),
    ),
    Clinic: (("cost", "hours"),),
}
"""Columns that may stand for each other."""

RELATIVES = (
    ("SUM", "AVG"),
    ("VARIANCE", "VAR_SAMP", "VAR_POP", "STDDEV", "STDDEV_SAMP", "STDDEV_POP"),
    ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"),
    ("QUANTILE_CONT", "QUANTILE_DISC"),
    ("LEFT", "RIGHT"),
    ("UPPER", "LOWER", "REVERSE"),
    ("YEAR", "QUARTER", "MONTH"),
    ("ARG_MAX", "ARG_MIN"),
    ("RANK", "DENSE_RANK", "ROW_NUMBER"),
    ("FIRST_VALUE", "LAST_VALUE"),
    ("LAG", "LEAD"),
    ("STARTS_WITH", "ENDS_WITH", "CONTAINS"),
)
"""Functions that may stand for each other."""

CONDITIONS = {
    Surveyed: (
        "age <> 17",
        "hours < 38",
        "score >= 0",
        "score = 0.5",
        "sex IS NOT NULL",
        "region <> 'it''s'",
        "(age > 20 OR member)",
        "NOT (member AND score < 1)",
        "education IS NULL",
        "region IN ('Lakeside', 'Zürich-ß', 'other')",
        "upper(sex) = 'F'",
        "joined >= DATE '2021-06-01'",
        "day < DATE '2022-01-05'",
        "income >= 10000",
        "age = 99",
    ),
    Clinic: ("cost > 0", "cost IS NOT NULL", "ward = 'A'", "ward IS NULL", "hours <= 0.5", "cost BETWEEN -1 AND 6"),
}
"""What may come on top of a question."""

STAGED = re.compile(
    r"\b(?:OVER|LIMIT|WITH \w+ AS|PIVOT|JOIN|MODE|ROLLUP|CUBE|SETS|UNION|QUALIFY|DISTINCT ON|ARG_MAX|TOP|FETCH)\b"
    r"|FROM \("
)
"""What makes lines of lines."""

WHOLE = {
    Surveyed: ("age <> 17", "hours < 38", "(age > 20 OR member)"),
    Clinic: ("cost > -3", "hours < 2", "cost IS NOT NULL"),
}
"""What leaves every group somebody, where groups of nobody would be lines that DuckDB does not have."""


def _values_swapped(columns: Mapping[str, str]) -> dict[str, str]:
    """For the values of each column of text, those of the column that stands for it."""
    values = {a.name: a.values for a in PEOPLE.attributes if isinstance(a, Categories) and a.of is str}
    return {
        str(old): str(values[columns[name]][place % len(values[columns[name]])])
        for name, listed in values.items()
        for place, old in enumerate(listed)
    }


def _swapped(word: str, swaps: Mapping[str, str]) -> str:
    if word.startswith("'"):
        return f"'{swaps[word[1:-1]].replace(chr(39), 2 * chr(39))}'" if word[1:-1] in swaps else word
    return swaps[word] if word.islower() and word not in _LISTED else f'"{swaps[word]}"' if word in _LISTED else word


_LISTED = frozenset(str(v) for a in PEOPLE.attributes if isinstance(a, Categories) and a.of is str for v in a.values)

AFTER_SIGN = re.compile(r"(?<=[<>=] )(\d+)(?![\d.]|\s*[*/+%-])")
AGGREGATE = re.compile(r"\b(COUNT\(\*\)|(?:SUM|AVG|STDDEV|MEDIAN|CORR)\(\w+(?:, \w+)?\))(?= AS \w+)")


def _grouped(text: str, key: str) -> str:
    """A question about all rows as one about groups."""
    keys = [f"{part} AS key{place}" for place, part in enumerate(key.split(", "))]
    text = re.sub(r"^SELECT ", f"SELECT {', '.join(keys)}, ", text)
    body, clause, rest = text.partition(" WITH ERROR")
    return f"{body} GROUP BY {key}{clause}{rest}"


def other_questions(seed: Seed, number: int) -> Iterator[Seed]:
    """The seed itself, and questions that are made of it."""
    yield seed
    for place in range(0 if "DP_INTERVAL" in seed.text else number):  # of NULL, the ends are those of all values
        yield _changed(seed, random.Random(f"{seed.text} {place}"))


def _changed(seed: Seed, draw: random.Random) -> Seed:
    kind, staged = world_of(seed), STAGED.search(seed.text) is not None
    changes: list[Callable[[str], str]] = []
    if draw.random() < 0.7:
        swaps: dict[str, str] = {}
        for names in KINDS[kind]:
            some = [name for name in names if not (staged and name == "score")]  # it never has numbers such as 30
            swaps |= dict(zip(some, draw.sample(some, len(some)), strict=True))
        if kind is Surveyed:
            swaps |= _values_swapped(swaps)
        words = "|".join(map(re.escape, swaps))
        pattern = re.compile(rf"(?<![\w'])(?:{words})(?![\w'])|'(?:{words})'|'(?:[^']|'')*'")
        changes.append(lambda text, p=pattern, s=swaps: p.sub(lambda word: _swapped(word[0], s), text))
    for family in RELATIVES:
        if draw.random() < 0.5:
            instead = dict(zip(family, draw.choices(family, k=len(family)), strict=True))
            functions = re.compile(rf"\b({'|'.join(family)})\(")
            changes.append(lambda text, f=functions, i=instead: f.sub(lambda word: f"{i[word[1]]}(", text))
    if draw.random() < 0.6 and not staged:
        shift = draw.choice((-3, -1, 1, 2, 5))
        changes.append(lambda text, s=shift: AFTER_SIGN.sub(lambda word: str(max(int(word[1]) + s, 0)), text))
    if draw.random() < 0.6:
        condition = draw.choice(WHOLE[kind] if staged else CONDITIONS[kind])
        changes.append(lambda text, c=condition: _on_top(text, kind.name, c))
    if draw.random() < 0.4 and "FILTER" not in seed.text and not staged:
        condition = draw.choice(CONDITIONS[kind])
        changes.append(lambda text, c=condition: AGGREGATE.sub(rf"\1 FILTER (WHERE {c})", text, count=1))
    if kind is Surveyed and draw.random() < 0.5 and re.match(r"SELECT (?!\*)[^;]* FROM people(?: WHERE|$)", seed.text):
        key = draw.choice(("region", "sex, member", "education", "day", "UPPER(region)", "age // 5", "occupation, sex"))
        if "GROUP BY" not in seed.text and not staged:
            changes.append(lambda text, k=key: _grouped(text, k))
    text = seed.text
    for change in changes:
        text = change(text)
    return Seed(seed.section, text, spoken(text))


def _on_top(text: str, table: str, condition: str) -> str:
    """A condition on top of each that a table is read under."""
    text = re.sub(rf"FROM {table} WHERE ", f"FROM {table} WHERE {condition} AND ", text)
    return re.sub(rf"FROM {table}(?=$|\)| GROUP BY| UNION| WITH )", f"FROM {table} WHERE {condition}", text)


# ------------------------------------------------------------------------------------------------- the comparison


@dataclass(frozen=True)
class Compared:
    """What came of a question: refused, not read by DuckDB, or the first thing in which answers differ, if any."""

    text: str
    refused: str = ""
    unread: str = ""
    differs: str = ""


CHOOSING = re.compile(r"\b(?:LIMIT|TOP|FETCH|MODE|ARG_MAX|ARG_MIN|DISTINCT ON|ROW_NUMBER|QUALIFY|NTILE|LAG|LEAD)\b")
"""What has to choose between lines that stand equal, for which there is no rule."""


def compared(seed: Seed, number: int) -> Compared:
    """A question asked without noise, and of DuckDB, over the tables of this number.

    Where lines that stand equal may be chosen otherwise, two other tables are tried before answers are said to differ.
    """
    outcome = _compared(seed, number)
    for other in (number + 1, number + 2) if CHOOSING.search(seed.text) else ():
        outcome = _compared(seed, other) if outcome.differs else outcome
    return outcome


def _compared(seed: Seed, number: int) -> Compared:
    kind = world_of(seed)
    text = seed.text.replace("CURRENT_DATE", "DATE '2022-06-30'")
    measured = re.search(r"\b(?:MIN|MAX)\(", text) is not None
    reader = world(kind, number, dense=False).reader
    try:
        query = reader.parse(text, measured=measured)
        workload = reader.compile(query)
    except QueryError as refusal:
        return Compared(text, refused=refusal.reason)
    after = workload.after
    dense = bool(workload.stages) or (after is not None and (after.limit is not None or bool(after.offset)))
    chosen = world(kind, number, dense=dense)
    names, keys, ours = exact_lines(chosen, workload)
    sums = [isinstance(form, Combination) for form in workload.forms] if not workload.stages else []
    pivoted = workload.stages and "PIVOT" in text and "SUM" in text  # a cell of PIVOT may be a sum of no rows
    difference = ""
    for theirs_text in (seed.duckdb, _with_sums_of_nobody(seed.duckdb)):
        try:
            result = chosen.connection.execute(theirs_text)
        except duckdb.Error as fault:
            return Compared(text, unread=str(fault))
        columns = [column[0] for column in result.description or ()]
        theirs = [tuple(map(plain, line)) for line in result.fetchall()]
        if sorted(names) == sorted(columns):
            theirs = [tuple(line[columns.index(name)] for name in names) for line in theirs]
        elif len(names) != len(columns):
            return Compared(text, differs=f"columns {names} and {columns}")
        difference = _difference(ours, theirs, keys, [True] * 99 if pivoted else sums, empty=not dense)
        if not difference:
            break
    return Compared(text, differs=difference)


def _with_sums_of_nobody(text: str) -> str:
    """A question of DuckDB in which a sum of no rows is 0, as it is here; for sums inside of arithmetic."""

    def change(node: exp.Expression) -> exp.Expression:
        whole = node.parent if isinstance(node.parent, exp.Filter) else node
        if isinstance(node, exp.Filter) and isinstance(node.this, exp.Sum):
            return exp.Coalesce(this=node, expressions=[exp.Literal.number(0)])
        alone = isinstance(node, exp.Sum) and whole is node and not isinstance(node.parent, exp.Window | exp.Coalesce)
        return exp.Coalesce(this=node, expressions=[exp.Literal.number(0)]) if alone else node

    return sqlglot.parse_one(text, dialect="duckdb").transform(change).sql(dialect="duckdb")


def exact_lines(chosen: World, workload: Workload) -> tuple[list[str], int, list[Line]]:
    """The answer without noise: names of columns, how many of them are keys, and lines."""
    whole = workload.map
    parts = whole.measured if isinstance(whole, PartwiseMap) else [(whole, 1)]
    numbers = [times * chosen.answers(part) for part, times in parts]
    values = np.concatenate(numbers) if numbers else np.zeros(0)
    lines = lines_of(workload, workload.derive(values, values, values), 0.95)
    both = zip(lines["labels"], lines["values"], strict=True)
    shown = [(*map(_label, label), *map(plain, line)) for label, line in both]
    return [*lines["keys"], *lines["outputs"]], len(lines["keys"]), shown


def _label(label: Any) -> Any:
    """A label as DuckDB has it: a bin is its middle, and a column that is put together NULL."""
    if isinstance(label, str) and (ends := re.fullmatch(r"\[([-0-9.e]+), ([-0-9.e]+)[)\]]", label)):
        return plain((float(ends[1]) + float(ends[2])) / 2)
    return None if label == ALL else plain(label)


def _difference(ours: list[Line], theirs: list[Line], keys: int, sums: list[bool], *, empty: bool) -> str:
    """The first line of DuckDB's that is none of ours; or one of ours that is neither DuckDB's nor of nobody."""
    left = list(ours)
    for line in theirs:
        match = next((own for own in left if _same(own, line, keys, sums)), None)
        if match is not None:
            left.remove(match)
        elif not (empty and all(value in (None, 0) for value in line[keys:])):
            near = [own for own in ours if own[:keys] == line[:keys]]
            return f"DuckDB has {line}, and we {near[:3] or ours[:5]}"
    extra = [line for line in left if not (empty and all(value in (None, 0) for value in line[keys:]))]
    return f"we have {extra[:3]}, and DuckDB {theirs[:5]}" if extra else ""


def _same(own: Line, line: Line, keys: int, sums: list[bool]) -> bool:
    for place, (a, b) in enumerate(zip(own, line, strict=True)):
        number = place >= keys and (place - keys < len(sums) and sums[place - keys])
        if number and b is None and a == 0:
            continue  # a sum of no rows is 0
        if isinstance(a, float) and isinstance(b, float):
            if not math.isclose(a, b, rel_tol=1e-5, abs_tol=2e-6):
                return False
        elif a != b:
            return False
    return True
