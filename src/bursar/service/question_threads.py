"""Where the questions of one door are answered: what was asked before does not wait behind what has to be measured."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

MOST_KNOWN = 10_000
"""Questions that are remembered as answered; those that were not asked for longest are forgotten first."""

SWITCH_SECONDS = 0.001
"""For how long a thread may compute while others wait for the interpreter. The event loop lets it go at every look at
a socket, so that with Python's own 5 ms a request would wait that long several times for somebody else's plan."""

T = TypeVar("T")


class QuestionThreads:
    """Two pools, each with half of the threads, so that new questions can never take all of them.

    A question that was answered before is almost always free: its rows are in the log. It goes to the first pool.
    """

    def __init__(self, threads: int) -> None:
        half = max(threads // 2, 1)
        self._again = ThreadPoolExecutor(half, "bursar-again")
        self._new = ThreadPoolExecutor(max(threads - half, 1), "bursar-new")
        self._known: OrderedDict[Hashable, None] = OrderedDict()

    def knows(self, question: Hashable) -> bool:
        """Whether it was answered before. Looked at in the event loop alone, as `remember`."""
        if question in self._known:
            self._known.move_to_end(question)
            return True
        return False

    def remember(self, question: Hashable) -> None:
        """A question was answered."""
        self._known[question] = None
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def run(self, work: Callable[[], T], *, again: bool) -> asyncio.Future[T]:
        """Do what blocks; `again` where it is about a question that was answered before."""
        return asyncio.get_running_loop().run_in_executor(self._again if again else self._new, work)

    def close(self) -> None:
        """Wait for what runs."""
        for pool in (self._again, self._new):
            pool.shutdown(wait=True)
