"""One flipped byte anywhere in a ledger's files: it is found out, or nothing that is read has changed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Measured, Versioned
from bursar.core.ledger import Claim, Hold, Purpose, SqliteLedger, Transaction
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.database import Database
from bursar.core.noise.law import Noise, NoiseKind
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import LedgerError

KEYS = [f"key {number}" for number in range(12)]
SECRETS = [f"secret {number}" for number in range(5)]
BODY = b"the answer to everything, which nobody may change"


def fill(transaction: Transaction, number: int) -> None:
    strategy = Product((Mask(("age",), (9,), Steps.ranges(np.arange(number % 4), np.arange(number % 4) + 5, 9)),))
    event = Measured(strategy=strategy, noise=Noise(kind=NoiseKind.GAUSSIAN, scale=1.5 + number), version=1)
    values = np.arange(number % 4) * 10**number
    transaction.append(analyst="ann", purpose=Purpose(f"question {number}", "test"), event=event, values=values)
    if number < len(SECRETS):
        transaction.put_secret(SECRETS[number], bytes([number]) * 40)
        hold = Hold(fence=100 + number, analyst="ann", expires=1e12, events=(event, Versioned(version=2)))
        transaction.put_hold(hold, replace=False)
    claim = Claim(analyst="ann", key=KEYS[number], question="q", fence=transaction.next_fence(), expires=1e12)
    transaction.claim(claim, now=0.0)
    if number != 3:  # one claim stays open
        transaction.answer(claim, BODY + bytes([number]))


def contents(ledger: SqliteLedger) -> dict[str, Any]:
    """Everything a ledger is there for, as plain bytes."""
    return {
        "records": [codec.encode_record(record) for record in ledger.records()],
        "answers": [ledger.answered(analyst="ann", key=key, question="q") for key in KEYS],
        "secrets": ledger.commit(lambda t: [t.secret(name) for name in SECRETS]),
        "holds": ledger.commit(lambda t: [codec.encode_hold(hold) for hold in t.holds(0.0)]),
    }


class Sample:
    """The files of one ledger, closed or as a crash leaves them, and what a reader must find in them."""

    def __init__(self, directory: Path) -> None:
        self._work = directory / "work"
        self._work.mkdir()
        source = directory / "source"
        ledger = SqliteLedger.create(source / "ledger.sqlite", {"id": "people"})
        for number in range(len(KEYS)):
            ledger.commit(lambda t, n=number: fill(t, n))
        self.expected = contents(ledger)
        self.crashed = {file.name: file.read_bytes() for file in source.iterdir() if not file.name.endswith("-shm")}
        ledger.close()
        self.closed = {file.name: file.read_bytes() for file in source.iterdir()}

    def opened(self, files: dict[str, bytes]) -> closing[SqliteLedger]:
        shutil.rmtree(self._work)
        self._work.mkdir(mode=0o700)
        for name, body in files.items():
            (self._work / name).write_bytes(body)
        return closing(SqliteLedger.open(self._work / "ledger.sqlite"))

    def read(self, files: dict[str, bytes], *, verify: bool) -> dict[str, Any]:
        with self.opened(files) as ledger:
            if verify:
                ledger.verify()
            return contents(ledger)

    def survives(self, files: dict[str, bytes], name: str, offset: int, flip: int) -> bool:
        """Whether the flip had no effect; False if it was found out, at the latest when the ledger was verified; fails
        if somebody who does not verify it reads something else."""
        body = bytearray(files[name])
        body[offset] ^= flip
        try:
            with self.opened({**files, name: bytes(body)}) as ledger:
                assert contents(ledger) == self.expected
                ledger.verify()
                return True
        except LedgerError:
            return False


@pytest.fixture(scope="module")
def sample() -> Iterator[Sample]:
    memory = Path("/dev/shm")  # thousands of ledgers are written here; on a disk each would wait for it
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Sample(Path(name))


def test_the_untouched_files_are_read_whole(sample: Sample) -> None:
    assert set(sample.closed) == {"ledger.sqlite", "ledger.sqlite-anchor", "ledger.sqlite-order"}
    assert set(sample.crashed) == {*sample.closed, "ledger.sqlite-wal"}
    for files in (sample.closed, sample.crashed):
        assert sample.read(files, verify=True) == sample.expected
    assert [answer is None for answer in sample.expected["answers"]] == [n == 3 for n in range(len(KEYS))]


place = st.integers(0, 10**9)
flips = st.integers(1, 255)


@settings(max_examples=150, deadline=None)
@given(offset=place, flip=flips)
def test_a_flipped_byte_of_the_file(sample: Sample, offset: int, flip: int) -> None:
    body = sample.closed["ledger.sqlite"]
    sample.survives(sample.closed, "ledger.sqlite", offset % len(body), flip)


@settings(max_examples=60, deadline=None)
@given(offset=place, flip=flips)
def test_a_flipped_byte_that_means_something(sample: Sample, offset: int, flip: int) -> None:
    """The same, at bytes that are not zero: half of the file is unused space, where nothing can be found out."""
    used = np.flatnonzero(np.frombuffer(sample.closed["ledger.sqlite"], np.uint8))
    sample.survives(sample.closed, "ledger.sqlite", int(used[offset % len(used)]), flip)


@settings(max_examples=60, deadline=None)
@given(offset=place, flip=flips)
def test_a_flipped_byte_of_the_write_ahead_log(sample: Sample, offset: int, flip: int) -> None:
    """SQLite drops the commits from a damaged frame on; the anchor has seen them."""
    body = sample.crashed["ledger.sqlite-wal"]
    sample.survives(sample.crashed, "ledger.sqlite-wal", offset % len(body), flip)


def test_a_flipped_byte_of_the_anchor(sample: Sample) -> None:
    for offset in range(len(sample.closed["ledger.sqlite-anchor"])):
        assert not sample.survives(sample.closed, "ledger.sqlite-anchor", offset, 1)


@pytest.mark.heavy
def test_every_byte_of_what_matters_is_found_out(sample: Sample) -> None:
    body = sample.closed["ledger.sqlite"]
    for text in (BODY, b"\x04" * 40, b"question 7", b"0x1.3000000000000p+3", b'"id":"people"'):
        start = body.index(text)
        for offset in range(start, start + len(text)):
            assert not sample.survives(sample.closed, "ledger.sqlite", offset, 0x20)


def test_without_seals_a_changed_answer_would_go_unnoticed(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong twin: the same flip in an answer, read by a ledger that does not look at its seals."""
    body = bytearray(sample.closed["ledger.sqlite"])
    body[body.index(BODY)] ^= 1
    files = {**sample.closed, "ledger.sqlite": bytes(body)}
    with pytest.raises(LedgerError, match="damaged"):
        sample.read(files, verify=False)
    monkeypatch.setattr(Database, "_unseal", lambda self, table, name, body, seal: body)
    found = sample.read(files, verify=True)
    assert found["answers"] != sample.expected["answers"]
    assert found["records"] == sample.expected["records"]


def test_without_a_directory_a_vanished_secret_would_go_unnoticed(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrong twin: a secret whose name was changed is not found under its own name, and seals cannot tell."""
    body = bytearray(sample.closed["ledger.sqlite"])
    body[body.index(b'["secret 4"]' + b"\x04" * 40) + 9] ^= 1
    files = {**sample.closed, "ledger.sqlite": bytes(body)}
    with pytest.raises(LedgerError, match="damaged"):
        sample.read(files, verify=False)

    def unlisted(self: Database, table: str, name: str) -> bytes | None:
        rows = self.run(f"SELECT body, seal FROM {table} WHERE name = ?", (name,))
        return self._unseal(table, name, *rows[0]) if rows else None

    monkeypatch.setattr(Database, "read", unlisted)
    assert sample.read(files, verify=False)["secrets"] != sample.expected["secrets"]


@pytest.mark.parametrize("every", [pytest.param(23, marks=pytest.mark.heavy), pytest.param(1, marks=pytest.mark.soak)])
def test_the_used_bytes_of_the_file(sample: Sample, every: int) -> None:
    used = [int(n) for n in np.flatnonzero(np.frombuffer(sample.closed["ledger.sqlite"], np.uint8))[::every]]
    found_out = sum(not sample.survives(sample.closed, "ledger.sqlite", n, 1 << n % 8) for n in used)
    assert found_out > 0.9 * len(used)
