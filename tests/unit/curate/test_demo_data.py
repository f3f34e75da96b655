"""The demo's people do not exist, and yet they hang together; the config beside them declares them rightly."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import pytest

from bursar.config import Config, load
from bursar.core.domain import Bins, Categories, Dates, IntegerRange
from bursar.curate.demo import COLUMNS, generate

ROWS = 20_000
Person = dict[str, str]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return load(generate(tmp_path_factory.mktemp("demo") / "people.csv", rows=ROWS))


@pytest.fixture(scope="module")
def people(config: Config) -> list[Person]:
    with config.location.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def share(people: Sequence[Person], test: Callable[[Person], bool]) -> float:
    return mean([test(person) for person in people])


def test_the_config_fits_the_table(config: Config, people: list[Person]) -> None:
    assert len(people) == ROWS == config.public_size
    assert config.max_rows >= ROWS
    assert tuple(people[0]) == COLUMNS
    assert set(config.domain.names) == set(COLUMNS) - {"person_id"}
    assert len(config.domain.names) >= 8
    assert len({person["person_id"] for person in people}) == ROWS
    assert config.goal is not None


def test_nearly_every_value_is_declared_and_every_declared_value_occurs(config: Config, people: list[Person]) -> None:
    for attribute in config.domain.attributes:
        values = [person[attribute.name] for person in people if person[attribute.name]]
        if isinstance(attribute, Categories):
            declared = {str(value).lower() if isinstance(value, bool) else str(value) for value in attribute.values}
            inside = [value in declared for value in values]
            assert declared <= set(values)
        elif isinstance(attribute, IntegerRange):
            inside = [attribute.lower <= int(value) <= attribute.upper for value in values]
        elif isinstance(attribute, Bins):
            inside = [attribute.edges[0] <= float(value) <= attribute.edges[-1] for value in values]
        else:
            assert isinstance(attribute, Dates)
            inside = [attribute.first <= date.fromisoformat(value) <= attribute.last for value in values]
        assert mean(inside) > 0.98, attribute.name


def test_there_are_gaps_and_outliers(people: list[Person]) -> None:
    assert 0 < share(people, lambda p: p["education"] == "") < 0.1
    assert 0 < share(people, lambda p: p["income"] == "") < 0.1
    assert 0 < share(people, lambda p: p["sex"] == "X") < 0.02
    assert any(float(p["income"]) > 500_000 for p in people if p["income"])
    assert any(int(p["hours"]) > 80 for p in people)


def test_columns_hang_together(people: list[Person]) -> None:
    def income(education: str) -> float:
        return mean([min(float(p["income"]), 200_000) for p in people if p["education"] == education and p["income"]])

    def age(column: str, value: str) -> float:
        return mean([int(p["age"]) for p in people if p[column] == value])

    assert income("primary") < income("bachelor") < income("doctorate")
    assert age("occupation", "student") < 35 < 65 < age("occupation", "retired")
    assert age("marital", "single") < age("marital", "married") < age("marital", "widowed")
    assert share([p for p in people if p["occupation"] == "retired"], lambda p: int(p["hours"]) > 20) < 0.01


def test_a_seed_names_the_people(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        generate(path, rows=500, seed=seed)
    one, same, other = (path.read_bytes() for path in paths)
    assert one == same != other
