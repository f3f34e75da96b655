"""What reading a long select list, or a long condition, takes grows as it does."""

from __future__ import annotations

import pytest

from bursar.errors import QueryError
from bursar.sql import layers, parse
from bursar.sql.syntax import Node, plain_copy
from bursar.sql.terms import Call


def copies(monkeypatch: pytest.MonkeyPatch, text: str) -> int:
    """How often aggregates and groups are brought into one spelling while a text is read."""
    calls = 0

    def counting(node: Node) -> Node:
        nonlocal calls
        calls += 1
        return plain_copy(node)

    with monkeypatch.context() as patch:
        patch.setattr(layers, "plain_copy", counting)
        try:
            parse(text)
        except QueryError:
            assert "CORR" in text
    return calls


@pytest.mark.parametrize(
    "item",
    [
        "SUM(COUNT(*)) OVER (ORDER BY region) + {0} AS w{0}",
        "ROUND(SUM(x + {0}) / COUNT(*), 1) AS r{0}",
        "CORR(x, y + {0})",
    ],
)
def test_a_list_of_twice_the_length_takes_twice_the_work(monkeypatch: pytest.MonkeyPatch, item: str) -> None:
    lists = (", ".join(item.format(n) for n in range(length)) for length in (20, 40))
    few, many = (copies(monkeypatch, f"SELECT {items} FROM people GROUP BY region") for items in lists)
    assert 0 < few < many <= 2.2 * few


def test_groups_of_twice_the_length_take_twice_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = (", ".join(f"x + {n} AS x{n}" for n in range(length)) for length in (20, 40))
    text = "SELECT {}, SUM(COUNT(*)) OVER () AS n FROM people GROUP BY ALL"
    few, many = (copies(monkeypatch, text.format(items)) for items in lists)
    assert 0 < few < many <= 2.2 * few


@pytest.mark.parametrize("group", ["region", "(age < 30 OR hours > 40)"])
def test_a_long_condition_is_copied_in_parts_only(monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    """It is a deep tree, and a copy of each of its levels would be as long as all that is below it."""
    condition = " OR ".join(f"SUM(x) > {n}" for n in range(400))
    text = f"SELECT {group} AS k, COUNT(*) AS n FROM people GROUP BY {group} HAVING {condition}"
    assert copies(monkeypatch, text) < 2000
    (stage,) = parse(text).stages
    assert isinstance(stage.where, Call)
    assert len(stage.where.parts) == 400


def test_the_first_conditions_of_a_chain_may_be_a_group() -> None:
    group = "age < 30 OR hours > 40"
    text = f"SELECT {group} AS young, {group} OR COUNT(*) > 9 OR SUM(x) > 5 AS shown FROM people GROUP BY {group}"
    (stage,) = parse(text).stages
    assert [getattr(part, "function", "") for part in dict(stage.columns)["shown"].parts] == ["", ">", ">"]


def test_names_that_double_are_refused_before_they_fill_the_memory() -> None:
    names = ", ".join(f"a{n} + a{n} AS a{n + 1}" for n in range(24))
    with pytest.raises(QueryError, match="made of other names"):
        parse(f"SELECT SUM(COUNT(*)) OVER () AS a0, {names} FROM people GROUP BY region")
    (stage,) = parse("SELECT COUNT(*) AS n, n + n AS m, m + m AS k FROM people").stages
    assert [name for name, _ in stage.columns] == ["n", "m", "k"]
