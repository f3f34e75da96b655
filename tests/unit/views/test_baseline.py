"""The baseline: an exact cache in front of plain noise, on the same questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind, from_units
from bursar.core.queries import Mask, Product, Steps
from bursar.testing import EmptySource, stage
from bursar.views.baseline import AskedQuestion, Baseline, MemoryNotes, QuestionNotes, SqliteNotes
from harness.small import config

AGES = Product((Mask(("age",), (10,), Steps.identity(10)),))


def asked(scale: float, *, analyst: str = "ana", version: int = 1, position: int = 0) -> AskedQuestion:
    noise = Noise(kind=NoiseKind.LAPLACE, scale=scale)
    event = Measured(strategy=AGES, noise=noise, version=version)
    return AskedQuestion(analyst=analyst, columns=("age",), plain=(event,), position=position)


@pytest.fixture(params=["memory", "sqlite"])
def notes(request: pytest.FixtureRequest, tmp_path: Path) -> QuestionNotes:
    return MemoryNotes() if request.param == "memory" else SqliteNotes(tmp_path / "questions.sqlite")


def test_notes_are_kept_in_order(notes: QuestionNotes) -> None:
    for scale in (8.0, 4.0, 0.1):
        notes.add(asked(scale))
    assert [question.plain[0].noise.scale for question in notes.after(1)] == [4.0, 0.1]
    first = notes.after(0)[0]
    assert (first.analyst, first.columns, first.plain[0].strategy.digest) == ("ana", ("age",), AGES.digest)
    notes.erase()
    assert list(notes.after(0)) == []
    notes.close()


def test_processes_share_the_file_and_nobody_else_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "questions.sqlite"
    one, other = SqliteNotes(path), SqliteNotes(path)
    one.add(asked(8.0))
    other.add(asked(4.0))
    assert len(one.after(0)) == len(other.after(0)) == 2
    assert path.stat().st_mode & 0o077 == 0


def test_where_no_file_can_be_made_the_process_keeps_the_notes(tmp_path: Path) -> None:
    notes = SqliteNotes(tmp_path / "nowhere" / "questions.sqlite")
    notes.add(asked(8.0))
    assert len(notes.after(0)) == 1


def test_a_note_that_cannot_be_read_is_no_question_of_anybody(tmp_path: Path) -> None:
    notes = SqliteNotes(tmp_path / "questions.sqlite")
    notes._database.execute("INSERT INTO questions (body) VALUES (?)", (b"[1, 2]",))
    assert [question.plain for question in notes.after(0)] == [()]


def test_what_is_in_the_exact_cache_costs_nothing_and_tighter_is_measured_again() -> None:
    db = stage(config(), lambda key: EmptySource(config().domain))
    notes, baseline = MemoryNotes(), Baseline(db.kernel.empty_book, frozenset({"direct"}))
    notes.add(asked(8.0))
    notes.add(asked(8.0))
    notes.add(asked(16.0))
    baseline.catch_up(notes, db.ledger.records)
    assert from_units(baseline.spent()) == pytest.approx(1 / 8)
    assert baseline.price(asked(8.0).plain) == 0
    assert from_units(baseline.price(asked(4.0).plain)) == pytest.approx(1 / 4)  # fresh noise: nothing is refined
    assert (baseline.questions, baseline.asked["age",]) == (3, 3)


def test_accounts_have_baselines_of_their_own() -> None:
    db = stage(config(), lambda key: EmptySource(config().domain))
    notes, own = MemoryNotes(), Baseline(db.kernel.empty_book, frozenset({"direct"}), "bob")
    notes.add(asked(8.0, analyst="ana"))
    own.catch_up(notes, db.ledger.records)
    assert own.spent() == 0
    assert own.questions == 0
