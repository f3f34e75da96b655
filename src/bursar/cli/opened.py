"""Data sets and files as commands open them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.report.text import queue as show_queue
from bursar.errors import LedgerError, QueryError

if TYPE_CHECKING:
    from bursar import Bursar

MOST_STDIN = 2**20


def opened(data: Path, analyst: str = "owner", expect: str | None = None) -> Bursar:
    """The data set of a config; its ledger must be there."""
    import bursar
    from bursar.config import load

    ledger = load(data).ledger_path
    try:
        found = ledger.exists()
    except OSError as fault:
        raise LedgerError(f"the ledger {ledger} cannot be opened: {fault.strerror}") from None
    if not found:
        raise LedgerError(
            f"{data} has no ledger yet, so there is no budget to spend\n"
            f"try: if you own the data, bursar create -d {data}; otherwise ask their owner for the place of the ledger"
        )
    made = bursar.open(data, analyst=analyst, expect=None if expect is None else _head(expect))
    made.queue.tell = show_queue.waiting
    return made


def _head(text: str) -> tuple[int, str]:
    records, colon, head = text.partition(":")
    if not colon or not records.isascii() or not records.isdigit() or len(records) > 18:
        raise LedgerError(f"--expect takes the line that bursar verify printed, RECORDS:HASH, not {text!r}")
    return int(records), head


def read_file(name: str) -> str:
    """The text of a file, or of standard input for -."""
    if name == "-":
        return read(name)
    try:
        with Path(name).open(encoding="utf-8") as file:
            return file.read(MOST_STDIN)
    except (OSError, ValueError):
        raise QueryError(f"the file {name!r} cannot be read as text") from None


def read(sql: str) -> str:
    """A text, or standard input for -."""
    if sql != "-":
        return sql
    return "" if sys.stdin is None else sys.stdin.read(MOST_STDIN)
