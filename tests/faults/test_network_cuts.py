"""The network between us and a database is cut: in the middle of a commit, of a pass over a table, and silently."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import bursar
from bursar.core.domain import Unit
from bursar.core.source.servers import mariadb as mariadb_module
from bursar.errors import LedgerError, SourceError
from harness.ledgers import note
from harness.network import Cut, Network, network
from harness.places import QUESTION, MariaDBPlace, PostgreSQLPlace
from harness.postgres_ledgers import new_ledger
from harness.servers import PASSWORD, shared_mariadb, shared_postgresql

pytestmark = pytest.mark.heavy

GONE = "could not be counted: the server went away, took too long, or refused; nothing was charged"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Names of sockets are short, and those of the folders of tests are not."""
    made = Path(tempfile.mkdtemp(prefix="cut-"))
    yield made
    shutil.rmtree(made)


@contextmanager
def to_postgresql(folder: Path) -> Iterator[Network]:
    server = shared_postgresql()
    socket = f".s.PGSQL.{server.port}"
    with network(server.folder / socket, folder / socket) as made:
        yield made


# -- the ledger ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cut", "kept"), [(Cut.BEFORE, 0), (Cut.AFTER, 1)])
def test_a_commit_whose_end_is_not_known_releases_nothing_and_counts_if_it_arrived(
    folder: Path, tmp_path: Path, cut: Cut, kept: int
) -> None:
    url = shared_postgresql().url(host=str(folder))
    with to_postgresql(folder) as between, closing(new_ledger(tmp_path, {"id": "people"}, url=url)) as ledger:
        assert ledger.commit(note) == 1
        between.plan(cut, b"; COMMIT", answer=b"COMMIT\0")
        with pytest.raises(LedgerError, match=r"cannot be reached .*; nothing was released"):
            ledger.commit(note)
        assert between.cuts == 1
        assert len(ledger.records()) == 1 + kept
        assert ledger.commit(note) == 2 + kept  # on a new connection, after what had arrived
        ledger.verify()


# -- the source ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER])
def test_a_pass_that_is_cut_charges_nothing_and_is_tried_again(
    folder: Path, tmp_path: Path, cut: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BURSAR_SOURCE_PASSWORD", PASSWORD)
    place = PostgreSQLPlace(shared_postgresql())
    place.url = place.server.url(place.database, place.role, host=str(folder))
    with to_postgresql(folder) as between:
        path = place.config(tmp_path)
        bursar.create(path).close()
        with bursar.open(path, analyst="ana") as db:
            between.plan(cut, b"WITH units AS")
            with pytest.raises(SourceError, match=GONE):
                db.query(QUESTION, within=60)
            assert (between.cuts, db.budget().spent) == (1, 0)
            assert db.query(QUESTION, within=60).charge > 0


def test_a_server_that_falls_silent_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_module, "GRACE", 1)
    place = MariaDBPlace(shared_mariadb())
    door = folder / "socket"
    with network(place.server.folder / "socket", door) as between:
        place.url = f"mysql://{place.user}@localhost/{place.database}?unix_socket={door}"
        assert place.open(unit=Unit(column="id"), seconds=1).table(()) == 1000
        between.plan(Cut.SILENT, b"WITH units AS")
        with pytest.raises(SourceError, match=GONE):
            place.open(unit=Unit(column="id"), seconds=1)
        assert between.cuts == 1


def test_a_connection_asks_whether_the_network_is_there() -> None:
    place = PostgreSQLPlace(shared_postgresql())
    for more, idle in (("", "10"), ("&keepalives_idle=77", "77")):
        place.url += more
        with closing(place.connect()) as server:
            assert server._connection.info.get_parameters()["keepalives_idle"] == idle
