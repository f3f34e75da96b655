"""Answers and refusals leave at whole steps."""

from __future__ import annotations

import time

import pytest

from bursar.pace import paced


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    return waits


def test_the_wait_fills_the_step(monkeypatch: pytest.MonkeyPatch, slept: list[float]) -> None:
    ticks = iter([10.0, 10.7])
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    with paced(0.5):
        pass
    assert slept == [pytest.approx(0.3)]


def test_errors_wait_as_well(slept: list[float]) -> None:
    with pytest.raises(KeyError), paced(60.0):
        raise KeyError
    assert len(slept) == 1
    assert 59 < slept[0] <= 60


def test_no_pace_no_wait(slept: list[float]) -> None:
    with paced(0.0):
        pass
    assert slept == []
