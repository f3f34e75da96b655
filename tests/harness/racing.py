"""Many clients that ask one question for a budget that is enough for some of them."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from bursar.errors import BudgetError
from bursar.session import Bursar

TEXT = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
GRANTS = 200
PRICE = 1 / 512
"""Of one measurement by the preset `fixed`: both sexes have a row, and nobody is in both."""

EPSILON = GRANTS * PRICE
CLIENTS = 64


def client(bursar: Bursar, name: str, requests: int) -> Counter[str]:
    """Asks so many times, each time under a new key; how often it was granted and refused."""
    tally: Counter[str] = Counter()
    for number in range(requests):
        try:
            answer = bursar.query(TEXT, key=f"{name} {number}", epsilon=1)
            tally["granted"] += 1
            assert answer.charge > 0
        except BudgetError:
            tally["refused"] += 1
    return tally


def clients(bursar: Bursar, name: str, threads: int, requests: int) -> Counter[str]:
    with ThreadPoolExecutor(threads) as pool:
        tallies = pool.map(lambda thread: client(bursar, f"{name} {thread}", requests), range(threads))
        return sum(tallies, Counter())
