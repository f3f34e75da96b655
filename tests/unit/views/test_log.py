"""The log as a process keeps it: the same records as the ledger gives, whatever was read before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.errors import LedgerError
from bursar.views.log import SharedLog


class Entry:
    def __init__(self, position: int) -> None:
        self.position = position


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=30))
def test_everybody_sees_what_the_ledger_has(steps: list[tuple[int, int]]) -> None:
    ledger: list[Entry] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bursar.views.log.REMEMBERED", 4)
        seen = SharedLog(lambda after: ledger[after:])  # type: ignore[arg-type,return-value]
        for more, after in steps:
            ledger += [Entry(len(ledger) + 1 + i) for i in range(more)]
            assert [*seen(after)] == ledger[after:]


def test_each_record_is_decoded_once() -> None:
    ledger, asked = [Entry(1), Entry(2)], []

    def records(after: int) -> list[Entry]:
        asked.append(after)
        return ledger[after:]

    seen = SharedLog(records)  # type: ignore[arg-type]
    first = seen(0)
    ledger.append(Entry(3))
    assert [*seen(0)] == [*first, ledger[2]]
    assert [*seen(2)] == [ledger[2]]
    assert asked == [0, 2, 3]
    assert len(first) == 2, "what was handed out does not change"


def test_a_ledger_that_is_closed_is_noticed() -> None:
    answers: list[list[Entry]] = [[Entry(1)]]

    def records(after: int) -> list[Entry]:
        if not answers:
            raise LedgerError("the ledger is closed")
        return answers.pop()

    seen = SharedLog(records)  # type: ignore[arg-type]
    assert len(seen(0)) == 1
    with pytest.raises(LedgerError):
        seen(0)
