"""Which marginals a synthetic table is to be right about: the column sets of its workload."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import combinations

from bursar.compile.partwise import PartwiseMap
from bursar.core.domain import Domain
from bursar.core.limits import MOST_ROWS
from bursar.core.queries import LinearMap, Stack
from bursar.errors import QueryError
from bursar.synthetic.rap.threshold_workload import MOST_TOGETHER

Names = tuple[str, ...]

MOST_SETS = 5000


def ways(domain: Domain, together: int) -> tuple[Names, ...]:
    """All sets of so many columns that have more than one value and not too many joint cells.

    Edge cases: with fewer such columns than that, all of them are one set.
    """
    varying = [own.name for own in domain.attributes if own.size > 1]
    if not 1 <= together <= MOST_TOGETHER:
        raise QueryError(f"--ways takes a number from 1 to {MOST_TOGETHER}, not {together}")
    if not varying:
        raise QueryError("every column has one value only, so there is nothing to learn about them")
    together = min(together, len(varying))
    if (count := math.comb(len(varying), together)) > MOST_SETS:
        raise QueryError(
            f"{len(varying)} columns have {count:,} sets of {together}; {MOST_SETS:,} are possible\n"
            'try: --ways 2, or name the sets that matter: --marginals "age,sex; age,region"'
        )
    return fitting(domain, combinations(varying, together))


def named(domain: Domain, text: str) -> tuple[Names, ...]:
    """The sets of a list such as "age,sex; age,region"."""
    found = [tuple(name.strip() for name in part.split(",")) for part in text.split(";") if part.strip()]
    for columns in found:
        for name in columns:
            if name not in domain:
                raise QueryError(
                    f"there is no column {name!r}; the columns are: {', '.join(domain.names)}\n"
                    'try: commas between columns and semicolons between sets: "age,sex; age,region"'
                )
        if domain.cells(columns) > MOST_ROWS or len(set(columns)) > MOST_TOGETHER:
            raise QueryError(
                f"{', '.join(columns)} cannot be learnt together: a set has at most {MOST_TOGETHER} columns and "
                f"{MOST_ROWS:,} joint cells"
            )
    return fitting(domain, found)


def asked(wanted: LinearMap) -> list[Names]:
    """The columns that a question looks at together, each set once; none for a count of everything."""
    parts: Sequence[LinearMap] = wanted.parts if isinstance(wanted, Stack | PartwiseMap) else (wanted,)
    return [columns for columns in dict.fromkeys(tuple(sorted(part.attrs)) for part in parts) if columns]


def fitting(domain: Domain, sets: Iterable[Sequence[str]]) -> tuple[Names, ...]:
    """The sets in the order of the domain, each once, without columns of one value; refused if nothing is left."""
    varying = ([name for name in columns if domain[name].size > 1] for columns in sets)
    found = dict.fromkeys(domain.ordered(columns) for columns in varying if columns)
    possible = tuple(own for own in found if len(own) <= MOST_TOGETHER and domain.cells(own) <= MOST_ROWS)
    if not possible:
        raise QueryError(
            f"no set of columns is left to learn about: a set has at most {MOST_TOGETHER} columns, {MOST_ROWS:,} joint "
            "cells, and a column with more than one value"
        )
    return possible


def digest(sets: Iterable[Names]) -> str:
    """A short name for a list of sets."""
    text = ";".join(",".join(columns) for columns in sets)
    return text if len(text) <= 120 else f"#{blake2b(text.encode(), digest_size=8).hexdigest()}"
