"""A right config is read exactly; a wrong one is refused with its line, its reason and what would work."""

from __future__ import annotations

import inspect
import os
import re
import textwrap
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bursar.config
from bursar.config import load
from bursar.config.section import KEYS
from bursar.config.sections import Seal, Sealing, cell_named
from bursar.core.accounting import Mode
from bursar.core.domain import Bins, Categories, Dates, IntegerRange, Neighbours, Period, Stray
from bursar.errors import ConfigError, QueryError
from bursar.goal import Contract, Goal, GoalKind
from harness.cases import every

GOOD = """\
dataset = "people"            # a comment with "quotes" and [brackets] = 1

[partition]
column = "joined"
seal = "calendar"
grace_days = 2

[source]
path = "people.csv"
table = "people"
max_rows = 100_000
public_size = 50000

[privacy]
unit = "row"
neighbours = "add-remove"

[budget]
epsilon = 1.0

[goal]
error = 50
confidence = 0.95
contract = "per-query"

[columns.sex]
values = ["F", "M"]

[columns.age]
lower = 0
upper = 99

[columns.income]
edges = [
    0,
    10_000,   # a comment
    20_000.5,
]

[columns.joined]
first = 2020-01-01
last = "2023-12-31"
by = "month"
"""


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "people.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(folder: Path, text: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(write(folder, text))
    assert caught.value.file == str(folder / "people.toml")
    return caught.value


def attempt(folder: Path, text: str) -> ConfigError | None:
    """What `load` refuses; any other exception passes through and fails the test."""
    try:
        load(write(folder, text))
    except ConfigError as error:
        return error
    return None


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def column(body: str) -> str:
    """The good config with one more column, whose lines are given."""
    return f"{GOOD}\n[columns.extra]\n{body}\n"


def test_everything_is_read(tmp_path: Path) -> None:
    config = load(write(tmp_path, GOOD))
    assert config.path == tmp_path / "people.toml"
    assert (config.dataset, config.table) == ("people", "people")
    assert config.location == tmp_path / "people.csv"
    assert (config.max_rows, config.public_size) == (100_000, 50_000)
    assert (config.unit.column, config.unit.max_contributions) == (None, 1)
    assert config.unit.neighbours is Neighbours.ADD_REMOVE
    assert (config.budget.mode, config.budget.amount) == (Mode.PURE, 1.0)
    assert config.goal == Goal(kind=GoalKind.ERROR, amount=50, confidence=0.95)
    assert config.contract is Contract.PER_QUERY
    assert config.ledger_path == tmp_path / "people.bursar" / "ledger.sqlite"
    assert config.domain.partition == "joined"
    assert config.sealing == Sealing(seal=Seal.CALENDAR, grace_days=2)
    assert config.domain.attributes == (
        Categories(name="sex", values=("F", "M")),
        IntegerRange(name="age", lower=0, upper=99),
        Bins(name="income", edges=(0.0, 10_000.0, 20_000.5)),
        Dates(name="joined", first=date(2020, 1, 1), last=date(2023, 12, 31), by=Period.MONTH),
    )


def test_the_optional_parts_may_be_absent(tmp_path: Path) -> None:
    text = re.sub(
        r"\[goal\].*?(?=\[columns.sex\])|\[partition\].*?(?=\[source\])|public_size.*?\n|neighbours.*?\n",
        "",
        GOOD,
        flags=re.S,
    )
    config = load(write(tmp_path, text))
    assert (config.goal, config.public_size, config.domain.partition) == (None, None, None)
    assert config.contract is Contract.PER_QUERY


def test_the_example_in_the_docstring_is_complete_and_right(tmp_path: Path) -> None:
    example = inspect.getdoc(bursar.config).split("\n\n", 2)[2]  # type: ignore[union-attr]
    config = load(write(tmp_path, textwrap.dedent(example)))
    assert config.domain.names == ("sex", "region", "age", "grade", "income", "joined", "town")
    assert config.unit.column == "person"
    assert config.unit.max_contributions == 3
    assert config.goal == Goal(kind=GoalKind.ERROR, amount=2, percent=True)
    for key in set(KEYS[""]) | set(KEYS["source"]) | set(KEYS["privacy"]) | set(KEYS["columns.*"]):
        assert re.search(rf"\b{key}\b", example), key


@pytest.mark.parametrize(
    ("text", "mode", "amount"), [("epsilon = 2", Mode.PURE, 2.0), ("rho = 0.25", Mode.CONCENTRATED, 0.25)]
)
def test_budgets(tmp_path: Path, text: str, mode: Mode, amount: float) -> None:
    budget = load(write(tmp_path, changed("epsilon = 1.0", text))).budget
    assert (budget.mode, budget.amount) == (mode, amount)


def test_a_budget_of_epsilon_and_delta(tmp_path: Path) -> None:
    budget = load(write(tmp_path, changed("epsilon = 1.0", "epsilon = 1.0\ndelta = 1e-6"))).budget
    assert budget.mode is Mode.CONCENTRATED
    assert (budget.epsilon, budget.delta) == (1.0, 1e-6)
    assert 0 < budget.amount < 1


@pytest.mark.parametrize(("order", "found"), [("", 35), ("order = 64", 64)])
def test_a_budget_at_one_order(tmp_path: Path, order: str, found: int) -> None:
    text = f'epsilon = 1.0\ndelta = 1e-9\naccountant = "rdp"\n{order}'
    budget = load(write(tmp_path, changed("epsilon = 1.0", text))).budget
    assert (budget.mode, budget.order, budget.delta) == (Mode.RENYI, found, 1e-9)
    assert 0 < budget.amount < 1


@pytest.mark.parametrize(
    ("text", "name"),
    [('unit = "row"', None), ('unit = "person_id"', "person_id"), ('unit = { column = "row" }', "row")],
)
def test_units(tmp_path: Path, text: str, name: str | None) -> None:
    assert load(write(tmp_path, changed('unit = "row"', text))).unit.column == name


def test_replace_one_with_a_public_size(tmp_path: Path) -> None:
    config = load(write(tmp_path, changed('"add-remove"', '"replace-one"')))
    assert config.unit.neighbours is Neighbours.REPLACE_ONE


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ('error = "2%"', Goal(kind=GoalKind.ERROR, amount=2, percent=True)),
        ('error = "0.5 %"', Goal(kind=GoalKind.ERROR, amount=0.5, percent=True)),
        ("rmse = 12.5", Goal(kind=GoalKind.RMSE, amount=12.5)),
    ],
)
def test_goals(tmp_path: Path, text: str, goal: Goal) -> None:
    assert load(write(tmp_path, changed("error = 50", text))).goal == goal


def test_confidence_as_a_percentage(tmp_path: Path) -> None:
    goal = load(write(tmp_path, changed("confidence = 0.95", 'confidence = "99%"'))).goal
    assert goal is not None
    assert goal.confidence == 0.99


@pytest.mark.parametrize(
    ("body", "outside", "null"),
    [
        ('values = ["a", "b"]', Stray.OTHER, Stray.CELL),
        ('values = ["a", "b"]\noutside = { as = "b" }\nnull = { as = "a" }', 1, 0),
        ('values = ["a", "other"]\noutside = { as = "other" }', 1, Stray.CELL),
        ("values = [true, false]\nnull = { as = false }", Stray.OTHER, 1),
        ('values = [3, 1]\nnull = "other"', Stray.OTHER, Stray.OTHER),
        ("lower = 5\nupper = 9", Stray.CLIP, Stray.CELL),
        ('lower = 5\nupper = 9\noutside = "other"\nnull = { as = 7 }', Stray.OTHER, 2),
        ("edges = [0, 1, 2]\noutside = { as = 2 }\nnull = { as = 1 }", 1, 1),
        ("edges = [0, 1, 2]\noutside = { as = 0 }\nnull = { as = 0.5 }", 0, 0),
        ('first = "2020-01-15"\nlast = 2020-06-01\nby = "month"\nnull = { as = 2020-03-31 }', Stray.CLIP, 2),
        ('first = 2020-01-01\nlast = 2020-02-01\nby = "week"\noutside = { as = "2020-01-06" }', 1, Stray.CELL),
    ],
)
def test_strays(tmp_path: Path, body: str, outside: Stray | int, null: Stray | int) -> None:
    attribute = load(write(tmp_path, column(body))).domain["extra"]
    assert (attribute.outside, attribute.null) == (outside, null)


def test_edges_by_steps_are_the_decimals_that_were_written(tmp_path: Path) -> None:
    attribute = load(write(tmp_path, column("edges = { from = -0.1, to = 0.5, step = 0.1 }"))).domain["extra"]
    assert isinstance(attribute, Bins)
    assert attribute.edges == (-0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


WRONG = [
    # (old text, new text, what the line holds, reason, hint)
    ('dataset = "people"', 'datset = "people"', "datset", "datset is not known", "did you mean dataset?"),
    ('dataset = "people"', "dataset = 7", "dataset = 7", "dataset must be text in quotes, not 7", "dataset ="),
    ('dataset = "people"', 'dataset = ""', 'dataset = ""', "dataset must be printable text", ""),
    ('dataset = "people"', 'dataset = "a\\nb"', "dataset =", "dataset must be printable text", ""),
    ('dataset = "people"', "dataset = people", "dataset =", "Invalid value", "put text in quotes"),
    ('column = "joined"', 'column = "join"', "column", "not declared", 'did you mean "joined"?'),
    ('column = "joined"', 'column = "zebra"', "column", "not declared", "name one of the [columns.*]"),
    ('column = "joined"', "column = true", "column", "must be text", "column ="),
    ('column = "joined"\n', "", "[partition]", "partition.column is missing", 'column = "joined"'),
    ('column = "joined"', 'column = "age"', 'seal = "calendar"', "needs a column of dates", 'seal = "command"'),
    ('seal = "calendar"', 'seal = "calender"', "seal", "cannot be", 'did you mean "calendar"?'),
    ('seal = "calendar"', 'seal = "command"', "grace_days", "needs a calendar", "grace_days = 2"),
    ("grace_days = 2", "grace_days = -1", "grace_days", "must lie between 0 and 3650", "grace_days = 2"),
    ("[partition]", "[partitions]", "[partitions]", "partitions is not known", "did you mean partition?"),
    (
        'unit = "row"\nneighbours = "add-remove"',
        'unit = "age"\nneighbours = "replace-one"',
        "neighbours",
        "rows in several",
        "",
    ),
    ('path = "people.csv"', "path = []", "path = []", "source.path must be text in quotes, not a list", "path ="),
    ('path = "people.csv"', 'path = "a\\u0000b"', "path =", "source.path must be printable", ""),
    ('path = "people.csv"\n', "", "[source]", "source.path is missing", 'path = "people.csv"'),
    ('table = "people"\n', "", "[source]", "source.table is missing", 'table = "people"'),
    ("max_rows = 100_000\n", "", "[source]", "source.max_rows is missing", "max_rows = 100000"),
    ("max_rows = 100_000", "max_rows = -5", "max_rows", "must lie between 1 and", "max_rows = 100000"),
    ("max_rows = 100_000", "max_rows = 0", "max_rows", "must lie between 1 and", "max_rows = 100000"),
    ("max_rows = 100_000", "max_rows = true", "max_rows", "must be a whole number, not true", "max_rows"),
    ("max_rows = 100_000", "max_rows = 1e5", "max_rows", "must be a whole number, not 100000.0", "max_rows"),
    ("max_rows = 100_000", 'max_rows = "many"', "max_rows", 'must be a whole number, not "many"', "max_rows"),
    ("max_rows = 100_000", "max_rows = 0x" + "f" * 9000, "max_rows", "not a number beyond 64 bits", "max_rows"),
    ("max_rows = 100_000", "max_row = 100_000", "max_row ", "source.max_row is not known", "did you mean max_rows?"),
    ("public_size = 50000", "public_size = 100001", "public_size", "between 1 and 100000", "at most max_rows"),
    ("public_size = 50000", "epsilon = 1", "epsilon = 1", "source.epsilon is not known", "belongs under [budget]"),
    ("public_size = 50000", 'dataset = "x"', 'dataset = "x"', "not known", "belongs at the top of the file"),
    ("[source]", "[sources]", "[sources]", "sources is not known", "did you mean source?"),
    ('unit = "row"', 'unit = "rows"', "unit", "not clear", 'unit = "row", or unit = { column = "rows" }'),
    ('unit = "row"', "unit = 1", "unit = 1", "privacy.unit must be text", 'unit = "row"'),
    ('unit = "row"', "unit = {}", "unit = {}", "privacy.unit.column is missing", 'unit = "row"'),
    ('unit = "row"', 'unit = { col = "a" }', "unit", "privacy.unit.col is not known", "known here: column"),
    ('unit = "row"\n', "", "[privacy]", "privacy.unit is missing", 'unit = "row"'),
    ('unit = "row"', 'unit = "row"\nmax_contributions = 2', "max_contributions", "needs a unit column", ""),
    ('unit = "row"', 'unit = "id"\nmax_contributions = 0', "max_contributions", "between 1 and", ""),
    ('unit = "row"', 'unit = "id"\nmax_contributions = true', "max_contributions", "whole number, not true", ""),
    ('"add-remove"', '"add_remove"', "neighbours", "cannot be", 'did you mean "add-remove"?'),
    ('"add-remove"', "[1]", "neighbours", "cannot be a list", 'neighbours = "replace-one"'),
    ("epsilon = 1.0", "", "[budget]", "budget.epsilon is missing", "rho = 0.1"),
    ("epsilon = 1.0", "epsilon = 0", "epsilon = 0", "must lie above 0", "epsilon = 1.0"),
    ("epsilon = 1.0", "epsilon = -1", "epsilon = -1", "must lie above 0", "epsilon = 1.0"),
    ("epsilon = 1.0", "epsilon = nan", "epsilon = nan", "must be a finite number, not nan", "epsilon = 1.0"),
    ("epsilon = 1.0", "epsilon = inf", "epsilon = inf", "must be a finite number, not inf", "epsilon = 1.0"),
    ("epsilon = 1.0", "epsilon = 1e6", "epsilon = 1e6", "at most 1000", "epsilon = 1.0"),
    ("epsilon = 1.0", "epsilon = true", "epsilon = true", "must be a number, not true", "epsilon = 1.0"),
    ("epsilon = 1.0", 'epsilon = "1"', 'epsilon = "1"', 'must be a number, not "1"', "epsilon = 1.0"),
    ("epsilon = 1.0", "delta = 1e-6", "[budget]", "budget.epsilon is missing", "epsilon = 1.0"),
    (
        "epsilon = 1.0",
        'epsilon = 1.0\naccountant = "rdp"',
        "accountant",
        "about a budget of epsilon and delta",
        "delta",
    ),
    ("epsilon = 1.0", "rho = 0.1\norder = 4", "order", "about a budget of epsilon and delta", "delta"),
    ("epsilon = 1.0", "epsilon = 1.0\ndelta = 1e-6\norder = 4", "order", "belongs to Renyi", "rdp"),
    ("epsilon = 1.0", 'epsilon = 1.0\ndelta = 1e-6\naccountant = "rpd"', "accountant", "cannot be", "rdp"),
    ("epsilon = 1.0", 'epsilon = 1.0\ndelta = 1e-6\naccountant = "rdp"\norder = 1', "order", "between 2", "order"),
    ("epsilon = 1.0", 'epsilon = 1.0\ndelta = 1e-6\naccountant = "rdp"\norder = 8', "order", "nothing to spend", ""),
    ("epsilon = 1.0", "epsilon = 1\ndelta = 0", "delta = 0", "must lie above 0", "delta = 1e-6"),
    ("epsilon = 1.0", "epsilon = 1\ndelta = 1", "delta = 1", "must lie far below 1", "delta = 1e-6"),
    ("epsilon = 1.0", "epsilon = 1\nrho = 1", "rho = 1", "stands alone", "rho = 0.1"),
    ("epsilon = 1.0", "eps = 1.0", "eps = 1.0", "budget.eps is not known", "epsilon"),
    ("error = 50", "error = 0", "error = 0", "goal.error must be above 0", 'error = "2%"'),
    ("error = 50", 'error = "0%"', "error =", "goal.error must be above 0", 'error = "2%"'),
    ("error = 50", 'error = "two"', "error =", 'must be a number, not "two"', 'error = "2%"'),
    ("error = 50", "error = 50\nrmse = 2", "rmse = 2", "both error and rmse", "keep one"),
    ("error = 50\n", "", "confidence", "needs an error beside it", "error = 50"),
    ("confidence = 0.95", "confidence = 95", "confidence", "strictly between 0 and 1", 'confidence = "95%"'),
    ("confidence = 0.95", 'confidence = "100%"', "confidence", "strictly between", 'confidence = "95%"'),
    ("confidence = 0.95", "confidence = true", "confidence", "must be a number, not true", "confidence = 0.95"),
    ('"per-query"', '"simultaneous"', "contract", "declared family of questions", 'family = ["age"'),
    ('"per-query"', '"per query"', "contract", "cannot be", 'did you mean "per-query"?'),
    ('"per-query"', '"per-query', "contract", "not valid TOML", ""),
    ("[columns.sex]", "[columns.age]", "[columns.age]", "not valid TOML: Cannot declare", "once"),
    ("[columns.sex]", "[columns.AGE]", "[columns.age]", "one column: SQL ignores the case", ""),
    ("[columns.sex]", '[columns.""]', '[columns.""]', "the name of a column must be printable", ""),
    ("[columns.sex]", '[columns." sex"]', '[columns." sex"]', "the name of a column must be printable", ""),
    (
        "[columns.sex]",
        "[[columns.sex]]",
        "[[columns.sex]]",
        "columns.sex must be a section, not a list",
        "[columns.sex]",
    ),
    ("[columns.sex]", "[columns]\nextra = 3\n[columns.sex]", "extra = 3", "must be a section, not 3", "values"),
    ("upper = 99", "upper = 99\nlower = 1", "lower = 1", "not valid TOML: Cannot overwrite a value", "once"),
]


@every("case", lambda: WRONG)
def test_a_mistake_is_found_where_it_is(tmp_path: Path, case: tuple[str, str, str, str, str]) -> None:
    old, new, marker, reason, hint = case
    text = changed(old, new)
    error = refusal(tmp_path, text)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith(marker)]
    assert error.line in lines
    assert reason in error.reason
    assert (f"try: {hint}" in error.reason) if hint.startswith("did") else hint in error.reason
    assert str(error).startswith(f"{tmp_path}/people.toml:{error.line}: ")


WRONG_COLUMNS = [
    ("", 0, "does not say which values", "values = [...]"),
    ("label = 3", 1, "columns.extra.label is not known", "known here: values, lower"),
    ("vales = []", 1, "columns.extra.vales is not known", "did you mean values?"),
    ('unit = "row"', 1, "columns.extra.unit is not known", "belongs under [privacy]"),
    ('values = ["a"]\nlower = 3', 2, "has values and lower", "keep one"),
    ("values = []", 1, "values is empty", "values ="),
    ('values = "a"', 1, 'must be a list, not "a"', "values ="),
    ('values = [\n"a",\n7]', 3, "columns.extra.values[1] is 7", "values ="),
    ('values = [\n"a",\n"b", "a"]', 3, 'columns.extra.values[2] repeats "a"', ""),
    ("values = [1, true]", 1, "columns.extra.values[1] is true", ""),
    ("values = [1.5]", 1, "cannot be 1.5", "edges ="),
    ("values = [2020-01-01]", 1, "cannot be 2020-01-01", "first ="),
    ("values = [[1]]", 1, "is a list", ""),
    ("values = [99999999999999999999]", 1, "beyond 64 bits", ""),
    ('values = ["a", "other"]', 1, "also the name of the cell", 'outside = { as = "other" }'),
    ('values = ["a"]\noutside = "clip"', 2, "no order to clip along", 'outside = "other"'),
    ('values = ["a"]\noutside = "others"', 2, "cannot be", 'did you mean "other"?'),
    ('values = ["a"]\noutside = "cell"', 2, "cannot be", 'outside = "other"'),
    ('values = ["a"]\noutside = { as = "b" }', 2, "outside.as must be one of the declared values", 'as = "a"'),
    ("values = [true]\noutside = { as = 1 }", 2, "must be one of the declared values, not 1", "as = true"),
    ('values = ["a"]\noutside = { to = "a" }', 2, "outside.to is not known", "known here: as"),
    ('values = ["a"]\noutside = {}', 2, "outside.as is missing", 'outside = { as = "a" }'),
    ('values = ["a"]\nnull = "clip"', 2, "clip along", 'null = "other"'),
    ('lower = 0\nupper = 9\nnull = "clip"', 3, "cannot be", 'null = "cell"'),
    ("lower = 0\nupper = 9\nnull = 0", 3, "cannot be 0", 'null = "cell"'),
    ("lower = 0", 0, "columns.extra.upper is missing", "upper = 99"),
    ("upper = 0", 0, "columns.extra.lower is missing", "lower = 0"),
    ("lower = 5\nupper = 4", 2, "must be at least lower, which is 5", ""),
    ("lower = 0\nupper = 1.5", 2, "must be a whole number, not 1.5", ""),
    ("lower = false\nupper = 1", 1, "must be a whole number, not false", ""),
    ("lower = 0\nupper = 100000000", 0, "has 100000002 cells", ""),
    ("lower = 0\nupper = 99999999999999999999", 2, "must lie between", ""),
    ("lower = -9007199254740992\nupper = 0", 1, "must lie between -9007199254740991 and", "lower = 0"),
    ("lower = 0\nupper = 9\noutside = { as = 10 }", 3, "must be one of the declared values, not 10", "as = 0"),
    ("edges = 5", 1, "must be a list, not 5", "edges ="),
    ("edges = [1]", 1, "needs at least two numbers", "edges ="),
    ("edges = [\n1,\n1]", 3, "edges[1] must be larger than the edge before it", ""),
    ("edges = [\n1,\nnan]", 3, "edges[1] must be a finite number, not nan", ""),
    ('edges = [1, "2"]', 1, 'edges[1] must be a number, not "2"', ""),
    ("edges = [false, true]", 1, "edges[0] must be a number, not false", ""),
    ("edges = { from = 0, to = 10, step = 3 }", 1, "does not divide the way from 0 to 10", ""),
    ("edges = { from = 0, to = 10, step = 0 }", 1, "must go upwards", ""),
    ("edges = { from = 5, to = 5, step = 1 }", 1, "must go upwards", ""),
    ("edges = { from = 0, to = 10 }", 1, "edges.step is missing", "step = 10000"),
    ("edges = { from = 0, to = 1e9, step = 1e-9 }", 1, "more than 16777216 bins", ""),
    ("edges = { from = 0, till = 1e9, step = 1 }", 1, "edges.till is not known", "from, to, step"),
    ("edges = { from = 1e18, to = 1.000000000000000256e18, step = 1 }", 1, "too small to tell", ""),
    ("edges = [0, 1]\nnull = { as = 1.5 }", 2, "must be one of the declared values, not 1.5", "as = 0.0"),
    ("edges = [0, 1]\nnull = { as = -0.5 }", 2, "must be one of the declared values, not -0.5", "as = 0.0"),
    ('first = 2020-01-01\nlast = 2021-01-01\nby = "year"', 3, 'cannot be "year"', 'by = "month"'),
    ('first = 2020-01-01\nlast = 2021-01-01\nby = "months"', 3, "cannot be", 'did you mean "month"?'),
    ("first = 2020-01-01\nlast = 2021-01-01", 0, "columns.extra.by is missing", 'by = "month"'),
    ('first = 2021-01-02\nlast = 2021-01-01\nby = "day"', 2, "must not be before first", ""),
    ('first = "2021-02-30"\nlast = 2021-03-01\nby = "day"', 1, "there is no day", ""),
    ('first = "1 May"\nlast = 2021-03-01\nby = "day"', 1, "must be a day", "first = 2020-01-31"),
    ('first = 2020-01-01T00:00:00\nlast = 2021-03-01\nby = "day"', 1, "must be a day", ""),
    ('first = 12:00:00\nlast = 2021-03-01\nby = "day"', 1, "must be a day", ""),
    ('first = 2020-01-01\nlast = 9999-12-31\nby = "month"', 2, "must not be after the year 9998", ""),
    (
        'first = 2020-01-01\nlast = 2020-12-31\nby = "day"\nnull = { as = 2021-01-01 }',
        4,
        "declared values",
        "2020-01-01",
    ),
]


@every("case", lambda: WRONG_COLUMNS)
def test_a_mistake_in_a_column_is_found_where_it_is(tmp_path: Path, case: tuple[str, int, str, str]) -> None:
    body, below, reason, hint = case
    error = refusal(tmp_path, column(body))
    assert error.line == len(GOOD.splitlines()) + 2 + below
    assert reason in error.reason
    assert hint in error.reason


def test_replace_one_needs_a_public_size(tmp_path: Path) -> None:
    text = changed('"add-remove"', '"replace-one"').replace("public_size = 50000\n", "")
    error = refusal(tmp_path, text)
    assert text.splitlines()[error.line - 1].startswith("neighbours")
    assert "public_size under [source]" in error.reason


def test_a_percentage_may_wait_for_a_measured_size(tmp_path: Path) -> None:
    text = changed("error = 50", 'error = "2%"').replace("public_size = 50000\n", "")
    goal = load(write(tmp_path, text)).goal
    assert goal is not None
    assert goal.percent


def test_a_pace_is_a_number_of_seconds(tmp_path: Path) -> None:
    with_pace = changed('neighbours = "add-remove"', 'neighbours = "add-remove"\npace = 0.25')
    assert load(write(tmp_path, with_pace)).pace == 0.25
    assert load(write(tmp_path, GOOD)).pace == 0.0
    assert "pace" in refusal(tmp_path, with_pace.replace("0.25", "-1")).reason


@pytest.mark.parametrize("section", ["source", "privacy", "budget", "columns"])
def test_a_missing_section_is_named(tmp_path: Path, section: str) -> None:
    text = re.sub(rf"\[{section}.*?(?=\n\[(?!{section})|\Z)", "", GOOD, flags=re.S)
    error = refusal(tmp_path, text)
    assert (error.line, f"{section} is missing" in error.reason) == (0, True)
    assert f"[{section}" in error.reason


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such config file"):
        load(tmp_path / "nowhere.toml")


@pytest.mark.parametrize("path", [".", "a\0b"])
def test_what_is_no_file(path: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(path)


def test_what_is_no_text(tmp_path: Path) -> None:
    assert refusal(tmp_path, GOOD.encode() + b"\n# \xff\n").line == len(GOOD.splitlines()) + 2


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "a = " + "9" * 10_000, "a" + ".a" * 5_000 + " = 1", "\0", "[", "="]
)
def test_monsters_are_refused(tmp_path: Path, text: str) -> None:
    refusal(tmp_path, text)


def test_windows_files_are_read(tmp_path: Path) -> None:
    config = load(write(tmp_path, b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()))
    assert config.dataset == "people"


def test_a_link_to_a_config_leads_to_the_same_ledger(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "other.toml"
    os.symlink(path, link)
    assert load(link).ledger_path == load(path).ledger_path
    assert load(link).location == load(path).location


FRAGMENTS = [
    "[", "]", "{", "}", "=", ",", ".", '"', "'", "\n", "#", '"""', "nan", "-", "1e400", "true", "0", "\0", "é", "\\",
    "[columns.x]", "values = []", "as", "{ as = 1 }", "9" * 40, "2020-01-01", "inf", "\r", "[[a]]", "a.b = 1", "%",
]  # fmt: skip


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutations_raise_config_errors_only(tmp_path: Path, data: st.DataObject) -> None:
    text = GOOD
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.sampled_from([0, 0, 1, 2, 5, 20]))
        text = text[:start] + data.draw(st.sampled_from(["", *FRAGMENTS])) + text[start + length :]
    error = attempt(tmp_path, text)
    assert error is None or (0 <= error.line <= len(text.split("\n")) and error.reason)


VALUES = st.recursive(
    st.sampled_from(
        ["0", "-1", "1.5", "nan", "true", '""', '"x"', "2020-01-01", "12:00:00", "9" * 30, '"2%"', "0xffffffffffffffff"]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        inner.map(lambda item: f"{{ as = {item} }}"),
        inner.map(lambda item: f"{{ from = 0, to = {item}, step = {item} }}"),
    ),
    max_leaves=4,
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10_000), value=VALUES)
def test_any_value_at_any_key_raises_config_errors_only(tmp_path: Path, place: int, value: str) -> None:
    """Every key gets values of every type: the type checks must be complete."""
    lines = (GOOD + "\n[columns.sexes]\nvalues = [1]\noutside = 'other'\nnull = 'cell'\n").splitlines()
    keyed = [number for number, line in enumerate(lines) if re.match(r"\w+ = [^\[]*$", line)]
    number = keyed[place % len(keyed)]
    lines[number] = f"{lines[number].split(' = ')[0]} = {value}"
    error = attempt(tmp_path, "\n".join(lines))
    assert error is None or error.line > 0


DOCS = Path(__file__).parents[3] / "docs" / "config.md"


def test_the_documentation_shows_a_config_that_works(tmp_path: Path) -> None:
    example = DOCS.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    assert load(write(tmp_path, example)).domain.names == ("sex", "age", "income", "joined")


@every("case", lambda: [(section, key) for section, keys in KEYS.items() for key in keys])
def test_every_key_is_documented_where_it_belongs(case: tuple[str, str]) -> None:
    section, key = case
    sections = DOCS.read_text(encoding="utf-8").split("\n## ")
    title = {"": "Top of the file", "columns.*": "`[columns.NAME]`"}.get(section, f"`[{section}]`")
    text = next(part for part in sections if part.startswith(title))
    headings = [part.split("\n")[0] for part in sections]
    named = f"| `{key}` |" in text
    assert named or (section == "" and any(f"`[{key}" in heading for heading in headings))


WEEKS = Dates(name="day", first=date(2024, 1, 1), last=date(2024, 1, 31), by=Period.WEEK)


@pytest.mark.parametrize(
    ("today", "grace", "sealed"),
    [
        (date(2023, 12, 31), 0, 0),
        (date(2024, 1, 7), 0, 0),  # the last day of the first week is not over yet
        (date(2024, 1, 8), 0, 1),
        (date(2024, 1, 8), 2, 0),
        (date(2024, 1, 10), 2, 1),
        (date(2024, 2, 4), 0, 4),
        (date(2024, 2, 5), 0, 5),
        (date(2030, 1, 1), 0, 5),
    ],
)
def test_a_period_is_sealed_when_it_is_over(today: date, grace: int, sealed: int) -> None:
    assert Sealing(seal=Seal.CALENDAR, grace_days=grace).due(WEEKS, today) == sealed
    assert Sealing(seal=Seal.COMMAND).due(WEEKS, today) == 0
    assert Sealing().due(WEEKS, today) == 0


def test_partitions_are_named_by_their_values() -> None:
    numbers, words = IntegerRange(name="n", lower=-2, upper=3), Categories(name="w", values=("b", "a"))
    bins = Bins(name="x", edges=(0.0, 1.0, 2.5))
    assert [cell_named(WEEKS, day) for day in ("2024-01-01", "2024-01-07", "2024-01-08", "2024-02-04")] == [0, 0, 1, 4]
    assert [cell_named(numbers, text) for text in ("-2", "3")] == [0, 5]
    assert [cell_named(words, text) for text in ("b", "a")] == [0, 1]
    assert cell_named(bins, "[1, 2.5]") == 1
    for column, text in ((WEEKS, "2023-12-31"), (WEEKS, "monday"), (numbers, "4"), (words, "c"), (bins, "1")):
        with pytest.raises(QueryError, match="is no partition of"):
            cell_named(column, text)


@pytest.mark.parametrize(
    ("old", "new", "reason", "hint"),
    [
        ("[goal]", '[goal]\ncontract = "simultaneous"\nfamily = ["sex"]\n', "[partition] lets them grow", "per-query"),
        (
            "[goal]",
            '[analysts]\nshares = { ana = 0.5 }\npolicy = "seeded-cache"\n'
            'seed = { fraction = 0.25, columns = ["sex"] }\n[goal]',
            "there is more to come",
            "shared",
        ),
    ],
)
def test_partitions_go_with_nothing_that_is_measured_once_for_all(
    tmp_path: Path, old: str, new: str, reason: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load(write(tmp_path, GOOD.replace('contract = "per-query"\n', "").replace(old, new, 1)))
    assert reason in str(refused.value)
    assert hint in str(refused.value)
