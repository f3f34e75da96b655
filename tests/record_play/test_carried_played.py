"""Record-play of a change of config: with the answers given, nothing that is seen under the old config, at the
hand-over or under the new one tells whether somebody is there."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bursar.config import load
from bursar.core.accounting import Carried
from bursar.core.extensions import carried
from bursar.core.extensions.curator import declare_version
from bursar.core.kernel import Kernel
from bursar.core.ledger import MemoryLedger
from bursar.core.ledger.record_codec import encode_record
from bursar.errors import BursarError
from bursar.planner.goals import Wanted
from bursar.session import Bursar
from bursar.sources import source_of
from harness.clock import same_clock
from harness.configs import towns
from harness.given_answers import OneKey, Played, given_answers

CONFIG = towns(epsilon=3, unit='{ column = "person" }\nmax_contributions = 2') + '[columns.sex]\nvalues = ["F", "M"]\n'
NEW = CONFIG.replace("max_contributions = 2", "max_contributions = 3") + '[columns.city]\nvalues = ["Oslo", "Rome"]\n'
ROWS = [("ann", "Rome", "F"), ("bob", "Oslo", "M"), ("bob", "Rome", "M"), ("cyd", None, "F"), ("dan", "Kiel", None)]
EVE = [("eve", "Rome", "F"), ("eve", "Oslo", "F"), ("eve", "Rome", "M")]
BEFORE = (
    "SELECT COUNT(*) FROM people WITH ERROR 20",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ERROR 25",
)
AFTER = ("SELECT city, sex, COUNT(*) FROM people GROUP BY city, sex WITH ERROR 30", BEFORE[0])


def opened(folder: Path, text: str, before: Carried | None) -> Bursar:
    (folder / "bursar.toml").write_text(text)
    config = load(folder / "bursar.toml")
    ledger, source = MemoryLedger(config.charter, carried=before), source_of(config)
    declare_version(ledger, source, OneKey())
    return Bursar(config, ledger, open_source=source, randomness=OneKey())


def play(folder: Path, there: bool) -> list[object]:
    """All that is seen."""
    rows = [*ROWS, *(EVE if there else [])]
    pd.DataFrame(rows, columns=["person", "city", "sex"]).to_csv(folder / "towns.csv", index=False)
    seen: list[object] = []

    def ask(db: Bursar, questions: tuple[str, ...]) -> None:
        for question in questions:
            try:
                seen.append(str(db.run(question, Wanted())))
            except BursarError as refusal:
                seen.append(str(refusal))
            seen.append((db.budget(), db.log()))

    with same_clock(), given_answers(Played(), 0):
        old = opened(folder, CONFIG, None)
        ask(old, BEFORE)
        (folder / "bursar.toml").write_text(NEW)
        config = load(folder / "bursar.toml")
        event = old.kernel.hand_over(config.charter, config.budget)
        new = opened(folder, NEW, event)
        ask(new, AFTER)
        ask(old, BEFORE)
        ask(old, ("SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ERROR 5",))
        seen += [encode_record(record) for db in (old, new) for record in db.ledger.records()]
    return seen


def differences(folder: Path) -> list[int]:
    left, right = (play(folder, there) for there in (False, True))
    return [place for place, (a, b) in enumerate(zip_longest(left, right)) if a != b]


def test_nothing_tells_whether_somebody_is_there(tmp_path: Path) -> None:
    assert differences(tmp_path) == []
    assert any("is left" in str(seen) for seen in play(tmp_path, True))  # the old ledger refuses


def test_a_hand_over_that_looks_at_the_data_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed = carried.hand_over

    def leaking(kernel: Kernel, *facts: Any, **more: Any) -> Carried:
        event = handed(kernel, *facts, **more)
        return replace(event, units=event.units + int(kernel._opened()[1].counts(()).sum()))

    monkeypatch.setattr(Kernel, "hand_over", leaking)
    assert differences(tmp_path)
