"""Checkpoints: which saved states count, and that every other one changes nothing."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind, Refined, Versioned
from bursar.core.extensions import checkpoint as module
from bursar.core.extensions.checkpoint import SAVED, Checkpointed, nothing_read
from bursar.core.extensions.saved_state import decode_tree, encode_tree
from bursar.core.kernel import Kernel
from bursar.core.ledger import Ledger, MemoryLedger, Purpose, SqliteLedger
from bursar.core.public import Public
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import LedgerError, Stale, Unsupported
from harness.small import Silence, TableSource, charter, config, counts, engine

BY_AGE = Product((Mask(("age",), (10,), Steps.identity(10)),))
SETTINGS = config()


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def terms(analyst: str = "ann") -> dict[str, Any]:
    return {"analyst": analyst, "purpose": Purpose("why", "test"), "at_most": 2**60}


def kernel_on(ledger: Ledger, **options: Any) -> Kernel:
    parts = {"domain": SETTINGS.domain, "unit": SETTINGS.unit, "budget": SETTINGS.budget, "max_rows": 100_000}
    source = TableSource(counts(), SETTINGS.domain)
    return Kernel(**parts, ledger=ledger, open_source=lambda key: source, randomness=Silence(), **options)


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    """Three records, and a checkpoint of them; then one record more."""
    made = SqliteLedger.create(tmp_path / "ledger.sqlite", charter(SETTINGS))

    def work(transaction: Any) -> None:
        transaction.put_secret("data key", bytes(32))
        transaction.put_secret("content 1", b"as it was")
        nothing = np.zeros(0, np.int64)
        event = Versioned(version=1)
        transaction.append(analyst="owner", purpose=Purpose("", "owner"), event=event, values=nothing)

    made.commit(work)
    kernel = kernel_on(made)
    block = kernel.measure(BY_AGE, laplace(16.0), **terms())[0].position
    kernel.refine(block, [1, 2], laplace(8.0), before=laplace(16.0), **terms())
    assert kernel.checkpoint() == 3
    kernel.measure(BY_AGE, laplace(32.0), **terms())
    return made


def replayed(ledger: Ledger) -> Public:
    """What the log adds up to from its first record on."""
    return nothing_read(kernel_on(ledger))


def again(ledger: SqliteLedger, **options: Any) -> SqliteLedger:
    return SqliteLedger.open(ledger._path, charter(SETTINGS), **options)


def test_opening_begins_at_the_checkpoint(ledger: SqliteLedger) -> None:
    kernel = kernel_on(again(ledger))
    assert (kernel._checkpointed, kernel._position) == (3, 3)
    assert kernel.spent() == replayed(ledger).spent() == 2**50 // 8 + 2**50 // 32
    assert [type(record.event).__name__ for record in kernel.ledger.records()][3:] == ["Checkpointed", "Measured"]


def test_a_kernel_that_begins_there_has_not_read_what_is_before(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = again(ledger)
    kernel = kernel_on(opened)
    asked: list[int] = []
    monkeypatch.setattr(opened, "records", lambda after=0: asked.append(after) or ledger.records(after))
    kernel.spent()
    assert asked == [3]


def test_rows_from_before_it_are_refined_from_their_records(ledger: SqliteLedger) -> None:
    kernel = kernel_on(again(ledger))
    with pytest.raises(Stale, match="finer"):
        kernel.refine(2, [0, 1], laplace(4.0), before=laplace(16.0), **terms())
    shown = kernel.refine(2, [1, 2], laplace(4.0), before=laplace(8.0), **terms())[0]
    exact = counts().sum(axis=(1, 2))
    assert shown.values.tolist() == exact[1:3].tolist()
    kernel.refine(2, [0, 3], laplace(8.0), before=laplace(16.0), **terms())
    for block in (0, 1, 3, 4, 99):
        with pytest.raises(Stale, match="present version"):
            kernel.refine(block, [1], laplace(2.0), before=laplace(4.0), **terms())


def test_the_value_that_is_refined_is_the_one_of_the_record(ledger: SqliteLedger) -> None:
    kernel = kernel_on(again(ledger))
    planned = Refined(
        block=2, measured=BY_AGE, rows=np.array([1, 2]), before=laplace(8.0), after=laplace(4.0), version=1
    )
    assert kernel._blocks.values(planned).tolist() == ledger.record(3).values.tolist()
    assert not kernel._blocks.records  # nothing was kept of it


def test_no_checkpoint_counts_in_a_history_that_was_exchanged(ledger: SqliteLedger) -> None:
    opened = again(ledger)
    event = next(record.event for record in opened.records() if isinstance(record.event, Checkpointed))
    assert opened.resume(event)
    opened._log.verified = (opened._log.verified[0], bytes(32))
    assert not opened.resume(event)


@pytest.mark.parametrize("landmark", [-4, 0, 2, 3, 5, 99])
def test_a_landmark_says_how_much_is_checked_and_vouches_for_nothing(ledger: SqliteLedger, landmark: int) -> None:
    """Upkeep finds it, which is not trusted: it may be anything."""
    told = next(record.event for record in ledger.records() if isinstance(record.event, Checkpointed))
    for event in (replace(told, digest="0" * 64), replace(told, position=2), replace(told, position=4)):
        opened = again(ledger)
        opened._landmark = landmark
        with suppress(LedgerError):  # what is no position of the log looks like damage
            assert not opened.resume(event)
        opened.close()
    opened = again(ledger)
    opened._landmark = landmark
    if landmark >= 0:
        assert kernel_on(opened).spent() == replayed(ledger).spent()


@pytest.mark.heavy
def test_every_byte_that_is_flipped_is_noticed_and_changes_nothing(ledger: SqliteLedger) -> None:
    body = ledger.saved(SAVED)
    assert body is not None
    memory = MemoryLedger(charter(SETTINGS))
    for record in ledger.records():
        facts = {"analyst": record.analyst, "purpose": Purpose("", record.proposer), "values": record.values}
        memory.commit(lambda transaction, facts=facts, record=record: transaction.append(event=record.event, **facts))
    sound = replayed(memory)
    spent, state = sound.spent(), encode_tree(sound.state())
    memory.save(SAVED, body)
    assert kernel_on(memory)._checkpointed == 3
    for place in range(len(body)):
        memory.save(SAVED, body[:place] + bytes([body[place] ^ 1 << place % 8]) + body[place + 1 :])
        kernel = kernel_on(memory)
        assert kernel._position == 0
        assert kernel.spent() == spent
        assert encode_tree(kernel.state()) == state
    for cut in (b"", body[:-1], body + b"\0", b"[[]]\n", b"null\n", b"[" * 100_000):
        ledger.save(SAVED, cut)
        assert kernel_on(again(ledger)).spent() == spent


def test_a_state_that_no_record_vouches_for_is_ignored(ledger: SqliteLedger) -> None:
    body = ledger.saved(SAVED)
    assert body is not None
    head, state = decode_tree(body)
    poor = replayed(ledger)
    state[2] = poor._empty_accounts().state()  # as if nothing had been spent
    ledger.save(SAVED, encode_tree([head, state]))
    kernel = kernel_on(again(ledger))
    assert kernel._position == 0
    assert kernel.spent() > 0


def test_a_state_of_other_sources_is_ignored(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "sources", lambda: "another release")
    kernel = kernel_on(again(ledger))
    assert kernel._position == 0
    assert kernel.checkpoint() == 5
    assert kernel_on(again(ledger))._checkpointed == 5


def test_the_digest_of_the_sources_covers_what_adds_up_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core = tmp_path / "core"
    (core / "extensions").mkdir(parents=True)
    for name in ("accounts.py", "extensions/checkpoint.py"):
        (core / name).write_text("one")
    monkeypatch.setattr(module, "__file__", str(core / "extensions" / "checkpoint.py"))
    digests = set()
    for text in ("one", "two"):
        (core / "accounts.py").write_text(text)
        digests.add(module.sources.__wrapped__())
    assert len(digests) == 2


@pytest.mark.parametrize("what", ["format", "charter"])
def test_a_state_of_another_format_or_charter_is_ignored(
    ledger: SqliteLedger, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = again(ledger)
    if what == "format":
        monkeypatch.setattr(module, "STATE_FORMAT", module.STATE_FORMAT + 1)
    else:
        monkeypatch.setattr(opened, "_charter", {**opened.charter, "dataset": "another"})
    assert kernel_on(opened)._position == 0


def test_a_checkpoint_that_was_taken_from_another_place_of_the_log_is_ignored(ledger: SqliteLedger) -> None:
    """A record vouches for the position that it names, and only from behind it."""
    body = ledger.saved(SAVED)
    assert body is not None
    (event,) = [record.event for record in ledger.records() if isinstance(record.event, Checkpointed)]
    for position in (0, 2, 4, 5, 6, -1):
        assert not again(ledger).resume(Checkpointed(position=position, digest=event.digest))
    assert not again(ledger).resume(Checkpointed(position=3, digest="0" * 64))
    assert again(ledger).resume(event)


def test_links_behind_a_checkpoint_are_checked(ledger: SqliteLedger) -> None:
    damage(ledger, 5)
    with pytest.raises(LedgerError, match="damaged"):
        kernel_on(again(ledger))


def damage(ledger: SqliteLedger, position: int) -> None:
    """Change a record, as an accident does: its hash stays."""
    ledger.close()
    with sqlite3.connect(ledger._path) as file:
        file.execute("UPDATE log SET body = CAST(body || x'0000000000000000' AS BLOB) WHERE position = ?", (position,))
    file.close()


def test_a_record_before_it_is_checked_when_it_is_read(ledger: SqliteLedger) -> None:
    damage(ledger, 2)
    kernel = kernel_on(again(ledger))  # begins at 3
    assert kernel.spent() > 0
    with pytest.raises(LedgerError, match="record 2 does not fit"):
        kernel.refine(2, [1, 2], laplace(4.0), before=laplace(8.0), **terms())
    with pytest.raises(LedgerError, match="damaged"):
        kernel.ledger.records()
    with pytest.raises(LedgerError, match="damaged"):
        kernel.ledger.verify()


def test_what_the_owner_wrote_down_is_linked_to_the_head(ledger: SqliteLedger) -> None:
    with ledger._reading() as database:
        head = database.chain_at(1).hex()
    damage(ledger, 2)
    assert kernel_on(again(ledger))._checkpointed == 3
    with pytest.raises(LedgerError, match="record 2 does not fit"):
        kernel_on(again(ledger, expect=(1, head)))


def test_verify_compares_with_the_whole_log(tmp_path: Path) -> None:
    db = engine(randomness=Silence())
    db.kernel.measure(BY_AGE, laplace(16.0), **terms())
    assert db.owner.verify().notes == ()
    assert db.owner.checkpoint() == 2
    assert db.owner.verify().notes == ("the checkpoint at record 2 is what the log adds up to",)
    head, state = decode_tree(db.ledger.saved(SAVED) or b"")
    state[2] = db.kernel._empty_accounts().state()
    body = encode_tree([head, state])
    event = Checkpointed(position=2, digest=module._digest(body))

    def forge(transaction: Any) -> None:
        facts = {"analyst": "owner", "purpose": Purpose("", "owner"), "values": np.zeros(0, np.int64)}
        transaction.append(event=event, **facts)

    db.ledger.commit(forge)
    db.ledger.save(SAVED, body)
    with pytest.raises(LedgerError, match="not what the log adds up to"):
        db.owner.verify()


def test_long_logs_get_checkpoints_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERVAL", 4)
    db = engine()
    for age in range(9):
        db.engine.checkpoints = age > 1
        db.query(f"SELECT COUNT(*) FROM people WHERE age = {age}", epsilon=0.01)
    log = [record.event for record in db.ledger.records()]
    assert [event.position for event in log if isinstance(event, Checkpointed)] == [4, 8, 12]


def test_a_state_that_could_not_be_used_is_made_anew(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or every process of a new release would read the log from its start."""
    monkeypatch.setattr(module, "INTERVAL", 4)
    assert not kernel_on(again(ledger)).checkpoint_due()
    monkeypatch.setattr(module, "sources", lambda: "another release")
    kernel, other = kernel_on(again(ledger)), kernel_on(again(ledger))
    assert (kernel.position(), other.position()) == (5, 5)
    assert kernel.checkpoint_due()
    assert other.checkpoint_due()
    kernel.checkpoint()
    assert (kernel.position(), other.position()) == (6, 6)
    assert not kernel.checkpoint_due()
    assert not other.checkpoint_due()
    assert kernel_on(again(ledger)).begun == 5


def test_where_measurements_are_charged_one_by_one_there_are_none(ledger: SqliteLedger) -> None:
    kernel = kernel_on(again(ledger), sequential=True)
    assert kernel._position == 0
    assert not kernel.checkpoint_due()
    with pytest.raises(Unsupported, match="no checkpoints"):
        kernel.checkpoint()
    with pytest.raises(Unsupported, match="no checkpoints"):
        kernel._new_book().new_profile().restore([])


def test_a_checkpoint_is_free_and_read_back() -> None:
    event = Checkpointed(position=7, digest="ab")
    assert kernel_on(MemoryLedger(charter(SETTINGS)))._accountant.footprints(event) == ()
    assert (event.answers, event.stored) == (0, None)
    assert Measured.kind != event.kind


def test_trees_of_plain_values_come_back() -> None:
    tree = [None, 2**80, -1, "text \u00e4", b"\0\n\xff", [b"", [], [b"more"]]]
    assert decode_tree(encode_tree(tree)) == tree
