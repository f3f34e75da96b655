"""The baseline: an exact cache in front of plain noise, on the same questions."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bursar.core.accounting import Book, Event, Measured, Noise, NoiseKind, from_units
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.core.queries import Mask, Product, Stack, Steps
from bursar.session import Bursar
from bursar.testing import EmptySource, stage
from bursar.views.baseline import Baseline
from bursar.views.question_notes import AskedQuestion, MemoryNotes, QuestionNotes, SqliteNotes
from harness.cases import few
from harness.small import config

AGES = Product((Mask(("age",), (10,), Steps.identity(10)),))


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def asked(scale: float, *, analyst: str = "ana", version: int = 1, position: int = 0) -> AskedQuestion:
    event = Measured(strategy=AGES, noise=laplace(scale), version=version)
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
    notes.add(asked(2.0, position=7))
    assert list(notes.asked_at("ana", AGES.digest)) == [0, 0, 0, 7]
    assert list(notes.asked_at("bob", AGES.digest)) == []
    notes.erase()
    assert list(notes.after(0)) == list(notes.asked_at("ana", AGES.digest)) == []
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
    assert (baseline.questions, baseline.question_counts["age",]) == (3, 3)


def test_accounts_have_baselines_of_their_own() -> None:
    db = stage(config(), lambda key: EmptySource(config().domain))
    notes, own = MemoryNotes(), Baseline(db.kernel.empty_book, frozenset({"direct"}), "bob")
    notes.add(asked(8.0, analyst="ana"))
    own.catch_up(notes, db.ledger.records)
    assert own.spent() == 0
    assert own.questions == 0


def test_questions_about_the_same_columns_are_added_up_by_themselves() -> None:
    db = stage(config(), lambda key: EmptySource(config().domain))
    notes, baseline = MemoryNotes(), Baseline(db.kernel.empty_book, frozenset({"direct"}))
    everybody = Measured(strategy=Product(()), noise=laplace(5.0), version=1)
    notes.add(AskedQuestion(analyst="ana", columns=(), plain=(everybody,), position=0))
    notes.add(asked(8.0))
    baseline.catch_up(notes, db.ledger.records)
    assert from_units(baseline.spent_on_columns(asked(4.0))) == pytest.approx(1 / 8 + 1 / 4)
    assert from_units(baseline.spent_on_columns(asked(8.0))) == pytest.approx(1 / 8)
    notes.add(asked(4.0))
    assert from_units(baseline.spent_on_columns(asked(8.0))) == pytest.approx(1 / 8 + 1 / 4)
    assert from_units(baseline.spent(asked(2.0).plain)) == pytest.approx(1 / 5 + 1 / 8 + 1 / 2)


WIDE = Domain(tuple(IntegerRange(name=name, lower=0, upper=99, null=0) for name in "abcd"))
"""More joint cells than a profile keeps apart: its bound can fall when columns come in."""


def some_questions(number: int, seed: int) -> list[AskedQuestion]:
    """Random ranges over one to three of the columns of WIDE, some of them two products on different columns."""
    rng = random.Random(seed)

    def product() -> Product:
        masks = []
        for name in rng.sample("abcd", rng.choice([1, 2, 2, 3])):
            low = rng.randrange(90)
            masks.append(Mask((name,), (100,), Steps.ranges([low], [low + rng.randrange(1, 10)], 100)))
        return Product(tuple(masks))

    questions = []
    for _ in range(number):
        products = (product(), product())
        strategy = Stack(products) if rng.random() < 0.3 and products[0].digest != products[1].digest else products[0]
        noise = Noise(kind=NoiseKind.LAPLACE, scale=rng.choice([4.0, 16.0, 64.0]))
        event = Measured(strategy=strategy, noise=noise, version=1)
        questions.append(AskedQuestion(analyst="ana", columns=WIDE.ordered(strategy.attrs), plain=(event,), position=0))
    return questions


def booked_at_once(questions: list[AskedQuestion], book: Book) -> int:
    """What is spent if every question is added as it comes, as an independent cache would have it."""
    finest: dict[str, float] = {}
    for question in questions:
        for event in question.plain:
            if finest.get(event.strategy.digest, float("inf")) > event.noise.scale:
                finest[event.strategy.digest] = event.noise.scale
                book.add(event)
    return book.spent()


@pytest.mark.parametrize("seed", few(range(4)))
def test_the_book_is_the_same_whenever_it_is_added_up_and_its_lower_bound_is_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bursar.views.baseline.MOST_UNBOOKED", 5)
    wide = config(domain=WIDE, budget=Budget.of(epsilon=1000.0))
    db = stage(wide, lambda key: EmptySource(WIDE))
    notes, baseline = MemoryNotes(), Baseline(db.kernel.empty_book, frozenset({"direct"}))
    rng, questions, certain = random.Random(seed), some_questions(40, seed), 0
    for place, question in enumerate(questions):
        notes.add(question)
        baseline.catch_up(notes, lambda after: ())
        (following,) = some_questions(1, 100 * seed + place)
        bound = baseline.certainly(following.plain)
        certain += bound > 0
        if rng.random() < 0.4:
            assert bound <= baseline.spent(following.plain)
            assert baseline.spent() == booked_at_once(questions[: place + 1], db.kernel.empty_book())
    assert certain > 0
    each = [db.kernel.empty_book().price(question.plain) for question in questions]
    assert baseline.apart == sum(each) == baseline.apart


class WatchedNotes(SqliteNotes):
    """Notes of a second process, which say from where they were read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.read: list[int] = []

    def after(self, number: int) -> Sequence[AskedQuestion]:
        self.read.append(number)
        return super().after(number)


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Bursar, Path, list[AskedQuestion]]:
    """A data set, and notes of forty questions with sums of the first ten and the first 25."""
    db = stage(config(domain=WIDE, budget=Budget.of(epsilon=1000.0)), lambda key: EmptySource(WIDE))
    path, questions = tmp_path / "questions.sqlite", some_questions(40, seed=5)
    notes, baseline = SqliteNotes(path), Baseline(db.kernel.empty_book, frozenset({"direct"}))
    for place, question in enumerate(questions):
        notes.add(question)
        if place in (9, 24):
            baseline.catch_up(notes, db.ledger.records)
            baseline.save()
    return db, path, questions


def caught_up(db: Bursar, notes: QuestionNotes) -> Baseline:
    baseline = Baseline(db.kernel.empty_book, frozenset({"direct"}))
    baseline.catch_up(notes, db.ledger.records)
    return baseline


def told(baseline: Baseline, questions: Sequence[AskedQuestion]) -> list[object]:
    """All that planners ask of a baseline."""
    sums = [
        baseline.spent(),
        baseline.questions,
        baseline.question_counts,
        baseline.first,
        baseline.position,
        baseline.apart,
    ]
    finer = [replace(question.plain[0], noise=laplace(question.plain[0].noise.scale / 2)) for question in questions]
    known = [len(baseline.missing(question.plain)) for question in questions]
    return [*sums, known, [baseline.certainly((each,)) for each in finer], [baseline.price((each,)) for each in finer]]


def test_a_new_process_begins_with_the_sum_that_was_saved(saved: tuple[Bursar, Path, list[AskedQuestion]]) -> None:
    db, path, questions = saved
    everything, later = MemoryNotes(), WatchedNotes(path)
    for question in questions:
        everything.add(question)
    again = caught_up(db, later)
    assert later.read == [25]
    assert told(again, questions) == told(caught_up(db, everything), questions)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("body", [b"", b"x", b"[]\n", b'[1,"another release",[],[],[],[]]\n'])
def test_a_sum_that_cannot_be_read_does_not_count(saved: tuple[Bursar, Path, list[AskedQuestion]], body: bytes) -> None:
    db, path, questions = saved
    notes = WatchedNotes(path)
    whole = told(caught_up(db, notes), questions)
    notes.save_sum(None, body, ())
    notes.read.clear()
    assert told(caught_up(db, notes), questions) == whole
    assert notes.read[0] == 0


def test_sums_are_of_one_payer_and_erased_with_the_notes(saved: tuple[Bursar, Path, list[AskedQuestion]]) -> None:
    db, path, questions = saved
    notes = SqliteNotes(path)
    digest = questions[0].plain[0].strategy.digest
    assert notes.sum(None) is not None
    assert notes.variance(None, digest, 1, until=25) < math.inf
    assert notes.sum("ana") is None
    assert notes.variance("ana", digest, 1, until=25) == notes.variance(None, digest, 1, until=0) == math.inf
    notes.erase()
    assert notes.sum(None) is None
    assert notes.variance(None, digest, 1, until=25) == math.inf
    assert caught_up(db, notes).questions == 0


FIVE = Domain(tuple(IntegerRange(name=name, lower=0, upper=39, null=0) for name in "abcde"))
"""Three columns have few enough cells to be kept apart, five do not."""


def by_parity(scale: float = 1.0, version: int = 1, **parities: int) -> Measured:
    """A count of the rows whose values of some columns are even or odd."""
    each = {name: np.array([np.arange(40) % 2 == parity], np.int64) for name, parity in parities.items()}
    masks = (Mask((name,), (40,), Steps.dense(row)) for name, row in each.items())
    return Measured(strategy=Product(tuple(masks)), noise=Noise(kind=NoiseKind.LAPLACE, scale=scale), version=version)


def test_where_columns_are_new_nothing_is_certain() -> None:
    """What is booked is above what is spent after a question on new columns, by which a profile can tell more apart."""
    db = stage(config(domain=FIVE, budget=Budget.of(epsilon=1000.0)), lambda key: EmptySource(FIVE))
    notes, baseline = MemoryNotes(), Baseline(db.kernel.empty_book, frozenset({"direct"}))
    equal = [by_parity(a=p, c=p) for p in (0, 1)] + [by_parity(c=p, d=p) for p in (0, 1)]
    for event in (*equal, by_parity(a=0, d=1), by_parity(a=1, d=0), by_parity(b=0, e=0)):
        notes.add(AskedQuestion(analyst="ana", columns=event.strategy.attrs, plain=(event,), position=0))
    baseline.catch_up(notes, lambda after: ())
    booked, new = baseline.spent(), by_parity(1000.0, a=0, c=0, d=0)
    assert baseline.spent((new,)) < booked
    assert baseline.certainly((new,)) == 0
    again = by_parity(1000.0, a=1, c=0)
    assert 0 < baseline.certainly((again,)) <= baseline.spent((again,))
    assert baseline.certainly((by_parity(1000.0, version=2, a=1, c=0),)) == 0


def test_one_way_to_measure_is_taken_unpriced_unless_it_is_dearer_than_any_budget() -> None:
    added: list[Event] = []

    class Priceless(Book):
        def price(self, events: object, besides: object = ()) -> int:
            raise AssertionError("priced")

        def add(self, event: Event, position: int | None = None) -> None:
            added.append(event)

    db = stage(config(), lambda key: EmptySource(config().domain))
    empty = db.kernel.empty_book()
    baseline = Baseline(lambda: Priceless(empty.accountant, empty.new_profile), frozenset())
    plain = asked(8.0).plain
    assert baseline.cheapest([plain]) == plain
    assert baseline.cheapest([]) == ()
    assert not added
    dear = Product((Mask(("age",), (10,), Steps.dense(64 * np.eye(10, dtype=np.int64))),))
    least = Noise(kind=NoiseKind.LAPLACE, scale=2.0**-6)
    assert baseline.cheapest([(Measured(strategy=dear, noise=least, version=1),)]) == ()
    with pytest.raises(AssertionError, match="priced"):
        baseline.cheapest([plain, plain])
