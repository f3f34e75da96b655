"""What a question becomes: rows, labels, and where each answer stands."""

from __future__ import annotations

import dataclasses
from datetime import date
from itertools import product

import numpy as np
import pytest

from bursar.compile import MOST_ANSWERS, Workload, compile, outputs
from bursar.compile.partwise import pieces_of
from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Period, Stray, Unit, Value
from bursar.core.queries import Predicate, Product, Quorum, Stack, Within
from bursar.core.source.source import check_strategy
from bursar.errors import QueryError
from bursar.sql import parse
from harness.asking import compiled

PEOPLE = Domain(
    (
        IntegerRange(name="age", lower=0, upper=9),
        Categories(name="sex", values=("F", "M")),  # F, M, other, NULL
        Categories(name="active", values=(True, False), outside=1, null=1),
        IntegerRange(name="zip", lower=0, upper=999_999),
    )
)


def ask(text: str, domain: Domain = PEOPLE) -> Workload:
    return compiled(text, domain)


def digest(condition: str, group: str = "") -> str:
    by = f" GROUP BY {group}" if group else ""
    return ask(f"SELECT COUNT(*) FROM people WHERE {condition}{by}").map.digest


def kept(condition: str, attribute: Attribute) -> list[Value]:
    """The labels of the cells of one column that a condition keeps."""
    workload = ask(f"SELECT COUNT(*) FROM people WHERE {condition}", Domain((attribute,)))
    if workload.index[0, 0] < 0:
        return []
    if not workload.map.attrs:
        return [attribute.label(cell) for cell in range(attribute.size)]
    (row,) = workload.map.masks[0].steps.at_cells(np.arange(attribute.size))
    return [attribute.label(int(cell)) for cell in np.flatnonzero(row)]


def refusal(text: str, domain: Domain = PEOPLE) -> QueryError:
    with pytest.raises(QueryError) as refused:
        ask(text, domain)
    return refused.value


# ------------------------------------------------------------------------------------------------- canonical form


def test_counting_everything_looks_at_no_column() -> None:
    workload = ask("SELECT COUNT(*) FROM people")
    assert (workload.map.attrs, workload.map.rows, workload.labels, workload.outputs) == ((), 1, ((),), ("count",))
    assert workload.index.tolist() == [[0]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("age BETWEEN 2 AND 5", "age >= 2 AND age < 6"),
        ("age BETWEEN 2 AND 5", "NOT (age < 2 OR 5.5 < age)"),
        ("age IN (1, 2, 3)", "age > 0.5 AND age <= 3"),
        ("age = 1 OR age = 2", "age BETWEEN 1 AND 2"),
        ("sex = 'F' AND age < 3", "age < 3 AND sex = 'F'"),
        ("sex <> 'F'", "sex IN ('M', 'other')"),
        ("(sex = 'F' AND age = 1) OR (sex = 'F' AND age = 2)", "sex = 'F' AND age IN (1, 2)"),
        ("sex = 'F' AND (age < 100 OR active = TRUE) AND age IS NOT NULL", "sex = 'F' AND age IS NOT NULL"),
        ("sex = 'F' AND (age = 1 OR zip = 2 OR TRUE)", "sex = 'F'"),
    ],
)
def test_equivalent_conditions_are_the_same_question(one: str, other: str) -> None:
    assert digest(one) == digest(other)


def test_the_order_of_keys_permutes_lines_only_and_the_first_key_changes_slowest() -> None:
    one = ask("SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex")
    two = ask("SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age")
    assert one.map.digest == two.map.digest
    assert (one.keys, two.keys) == (("age", "sex"), ("sex", "age"))
    sexes = list(dict.fromkeys(sex for sex, _ in two.labels))
    assert [sex for sex, _ in two.labels] == sorted((sex for sex, _ in two.labels), key=sexes.index)
    assert dict(zip(one.labels, one.index.tolist(), strict=True)) == {
        (age, sex): rows for (sex, age), rows in zip(two.labels, two.index.tolist(), strict=True)
    }


def test_a_conjunction_is_a_product_of_single_columns() -> None:
    workload = ask("SELECT COUNT(*) FROM people WHERE zip < 500 AND age = 3 AND (sex = 'F' OR NOT sex = 'M')")
    assert isinstance(workload.map, Product)
    assert [mask.attrs for mask in workload.map.masks] == [("age",), ("sex",), ("zip",)]


def test_only_the_columns_that_are_tied_together_share_a_mask() -> None:
    workload = ask("SELECT COUNT(*) FROM people WHERE zip < 500 AND (active = TRUE OR age = 3)")
    assert isinstance(workload.map, Product)
    assert [mask.attrs for mask in workload.map.masks] == [("age", "active"), ("zip",)]


WIDE = Domain((*PEOPLE.attributes, IntegerRange(name="day", lower=0, upper=999)))


def test_counts_over_any_number_of_joint_cells_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes no product of so many cells, and a question that it refuses may have been paid for in part."""
    text = "SELECT sex, COUNT(*) FROM people WHERE zip < 500 AND day > 3 AND age = 3 GROUP BY sex"
    workload = ask(text, WIDE)
    assert len(pieces_of(workload.map)) == len(workload.labels) == 4
    for piece in pieces_of(workload.map):
        check_strategy(piece, WIDE, 1000)
    monkeypatch.setattr(outputs, "MOST_CELLS", 2**60)  # the twin: a product, whatever its size
    with pytest.raises(QueryError, match="joint cells at once"):
        check_strategy(ask(text, WIDE).map, WIDE, 1000)


@pytest.mark.parametrize("of", ["SUM(age)", "AVG(age)", "STDDEV(age)", "MEDIAN(age)", "SUM(age) / COUNT(*)"])
def test_sums_over_too_many_joint_cells_are_refused_before_anything_is_paid(of: str) -> None:
    with pytest.raises(QueryError, match="joint cells at once") as refused:
        ask(f"SELECT {of} FROM people WHERE zip < 500 AND day > 3", WIDE)
    assert refused.value.position == len("SELECT ")
    assert refused.value.rewrite.startswith("SELECT COUNT(*)")


def test_a_condition_that_always_holds_drops_its_column() -> None:
    assert ask("SELECT COUNT(*) FROM people WHERE active IN (TRUE, FALSE) AND age = 3").map.attrs == ("age",)


# --------------------------------------------------------------------------------------------------------- groups


def test_other_and_null_are_groups_and_all_groups_are_there() -> None:
    workload = ask("SELECT COUNT(*) AS n, sex AS s FROM people GROUP BY s")
    assert (workload.keys, workload.outputs) == (("s",), ("n",))
    assert workload.labels == (("F",), ("M",), ("other",), (None,))
    assert workload.index.tolist() == [[0], [1], [2], [3]]


def test_only_groups_that_where_leaves_possible() -> None:
    workload = ask("SELECT age, COUNT(*) FROM people WHERE age < 3 GROUP BY age")
    assert workload.labels == ((0,), (1,), (2,))
    assert ask("SELECT sex, COUNT(*) FROM people WHERE NOT sex = 'F' GROUP BY sex").labels == (("M",), ("other",))


def test_groups_of_a_joint_condition() -> None:
    workload = ask("SELECT age, COUNT(*) FROM people WHERE age < 2 AND (age = 0 OR active = TRUE) GROUP BY age")
    assert isinstance(workload.map, Product)
    (mask,) = workload.map.masks
    assert (mask.attrs, workload.labels) == (("age", "active"), ((0,), (1,)))
    table = np.arange(1, mask.steps.size + 1).reshape(mask.sizes)
    assert workload.map.apply(lambda attrs: table).tolist() == [1 + 2, 3]


def test_lines_are_sorted_by_column_even_where_masks_are_not() -> None:
    workload = ask("SELECT age, sex, active, COUNT(*) FROM people WHERE age = 1 OR active = TRUE GROUP BY 1, 2, 3")
    assert [mask.attrs for mask in workload.map.masks] == [("age", "active"), ("sex",)]
    assert [line[1] for line in workload.labels[:4]] == ["F", "M", "other", None]
    assert [line for line in workload.labels if line[0] == 1][:2] == [(1, "F", True), (1, "F", False)]
    table = np.arange(np.prod(PEOPLE.sizes(workload.map.attrs))).reshape(PEOPLE.sizes(workload.map.attrs))
    answers = workload.map.apply(lambda attrs: table)[workload.index[:, 0]]
    cells = [
        (age if age is not None else 10, [True, False].index(active), ["F", "M", "other", None].index(sex))
        for age, sex, active in workload.labels
    ]
    assert answers.tolist() == [table[cell] for cell in cells]


def test_the_number_of_answers_is_limited_before_anything_is_built() -> None:
    assert "1000001 answers" in refusal("SELECT zip, COUNT(*) FROM people GROUP BY zip").reason
    text = "SELECT zip, AVG(age) FROM people WHERE zip < {} GROUP BY zip"
    assert len(ask(text.format(MOST_ANSWERS // 2)).labels) == MOST_ANSWERS // 2
    assert f"{MOST_ANSWERS} are possible" in refusal(text.format(MOST_ANSWERS // 2 + 1)).reason


@pytest.mark.heavy
def test_wide_columns_in_few_groups_are_counted_group_by_group() -> None:
    text = "SELECT zip // 500000 AS a, day // 500 AS b, {} FROM people GROUP BY {}"
    workload = ask(text.format("COUNT(*) AS n, COUNT(*) FILTER (WHERE FALSE) AS none", "a, b"), WIDE)
    assert workload.labels == tuple(product((0, 1, None), repeat=2))
    assert workload.index.tolist() == [[place, -1] for place in range(9)]
    first = pieces_of(workload.map)[0]
    assert isinstance(first, Predicate)
    assert first.condition == Quorum(2, (Within("zip", ((0, 500_000),)), Within("day", ((0, 500),))))
    assert len(ask(text.format("COUNT(*) AS n", "ROLLUP (a, b)"), WIDE).labels) == 13
    assert "joint cells" in refusal(text.format("SUM(age) AS n", "a, b"), WIDE).reason


@pytest.mark.parametrize(("name", "place"), [("-1", 0), ("1.5", 2), ("9", 3), ("'9'", 3), ("'none'", 3), ("'rest'", 4)])
def test_a_total_stands_where_its_name_does(name: str, place: int) -> None:
    domain = Domain((IntegerRange(name="age", lower=0, upper=2, outside=Stray.OTHER, null=0),))
    total = f"CASE WHEN GROUPING(age) = 1 THEN {name} ELSE age END AS a"
    workload = ask(f"SELECT {total}, COUNT(*) FROM people GROUP BY ROLLUP (age) ORDER BY a", domain)
    assert workload.after is not None
    ranks = workload.after.order[0].ranks
    assert [workload.labels[line][0] for line in np.argsort(ranks) if line != 4] == [0, 1, 2, "other"]
    assert np.argsort(ranks).tolist().index(4) == place


@pytest.mark.parametrize("name", ["age", '"Age"', '"AGE"'])
def test_a_sub_select_that_hands_on_a_name_twice_is_refused(name: str) -> None:
    inner = f"SELECT *, CASE WHEN sex = 'F' THEN 100 ELSE 0 END AS {name} FROM people"
    assert "hands on two columns" in refusal(f"SELECT SUM(age) AS n FROM ({inner})").reason


# ----------------------------------------------------------------------------------------------- several aggregates


def test_rows_that_two_aggregates_share_are_asked_for_once() -> None:
    workload = ask(
        "SELECT sex, COUNT(*) AS a, COUNT(*) AS b, COUNT(*) FILTER (WHERE sex = 'M') AS m FROM people GROUP BY sex"
    )
    assert isinstance(workload.map, Product)
    assert workload.index.tolist() == [[0, 0, -1], [1, 1, 1], [2, 2, -1], [3, 3, -1]]


def test_rows_that_overlap_are_asked_for_once() -> None:
    filters = ["age < 2 AND sex IN ('F', 'M')", "age BETWEEN 1 AND 2 AND sex IN ('M', 'other')"]
    counts = ", ".join(f"COUNT(*) FILTER (WHERE {condition}) AS n{i}" for i, condition in enumerate(filters))
    workload = ask(f"SELECT age, sex, {counts} FROM people WHERE age < 4 GROUP BY age, sex")
    assert isinstance(workload.map, Stack)
    assert workload.map.rows == 4 + 4 - 1
    line = workload.labels.index((1, "M"))
    assert workload.index[line, 0] == workload.index[line, 1] >= 0
    assert len(workload.labels) == 4 * 4  # FILTER makes no group impossible
    used = workload.index[workload.index >= 0]
    assert sorted(set(used.tolist())) == list(range(7))


def test_aggregates_over_other_columns_are_stacked() -> None:
    workload = ask(
        "SELECT COUNT(*), COUNT(*) FILTER (WHERE age = 1), COUNT(*) FILTER (WHERE FALSE), COUNT(sex) FROM people"
    )
    assert isinstance(workload.map, Stack)
    assert [part.attrs for part in workload.map.parts] == [(), ("age",), ("sex",)]
    assert workload.index.tolist() == [[0, 1, -1, 2]]


@pytest.mark.parametrize(
    "condition", ["FALSE", "age = 1 AND age = 2", "sex = 'F' AND NOT (sex = 'F' OR age = 1)", "age > 50"]
)
def test_nothing_possible_is_zero_by_definition(condition: str) -> None:
    workload = ask(f"SELECT COUNT(*), COUNT(*) FILTER (WHERE age = 1) FROM people WHERE {condition}")
    assert (workload.map.rows, workload.labels, workload.index.tolist()) == (0, ((),), [[-1, -1]])
    assert workload.map.apply(lambda attrs: np.zeros(0, np.int64)).tolist() == []
    grouped = ask(f"SELECT sex, COUNT(*) FROM people WHERE {condition} GROUP BY sex")
    assert (grouped.map.rows, grouped.labels, grouped.index.shape) == (0, (), (0, 1))


# ---------------------------------------------------------------------------------------------------------- meaning


@pytest.mark.parametrize(
    ("condition", "labels"),
    [
        ("x = 1", [1]),
        ("x <> 1", [0, 2]),
        ("NOT x = 1", [0, 2]),
        ("x IS NULL", [None]),
        ("NOT x IS NULL", [0, 1, 2]),
        ("x IS DISTINCT FROM 1", [0, 2, None]),
        ("x = 1 OR x IS NULL", [1, None]),
        ("NOT (x = 1 AND x IS NOT NULL)", [0, 2, None]),
        ("x = 1.5", []),
        ("x < 1.5", [0, 1]),
        ("x >= 0.5", [1, 2]),
        ("x NOT IN (0, 1, 7)", [2]),
        ("x > 100", []),
        ("x <= 2", [0, 1, 2]),
        ("x BETWEEN 2 AND 1", []),
        ("x > -99999999999999999999999999999999999999", [0, 1, 2]),
        ("TRUE", [0, 1, 2, None]),
    ],
)
def test_three_valued_logic(condition: str, labels: list[Value]) -> None:
    assert kept(condition, IntegerRange(name="x", lower=0, upper=2)) == labels


BINS = Bins(name="x", edges=(0.0, 10.0, 20.0))
LOW, HIGH = "[0, 10)", "[10, 20]"


@pytest.mark.parametrize(
    ("condition", "labels"),
    [
        ("x < 10", [LOW]),
        ("x >= 10", [HIGH]),
        ("x <= 20", [LOW, HIGH]),
        ("x > 20", []),
        ("x < 0", []),
        ("x >= 0", [LOW, HIGH]),
        ("x < 20.5", [LOW, HIGH]),
        ("x <= -1", []),
        ("x BETWEEN 10 AND 20", [HIGH]),
        ("x BETWEEN 10 AND 99", [HIGH]),
        ("x NOT BETWEEN 10 AND 20", [LOW]),
        ("x = 25", []),
        ("x <> 25", [LOW, HIGH]),
        ("x IN (-3, 99)", []),
        ("x < 10 OR x IS NULL", [LOW, None]),
        ("x < 5", None),
        ("x <= 10", None),
        ("x > 10", None),
        ("x <= 0", None),
        ("x > 0", None),
        ("x < 20", None),
        ("x >= 20", None),
        ("x = 0", None),
        ("x = 20", None),
        ("x <> 5", None),
        ("x IN (99, 10)", None),
        ("x BETWEEN 0 AND 10", None),
        ("x BETWEEN 5 AND 20", None),
    ],
)
def test_bins_hold_their_lower_edge_and_the_last_one_both(condition: str, labels: list[Value] | None) -> None:
    if labels is None:
        with pytest.raises(QueryError, match=r"the nearest edges are"):
            kept(condition, BINS)
    else:
        assert kept(condition, BINS) == labels


WEEKS = Dates(name="x", first=date(2024, 1, 3), last=date(2024, 1, 10), by=Period.WEEK)
MONTHS = Dates(name="x", first=date(9999, 11, 3), last=date(9999, 12, 31), by=Period.MONTH)


@pytest.mark.parametrize(
    ("attribute", "condition", "labels"),
    [
        (WEEKS, "x < '2024-01-08'", [date(2024, 1, 1)]),
        (WEEKS, "x <= DATE '2024-01-07'", [date(2024, 1, 1)]),
        (WEEKS, "x > '2024-01-07'", [date(2024, 1, 8)]),
        (WEEKS, "x BETWEEN '2024-01-08' AND '2024-01-14'", [date(2024, 1, 8)]),
        (WEEKS, "x >= '2024-01-15'", []),
        (WEEKS, "x < '1999-01-02'", []),
        (WEEKS, "x = '1999-01-02'", []),
        (WEEKS, "x < '2024-01-07'", None),
        (WEEKS, "x <= '2024-01-08'", None),
        (WEEKS, "x = '2024-01-08'", None),
        (MONTHS, "x <= '9999-12-31'", [date(9999, 11, 1), date(9999, 12, 1)]),
        (MONTHS, "x > '9999-12-31'", []),
        (MONTHS, "x <= '9999-11-30'", [date(9999, 11, 1)]),
        (MONTHS, "x >= '9999-12-01'", [date(9999, 12, 1)]),
        (MONTHS, "x >= '9999-12-02'", None),
        (MONTHS, "x <= '9999-11-29'", None),
    ],
)
def test_weeks_and_months(attribute: Dates, condition: str, labels: list[Value] | None) -> None:
    if labels is None:
        with pytest.raises(QueryError, match=r"the nearest edges are"):
            kept(condition, attribute)
    else:
        assert kept(condition, attribute) == labels


CLIPPED = IntegerRange(name="x", lower=0, upper=2)
UNSURE = None
"""A condition that must be refused."""


@pytest.mark.parametrize(
    ("outside", "null", "answers"),
    [
        (Stray.CLIP, Stray.CELL, {"x < 1": [0], "x <> 1": [0, 2], "x IS NULL": [None], "x = 9": []}),
        (Stray.CLIP, Stray.OTHER, {"x < 1": [0], "x <> 1": [0, 2], "x IS NULL": ["other"], "x = 9": []}),
        (Stray.CLIP, 1, {"x < 1": [0], "x <> 1": [0, 2], "x IS NULL": UNSURE, "x = 9": []}),
        (1, Stray.OTHER, {"x < 1": [0], "x <> 1": [0, 2], "x IS NULL": ["other"], "x = 9": []}),
        (Stray.OTHER, Stray.CELL, {"x < 1": UNSURE, "x <> 1": [0, 2, "other"], "x IS NULL": [None], "x = 9": UNSURE}),
        (Stray.OTHER, 1, {"x < 1": UNSURE, "x <> 1": [0, 2, "other"], "x IS NULL": UNSURE, "x = 9": UNSURE}),
        (Stray.OTHER, Stray.OTHER, {"x < 1": UNSURE, "x <> 1": UNSURE, "x IS NULL": UNSURE, "x = 9": UNSURE}),
    ],
)
def test_what_other_holds_on_an_ordered_column(
    outside: Stray | int, null: Stray | int, answers: dict[str, list[Value] | None]
) -> None:
    attribute = dataclasses.replace(CLIPPED, outside=outside, null=null)
    always = {
        "x = 1": [1],
        "x >= 0 AND x < 2": [0, 1],
        "x BETWEEN 1 AND 2": [1, 2],
        "x IN (0, 2)": [0, 2],
        "(x < 1 OR x = 2) AND x <= 2 AND x >= 0": [0, 2],
    }
    if outside is Stray.OTHER:
        answers |= {
            "x NOT BETWEEN 0 AND 2": UNSURE if null is Stray.OTHER else ["other"],
            "x < 0": UNSURE,
            "x < 9": UNSURE,
        }
    if outside is Stray.OTHER and null is Stray.OTHER:
        answers |= {"x IS NULL OR x NOT BETWEEN 0 AND 2": ["other"], "x IS NULL OR x < 2 OR x >= 2": [0, 1, 2, "other"]}
    for condition, labels in {**always, **answers}.items():
        if labels is UNSURE:
            with pytest.raises(QueryError, match=r"kept together as other|counts as 1"):
                kept(condition, attribute)
        else:
            assert kept(condition, attribute) == labels, condition


LISTED = Categories(name="x", values=("a", "b"))


@pytest.mark.parametrize(
    ("outside", "null", "answers"),
    [
        (Stray.OTHER, Stray.CELL, {"x <> 'a'": ["b", "other"], "x IS NULL": [None], "x = 'z'": UNSURE}),
        (Stray.OTHER, 0, {"x <> 'a'": ["b", "other"], "x IS NULL": UNSURE, "x = 'z'": UNSURE}),
        (Stray.OTHER, Stray.OTHER, {"x <> 'a'": UNSURE, "x IS NULL": UNSURE, "x = 'z'": UNSURE}),
        (1, Stray.OTHER, {"x <> 'a'": UNSURE, "x IS NULL": UNSURE, "x = 'z'": [], "x IN ('a', 'z')": ["a"]}),
        (1, Stray.CELL, {"x <> 'a'": ["b"], "x IS NULL": [None], "x = 'z'": [], "x = 'other'": []}),
    ],
)
def test_what_other_holds_on_listed_values(
    outside: Stray | int, null: Stray | int, answers: dict[str, list[Value] | None]
) -> None:
    attribute = dataclasses.replace(LISTED, outside=outside, null=null)
    always: dict[str, list[Value]] = {"x = 'a'": ["a"], "x IN ('a', 'b')": ["a", "b"]}
    if Stray.OTHER in (outside, null):
        always |= {
            "x = 'other'": ["other"],
            "x <> 'other'": ["a", "b"],
            "x <> 'a' AND x <> 'other'": ["b"],
            "x <> 'a' OR x = 'other'": ["b", "other"],
            "x IN ('b', 'other')": ["b", "other"],
        }
    for condition, labels in {**always, **answers}.items():
        if labels is UNSURE:
            with pytest.raises(QueryError, match=r"kept together as other|counts as a|cannot be told from the rest"):
                kept(condition, attribute)
        else:
            assert kept(condition, attribute) == labels, condition


def test_a_value_that_is_itself_called_other() -> None:
    attribute = Categories(name="x", values=("a", "other"))
    workload = ask("SELECT COUNT(*) FROM people WHERE x = 'other'", Domain((attribute,)))
    assert workload.map.masks[0].steps.at_cells(np.arange(4)).tolist() == [[0, 1, 0, 0]]


def test_codes_have_an_order_and_truth_values_have_none() -> None:
    codes = Categories(name="x", values=(1, 2, 7), outside=0)
    assert kept("x IN (1, 7.0)", codes) == [1, 7]
    assert kept("x = 1.5", codes) == []
    assert kept("NOT x = TRUE", Categories(name="x", values=(True, False), outside=1)) == [False]
    assert kept("x < 2", codes) == [1]
    assert kept("x BETWEEN 1.5 AND 7", codes) == [2, 7]
    for wrong in ("x = '1'", "x = TRUE", "x < '2'"):
        with pytest.raises(QueryError):
            kept(wrong, codes)
    with pytest.raises(QueryError, match="values like TRUE"):
        kept("x = 1", Categories(name="x", values=(True, False), outside=1))


def test_literals_must_fit_even_where_the_condition_does_not_matter() -> None:
    for condition in ("FALSE AND age = TRUE", "sex = 'F' OR TRUE OR sex = 1", "FALSE AND age < 'x'"):
        assert "is none" in refusal(f"SELECT COUNT(*) FROM people WHERE {condition}").reason


# ------------------------------------------------------------------------------------------------------------ names


def test_names_ignore_case_unless_quoted() -> None:
    assert ask("SELECT SEX, COUNT(*) FROM PEOPLE WHERE Age < 3 AND people.AGE > 1 GROUP BY Sex").keys == ("sex",)
    assert refusal('SELECT COUNT(*) FROM people WHERE "Age" = 3').rewrite == "SELECT COUNT(*) FROM people WHERE age = 3"
    assert refusal('SELECT COUNT(*) FROM "People"').rewrite == "SELECT COUNT(*) FROM people"


def test_two_columns_that_differ_in_case_only() -> None:
    domain = Domain((IntegerRange(name="x", lower=0, upper=1), IntegerRange(name="X", lower=0, upper=1)))
    assert ask('SELECT COUNT(*) FROM people WHERE "X" = 1', domain).map.attrs == ("X",)
    assert ask("SELECT COUNT(*) FROM people WHERE X = 1", domain).map.attrs == ("X",)
    two = Domain((IntegerRange(name="ab", lower=0, upper=1), IntegerRange(name="AB", lower=0, upper=1)))
    assert "ab or AB" in refusal("SELECT COUNT(*) FROM people WHERE aB = 1", two).reason


def test_counts_may_be_many_more_than_numbers_that_something_is_derived_of() -> None:
    wide = Domain(tuple(IntegerRange(name=name, lower=0, upper=399, null=0) for name in ("a", "b")))
    counted = parse("SELECT a, b, COUNT(*), SUM(a) FROM people GROUP BY a, b")
    assert compile(counted, wide, "people").index.shape == (160_000, 2)
    for text in ("SELECT a, b, AVG(a) FROM people GROUP BY a, b", "SELECT a, MEDIAN(b) FROM people GROUP BY a"):
        with pytest.raises(QueryError, match="100000 are possible"):
            compile(parse(text), wide, "people")
    with pytest.raises(QueryError, match="320000 answers; 100000 are possible"):
        compile(counted, wide, "people", None, (), None, MOST_ANSWERS)


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        (Unit(column="who"), ["of each who, at most 1 row is counted; further ones are in no answer"]),
        (
            Unit(column="who", max_contributions=1000),
            ["of each who, at most 1,000 rows are counted; further ones are in no answer"],
        ),
        (Unit(), []),
    ],
)
def test_answers_say_that_further_rows_of_a_person_are_left_out(unit: Unit, told: list[str]) -> None:
    domain = Domain((IntegerRange(name="age", lower=0, upper=99),))
    for text in (
        "SELECT COUNT(*) FROM people WHERE age > 9",
        "SELECT age, COUNT(*) FROM people GROUP BY age",
        "SELECT COUNT(*) FROM people WHERE age = 1 UNION ALL SELECT COUNT(*) FROM people WHERE age = 2",
    ):
        assert list(compile(parse(text), domain, "people", unit=unit).remarks) == told
    free = compile(parse("SELECT MIN(age) FROM people"), domain, "people", unit=unit)
    assert not any("is counted" in remark for remark in free.remarks)  # no row is looked at
