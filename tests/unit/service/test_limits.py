"""Limits: coins that come back with time, questions at a time, failed log-ins by address."""

from __future__ import annotations

import pytest

from bursar.service.request_limits import MOST_KEPT, Limits, LimitSettings, TooMuch


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_so_many_requests_per_minute_and_token() -> None:
    clock = Clock()
    limits = Limits(LimitSettings(requests=60), clock)

    def ask(token: str) -> bool:
        try:
            with limits.request(token):
                return True
        except TooMuch as much:
            return much.seconds != 1

    assert [ask("a") for _ in range(61)] == [True] * 60 + [False]
    assert ask("b")
    clock.now += 1
    assert [ask("a"), ask("a")] == [True, False]
    clock.now += 3600
    assert [ask("a") for _ in range(61)] == [True] * 60 + [False]


def test_so_many_at_a_time() -> None:
    limits = Limits(LimitSettings(requests=0, concurrent=2))
    with limits.request("a"), limits.request("a"):
        with pytest.raises(TooMuch, match="2 requests at a time"), limits.request("a"):
            pass
        with limits.request("b"):
            pass
    with limits.request("a"), limits.request("a"):
        pass


def test_failed_log_ins_by_address() -> None:
    clock = Clock()
    limits = Limits(LimitSettings(failures=3), clock)
    for _ in range(3):
        limits.failed("10.0.0.1")
    with pytest.raises(TooMuch):
        limits.failed("10.0.0.1")
    limits.failed("10.0.0.2")
    clock.now += 21
    limits.failed("10.0.0.1")


def test_no_limit_and_no_end_of_memory() -> None:
    free = Limits(LimitSettings(requests=0, concurrent=0, failures=0))
    for _ in range(1_000):
        free.failed("x")
        with free.request("x"), free.request("x"):
            pass
    limits = Limits(LimitSettings(failures=1))
    for place in range(MOST_KEPT + 100):
        limits.failed(str(place))
    limits.failed("0")  # forgotten
    with pytest.raises(TooMuch):
        limits.failed(str(MOST_KEPT + 99))
