"""What tests of ledgers put into them, from one process or several."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bursar.core.accounting import Measured, Versioned
from bursar.core.ledger import Claim, Hold, Ledger, Purpose, Transaction
from bursar.core.noise.law import Noise, NoiseKind
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import Busy


def note(transaction: Transaction, text: str = "p") -> int:
    """Append one small record; gives its position."""
    values = np.zeros(0, np.int64)
    return transaction.append(
        analyst="ann", purpose=Purpose(text, "test"), event=Versioned(version=1), values=values
    ).position


def measure(transaction: Transaction, rows: int = 4) -> int:
    strategy = Product((Mask(("age",), (rows,), Steps.identity(rows)),))
    event = Measured(strategy=strategy, noise=Noise(kind=NoiseKind.LAPLACE, scale=2.0), version=1)
    return transaction.append(analyst="ann", purpose=Purpose("p", "test"), event=event, values=np.arange(rows)).position


def answer(transaction: Transaction, key: str, body: bytes) -> bytes:
    claim = Claim(analyst="ann", key=key, question="q", fence=transaction.next_fence(), expires=1e12)
    stored = transaction.claim(claim, now=time.time())
    return transaction.answer(claim, body) if stored is None else stored


def everything(transaction: Transaction) -> int:
    answer(transaction, "k", b"body")
    transaction.put_secret("s", b"1")
    transaction.put_hold(Hold(fence=9, analyst="ann", expires=1e12, events=()), replace=False)
    return measure(transaction)


def in_child(action: Callable[[], Any]) -> None:
    """Run the action in a forked process; fails the test if it raised there."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def race(ledger: Ledger, key: str, name: bytes) -> bytes:
    """Answer a key unless somebody else does, and pay for it once; what is stored."""
    fence = ledger.commit(lambda t: t.next_fence())
    claim = Claim(analyst="ann", key=key, question="q", fence=fence, expires=ledger.now() + 60)
    while True:
        try:
            stored = ledger.commit(lambda t: t.claim(claim, ledger.now()))
        except Busy:
            time.sleep(0.001)  # the other one is at work
            continue
        if stored is not None:
            return stored
        ledger.commit(note)
        return ledger.commit(lambda t: t.answer(claim, name))


def read_all(reader: int) -> bytes:
    with open(reader, "rb") as stream:
        return stream.read()


def released_until_killed(opened: Callable[[], Ledger], seconds: float) -> list[int]:
    """The positions that a process has told of, which commits to a ledger until it is killed in the midst of it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ledger = opened()
            while True:
                os.write(writer, ledger.commit(measure).to_bytes(8, "little"))
        finally:
            os._exit(1)
    os.close(writer)
    told = os.read(reader, 8)  # it is at work now
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    told += read_all(reader)
    return [int.from_bytes(told[i : i + 8], "little") for i in range(0, len(told), 8)]


def from_two_processes(work: Callable[[str], bytes]) -> tuple[bytes, bytes]:
    """What the work gives in each of two processes that do it at the same time, under the names one and two."""
    readers = []
    for name in ("one", "two"):
        reader, writer = os.pipe()
        readers.append(reader)
        if os.fork() == 0:
            try:
                os.write(writer, work(name))
            finally:
                os._exit(0)
        os.close(writer)
    first, second = (read_all(reader) for reader in readers)
    for _ in readers:
        os.wait()
    return first, second
