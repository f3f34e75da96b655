"""What reading a long select list takes grows as the list does."""

from __future__ import annotations

import pytest

from bursar.errors import QueryError
from bursar.sql import layers, parse
from bursar.sql.syntax import Node, plain_copy


def copies(monkeypatch: pytest.MonkeyPatch, item: str, length: int) -> int:
    """How often aggregates are brought into one spelling while so many of them are read."""
    calls = 0

    def counting(node: Node) -> Node:
        nonlocal calls
        calls += 1
        return plain_copy(node)

    items = ", ".join(item.format(n) for n in range(length))
    with monkeypatch.context() as patch:
        patch.setattr(layers, "plain_copy", counting)
        try:
            parse(f"SELECT {items} FROM people GROUP BY region")
        except QueryError:
            assert "CORR" in item
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
    few, many = (copies(monkeypatch, item, length) for length in (20, 40))
    assert 0 < few < many <= 2.2 * few
