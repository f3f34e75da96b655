"""One process opens each data set once, and everybody asks through it."""

from __future__ import annotations

from pathlib import Path

import pytest

import bursar
from bursar.curate.demo import generate
from bursar.errors import AnalystError, ConfigError, LedgerError
from bursar.service.datasets import DataSets, people_of
from bursar.service.people import Role
from bursar.session import share

pytestmark = pytest.mark.thinned(3)

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = generate(tmp_path / "people.csv", rows=2_000)
    with bursar.create(path) as db:
        people = people_of(db.config)
    people.add("ana", Role.ANALYST)
    people.add("bob", Role.ANALYST)
    return path


def test_what_one_person_paid_for_is_there_for_the_next(toml: Path) -> None:
    with DataSets.open([toml]) as served:
        data = served["demo-people"]
        ana, bob = (data.people.person(name) for name in ("ana", "bob"))
        assert ana is not None
        assert bob is not None
        first = data.session(ana).query(BY_SEX, within=50)
        again = data.session(bob).query(BY_SEX, within=50)
        assert (first.free, again.free) == (False, True)
        assert again.values == first.values
        assert data.session(ana).engine.planner is data.session(bob).engine.planner
        assert [line.analyst for line in data.bursar.log()] == ["owner", "ana"]
        assert data.session(bob).log() == []


def test_who_shares_nothing_has_a_planner_that_is_kept(toml: Path) -> None:
    shares = '\n[analysts]\npolicy = "independent"\nshares = {ana = 0.5, bob = 0.5}\n'
    toml.write_text(toml.read_text() + shares)
    share(toml).close()
    with bursar.open(toml) as db:
        ana, bob = db.as_analyst("ana"), db.as_analyst("bob")
        first = ana.query(BY_SEX, within=50)
        second = bob.query(BY_SEX, within=50)
        assert not second.free
        assert second.values != first.values or second.charge > 0
        assert db.as_analyst("ana").query(BY_SEX, within=50).free
        assert db.as_analyst("ana").engine.planner is ana.engine.planner is not bob.engine.planner
        with pytest.raises(AnalystError):
            db.as_analyst("everyone")


def test_a_guest_is_found_by_token_among_all_data_sets(toml: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = generate(tmp_path / "other" / "people.csv", rows=1_000)
    other.write_text(other.read_text().replace("demo-people", "second"))
    bursar.create(other).close()
    with DataSets.open([toml, other.parent]) as served:
        token = served["demo-people"].people.make_token("ana")
        guest = served.guest(token)
        assert guest is not None
        assert (guest.person.name, guest.data.name) == ("ana", "demo-people")
        assert served.guest(token[:-1]) is None
        assert sorted(served) == ["demo-people", "second"]


def test_files_that_others_can_read_are_not_served(toml: Path) -> None:
    with DataSets.open([toml]) as served:
        files = [served["demo-people"].config.ledger_path, served["demo-people"].people.path]
    for file in files:
        file.chmod(0o640)
        with pytest.raises(LedgerError, match="chmod 600"):
            DataSets.open([toml])
        file.chmod(0o600)
    DataSets.open([toml]).close()


def test_two_data_sets_of_one_name_are_not_served(toml: Path) -> None:
    with pytest.raises(ConfigError, match="two data sets"):
        DataSets.open([toml, toml.parent])
    (toml.parent / "new").mkdir()
    with pytest.raises(LedgerError, match="bursar create"):
        DataSets.open([generate(toml.parent / "new" / "people.csv", rows=1_000)])


def test_the_log_is_everybodys_where_the_config_says_so(toml: Path) -> None:
    with bursar.open(toml, analyst="ana") as db:
        db.query(BY_SEX, within=50)
        assert db.as_analyst("bob").log() == []
    toml.write_text(toml.read_text() + '\n[analysts]\nlog = "all"\n')
    with bursar.open(toml, analyst="bob") as db:
        assert [line.analyst for line in db.log()] == ["owner", "ana"]
    toml.write_text(toml.read_text().replace('"all"', '"none"'))
    with pytest.raises(ConfigError, match=r"analysts\.log"):
        bursar.open(toml)


def test_the_folder_for_new_data_sets_is_made_for_nobody_else_to_read(toml: Path, tmp_path: Path) -> None:
    room = tmp_path / "new" / "room"
    with DataSets.open([toml], room) as served:
        assert served.room == room
        assert room.stat().st_mode & 0o777 == 0o700
    with DataSets.open([toml], room):
        pass  # it is there already
