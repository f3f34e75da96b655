"""An older ledger put back, or one flipped byte: it is refused, or nothing that was spent, answered or secret changed.

The anchor is the file `ledger.sqlite-anchor` beside the ledger: one line that says how far the ledger had come. It
finds an older ledger file that is put back. It does not find an older ledger put back *together with* its older
anchor, nor the loss of the last commit where the process was killed between that commit and its anchor; for these
the owner keeps the head (`bursar verify` prints it) elsewhere and passes it as `expect`.
"""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bursar.core.ledger import SqliteLedger
from bursar.errors import LedgerError
from bursar.session import Bursar
from harness.faults import KILLED, Ask, ask_and_die, complaints, copied, found, measured, reopened, run

EARLY = Ask(key="early", text="SELECT COUNT(*) FROM people WHERE age < 5", rows=1)
LATE = Ask(key="late", text="SELECT age, COUNT(*) FROM people GROUP BY age", rows=10)
"""Ten rows: asked anew, it has no chance of the same noise."""


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A ledger with one answer."""
    place = tmp_path / "older" / "ledger.sqlite"
    found(place)
    with reopened(place) as bursar:
        EARLY.of(bursar)
    return place


@pytest.fixture
def newer(older: Path, tmp_path: Path) -> Path:
    """The same ledger one answer later."""
    place = copied(older, tmp_path / "newer")
    with reopened(place) as bursar:
        LATE.of(bursar)
    return place


def put_back(older: Path, newer: Path, *names: str) -> None:
    """Replace files of the newer ledger by those of the older; files that the older does not have go away."""
    for name in names:
        (newer.parent / name).unlink(missing_ok=True)
        if (older.parent / name).exists():
            shutil.copy(older.parent / name, newer.parent / name)


FILES = ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm")
ANCHOR = "ledger.sqlite-anchor"


def test_an_older_ledger_is_refused(older: Path, newer: Path) -> None:
    put_back(older, newer, *FILES)
    with pytest.raises(LedgerError, match="not the ledger that was here before: an older copy was put back"):
        reopened(newer)


def test_a_lost_write_ahead_log_is_refused(older: Path, tmp_path: Path) -> None:
    """A process died with its last commits in the log only; the log is then lost."""
    place = copied(older, tmp_path / "died")
    assert run(ask_and_die, place, "default", [LATE], "after Grant.store") == KILLED
    assert (place.parent / "ledger.sqlite-wal").stat().st_size > 0
    (place.parent / "ledger.sqlite-wal").unlink()
    (place.parent / "ledger.sqlite-shm").unlink()
    with pytest.raises(LedgerError, match="an older copy was put back"):
        reopened(place)


def test_an_older_ledger_put_under_a_running_engine_is_refused_when_it_is_opened(older: Path, newer: Path) -> None:
    """The running engine still has the newer files open. Whatever it can do there, the anchor hears of it."""
    with reopened(newer) as bursar:
        LATE.of(bursar)
        put_back(older, newer, *FILES)
        with suppress(LedgerError):
            Ask(key="new", text=EARLY.text + " AND sex = 'F'").of(bursar)
        with pytest.raises(LedgerError, match="an older copy was put back"):
            reopened(newer)
    with pytest.raises(LedgerError, match="an older copy was put back"):
        reopened(newer)


def test_a_lost_anchor_is_refused_unless_the_owner_vouches(newer: Path) -> None:
    with reopened(newer) as bursar:
        health = bursar.owner.verify()
    (newer.parent / ANCHOR).unlink()
    with pytest.raises(LedgerError, match=r"the anchor .* is missing, so the ledger may be an older copy"):
        reopened(newer)
    SqliteLedger.open(newer, expect=(health.records, health.head)).close()
    assert complaints(newer, [EARLY, LATE]) == []


def test_what_the_anchor_does_not_find_the_owner_does(older: Path, newer: Path) -> None:
    """The older ledger with its older anchor opens, and what was spent since is spent again. A head that was written
    down elsewhere finds it."""
    with reopened(newer) as bursar:
        health = bursar.owner.verify()
    put_back(older, newer, *FILES, ANCHOR)
    with reopened(newer) as bursar:
        assert measured(bursar.ledger.records(), LATE.text) == []
    with pytest.raises(LedgerError, match="an older copy was put back"):
        SqliteLedger.open(newer, expect=(health.records, health.head))


def test_a_ledger_whose_anchor_lags_is_the_same_ledger(older: Path, newer: Path) -> None:
    """A process killed between a commit and its anchor: the ledger is ahead, nothing is lost."""
    put_back(older, newer, ANCHOR)
    assert complaints(newer, [EARLY, LATE]) == []


# -- one flipped byte ---------------------------------------------------------------------------------------


def contents(bursar: Bursar) -> dict[str, Any]:
    """What a ledger is there for."""
    return {
        "spent": bursar.kernel.spent(),
        "values": [record.values.tolist() for record in bursar.ledger.records()],
        "answers": [ask.of(bursar).to_bytes() for ask in (EARLY, LATE)],
        "secrets": bursar.ledger.commit(lambda t: [t.secret(name) for name in ("data key", "content 1")]),
        "held": bursar.budget().held,
    }


def flip(place: Path, name: str = "ledger.sqlite") -> None:
    """One random byte of one of the ledger's files whose names begin so; they are as likely as they are large."""
    files = [file for file in sorted(place.parent.iterdir()) if file.name.startswith(name)]
    file = random.choices(files, [file.stat().st_size for file in files])[0]
    body = bytearray(file.read_bytes())
    body[random.randrange(len(body))] ^= random.randrange(1, 256)
    file.write_bytes(body)


def outcome(place: Path) -> dict[str, Any] | None:
    """What the ledger holds after it was opened and verified; None where either was refused."""
    try:
        with reopened(place) as bursar:
            bursar.owner.verify()
            return contents(bursar)
    except LedgerError:
        return None


def check_flips(template: Path, home: Path, flips: int) -> None:
    """The first in the anchor, where each is found. Elsewhere four in five have no effect: no luck is needed."""
    with reopened(copied(template, home / "whole")) as bursar:
        expected = contents(bursar)
    refused = 0
    for number in range(flips):
        place = copied(template, home / f"flip {number}")
        flip(place, ANCHOR if number == 0 else "ledger.sqlite")
        seen = outcome(place)
        assert seen is None or seen == expected, number
        refused += seen is None
        shutil.rmtree(place.parent)
    assert 0 < refused < flips


@pytest.fixture(params=[pytest.param("closed", marks=pytest.mark.heavy), "crashed"])
def flippable(request: pytest.FixtureRequest, newer: Path, tmp_path: Path) -> Path:
    """A ledger closed in peace, or as a crash leaves it: with a write-ahead log, a hold and a claim."""
    place = copied(newer, tmp_path / "flippable")
    if request.param == "crashed":
        asks = [Ask(key="dead", text="SELECT region, COUNT(*) FROM people GROUP BY region", within=90.0, rows=3)]
        assert run(ask_and_die, place, "row by row", asks, "after SystemRandomness.draw") == KILLED
        assert (place.parent / "ledger.sqlite-wal").stat().st_size > 0
    return place


def test_a_flipped_byte_is_found_or_without_effect(flippable: Path, tmp_path: Path) -> None:
    check_flips(flippable, tmp_path, 60)


@pytest.mark.heavy
def test_many_flipped_bytes_are_found_or_without_effect(flippable: Path, tmp_path: Path) -> None:
    check_flips(flippable, tmp_path, 2000 if "BURSAR_SOAK" in os.environ else 150)


def test_the_comparison_sees_every_change(older: Path, newer: Path) -> None:
    """A wrong twin: the older ledger with its older anchor would pass as the newer one, were it not compared."""
    with reopened(newer) as bursar:
        expected = contents(bursar)
    put_back(older, newer, *FILES, ANCHOR)
    seen = outcome(newer)
    assert seen is not None
    assert {name for name in expected if seen[name] != expected[name]} == {"spent", "values", "answers"}
