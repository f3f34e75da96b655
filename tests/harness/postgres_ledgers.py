"""Ledgers in the PostgreSQL server that tests share, or in one of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from bursar.core.ledger import PostgresLedger, PostgresPlace
from harness.servers import shared_postgresql

KEY = bytes(range(32))
_names = count(1)


def new_ledger(folder: Path, charter: Mapping[str, object], **facts: Any) -> PostgresLedger:
    """A ledger in a schema of its own, with its anchor in a folder."""
    given = {
        "url": facts.pop("url", None) or shared_postgresql().url(),
        "schema": f"ledger {os.getpid()} {next(_names)}",
    }
    carried = facts.pop("carried", None)
    place = PostgresPlace(anchor=folder / "ledger-anchor", key=KEY, **given, **facts)
    return PostgresLedger.create(place, charter, carried=carried)


def reopened(
    ledger: PostgresLedger,
    folder: Path,
    charter: Mapping[str, object] | None = None,
    expect: tuple[int, str] | None = None,
    **facts: Any,
) -> PostgresLedger:
    """The same ledger as a server with this folder sees it."""
    place = replace(ledger.place, anchor=folder / "ledger-anchor", **facts)
    return PostgresLedger(place, charter, expect=expect)
