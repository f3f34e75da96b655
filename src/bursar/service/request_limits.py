"""How much anybody may ask of a server: requests per minute, questions at a time, failed log-ins, sizes.

Used by all doors of a process, in its one event loop. Where a server has several processes, each has its part.
"""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

MOST_KEPT = 10_000
"""Tokens and addresses that are remembered; those that have not been heard of for longest are forgotten first."""


@dataclass(frozen=True, kw_only=True)
class LimitSettings:
    """What a server allows, per token unless said otherwise; 0 is no limit."""

    requests: int = 1200  # per minute
    concurrent: int = 8  # requests that run at a time
    failures: int = 10  # log-ins per minute that fail, per address
    longest_sql: int = 20_000  # characters
    largest_body: int = 2**20  # bytes
    body_seconds: float = 10.0  # in which a request must have been sent
    threads: int = 16  # for questions, in a process

    def __post_init__(self) -> None:
        assert min(self.requests, self.concurrent, self.failures) >= 0


@dataclass
class TooMuch(Exception):
    """Somebody asks more than is allowed; in so many seconds they may again."""

    text: str
    seconds: int


class Limits:
    """What has been asked, and by whom. Not for threads: it is looked at in the event loop alone."""

    def __init__(self, settings: LimitSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._requests = _Buckets(settings.requests, clock)
        self._failures = _Buckets(settings.failures, clock)
        self._running: Counter[str] = Counter()

    @contextmanager
    def request(self, token: str) -> Iterator[None]:
        """A request of the holder of a token, as long as it runs. Raises TooMuch."""
        if (wait := self._requests.take(token)) > 0:
            raise TooMuch(f"at most {self.settings.requests} requests per minute", wait)
        if 0 < self.settings.concurrent <= self._running[token]:
            raise TooMuch(f"at most {self.settings.concurrent} requests at a time", 1)
        self._running[token] += 1
        try:
            yield
        finally:
            self._running[token] -= 1
            if not self._running[token]:
                del self._running[token]

    def failed(self, address: str) -> None:
        """A log-in from an address that has failed; raises TooMuch where there were many.

        A token that is good is let in from any address: a forgotten script must not lock out its neighbours.
        """
        if (wait := self._failures.take(address)) > 0:
            raise TooMuch("too many log-ins from your address have failed", wait)


class _Buckets:
    """For everybody a bucket of `size` coins, which is full again after a minute."""

    def __init__(self, size: int, clock: Callable[[], float]) -> None:
        self._size, self._clock = size, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> int:
        """Take a coin: 0, or after how many seconds there is one."""
        if not self._size:
            return 0
        now = self._clock()
        left, at = self._left.pop(name, (float(self._size), now))
        left = min(self._size, left + (now - at) * self._size / 60)
        taken = left >= 1
        self._left[name] = (left - 1 if taken else left, now)
        if len(self._left) > MOST_KEPT:
            self._left.popitem(last=False)
        return 0 if taken else math.ceil((1 - left) * 60 / self._size)
