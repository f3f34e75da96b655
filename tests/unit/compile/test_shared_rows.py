"""Rows that outputs of a question have in common are one row, however many outputs there are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from bursar.compile import compile, partwise
from bursar.compile.groups import label_ranks
from bursar.compile.partwise import SharedRows
from bursar.compile.workload import Workload
from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.core.queries import Mask
from bursar.sql import parse

PEOPLE = Domain(
    (
        IntegerRange(name="age", lower=0, upper=99, null=0),
        Categories(name="sex", values=("F", "M"), null="F", outside="M"),
        Categories(name="tea", values=("no", "some", "much")),
    )
)


def filtered(group: str, conditions: list[str]) -> Workload:
    counts = ", ".join(f"COUNT(*) FILTER (WHERE {condition}) AS n{n}" for n, condition in enumerate(conditions))
    return compile(parse(f"SELECT {group}, {counts} FROM people GROUP BY {group}"), PEOPLE, "people")


@pytest.mark.parametrize("group", ["sex", "age", "sex, tea"])
def test_every_row_is_there_once_and_in_its_place(group: str) -> None:
    conditions = ["age = 3", "age < 5", "age = 3", "sex = 'F'", "sex = 'F' AND age = 3", "tea = 'no'", "age > 97"]
    workload = filtered(group, conditions)
    table = np.random.default_rng(0).integers(0, 1000, PEOPLE.sizes(PEOPLE.names))

    def counts(names: tuple[str, ...]) -> NDArray[np.int64]:
        gone = tuple(axis for axis, name in enumerate(PEOPLE.names) if name not in names)
        kept = [name for name in PEOPLE.names if name in names]
        margin: NDArray[np.int64] = table.sum(axis=gone).transpose([kept.index(name) for name in names])
        return margin

    answers = workload.map.apply(counts)
    for number, condition in enumerate(conditions):
        alone = filtered(group, [condition])
        column = [0 if row < 0 else answers[row] for row in workload.index[:, number]]
        expected = alone.map.apply(counts)
        assert column == [0 if row < 0 else expected[row] for row in alone.index[:, 0]], condition
    first, third = workload.index[:, 0].tolist(), workload.index[:, 2].tolist()
    assert first == third


def test_conditions_are_not_compared_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0
    candidates = SharedRows._candidates

    def counted(self: SharedRows, *arguments: object) -> list[int]:
        nonlocal looked_at
        numbers = candidates(self, *arguments)
        looked_at += len(numbers)
        return numbers

    monkeypatch.setattr(SharedRows, "_candidates", counted)
    filtered("sex", [f"age = {n}" for n in range(100)])
    assert looked_at <= 100  # all pairs would be 4,950


def test_one_count_is_compared_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many groups that takes longer than all else."""
    looked_at = 0

    def counted(mask: Mask) -> list[bytes]:
        nonlocal looked_at
        looked_at += mask.rows
        return row_keys(mask)

    row_keys = partwise._row_keys
    monkeypatch.setattr(partwise, "_row_keys", counted)
    filtered("age", ["sex = 'F'"])
    assert looked_at == 0
    filtered("age", ["sex = 'F'", "tea = 'no'"])
    assert looked_at > 0


@pytest.mark.parametrize("by_code", [False, True])
@pytest.mark.parametrize("labels", [[5, -3, 2**70, 0, 7], [3, 1, 3, 2, 1], [5, None, 2], [1.5, 2, -1], [True, 3], []])
def test_labels_are_ranked(labels: list[int | None], by_code: bool) -> None:
    places = range(len(labels))
    known = sorted(places, key=lambda place: (labels[place] is None, place if by_code else labels[place] or 0))
    ranks = label_ranks(labels, by_code=by_code)
    assert ranks.tolist() == [known.index(place) for place in places]
