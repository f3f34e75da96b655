"""The product of the columns, its digest, and the privacy unit."""

from __future__ import annotations

import dataclasses

import pytest

from bursar.core.domain import Categories, Domain, IntegerRange, Neighbours, Unit
from bursar.errors import ConfigError

A = IntegerRange(name="a", lower=0, upper=9)
B = Categories(name="b", values=("x", "y"))
C = IntegerRange(name="c", lower=0, upper=2**23)


def test_columns_keep_their_declared_order() -> None:
    domain = Domain((B, A))
    assert domain.names == ("b", "a")
    assert domain["a"] is A
    assert (domain.place("b"), domain.place("a")) == (0, 1)
    assert "a" in domain
    assert "z" not in domain
    assert domain.ordered(["a", "b", "a"]) == ("b", "a")
    assert domain.sizes(("a", "b")) == (11, 4)


def test_cells_are_counted_exactly_however_many() -> None:
    domain = Domain(tuple(dataclasses.replace(C, name=f"c{i}") for i in range(10)))
    assert domain.cells(domain.names) == (2**23 + 2) ** 10
    assert domain.cells(()) == 1
    assert Domain(()).names == ()


def test_names_are_unique_and_the_partition_is_one_of_them() -> None:
    assert Domain((A, B), partition="b").partition == "b"
    with pytest.raises(ConfigError, match="same name"):
        Domain((A, dataclasses.replace(A, upper=4)))
    with pytest.raises(ConfigError, match="partition"):
        Domain((A,), partition="b")


def test_the_digest_follows_every_public_fact() -> None:
    domains = [
        Domain((A, B)),
        Domain((B, A)),
        Domain((A, B), partition="a"),
        Domain((A,)),
        Domain((A, dataclasses.replace(B, values=("y", "x")))),
        Domain((dataclasses.replace(A, upper=8), B)),
        Domain((dataclasses.replace(A, null=0), B)),
    ]
    assert len({domain.digest for domain in domains}) == len(domains)
    assert Domain((dataclasses.replace(A), B)).digest == Domain((A, B)).digest


def test_a_unit_is_a_row_unless_it_has_a_column() -> None:
    assert Unit().neighbours is Neighbours.ADD_REMOVE
    assert Unit(column="person", max_contributions=3).max_contributions == 3


@pytest.mark.parametrize(
    "facts", [{"max_contributions": 2}, *({"column": "person", "max_contributions": k} for k in (0, -1, 1.5, True))]
)
def test_units_without_a_bound_are_refused(facts: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="max_contributions"):
        Unit(**facts)
