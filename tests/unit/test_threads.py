"""Our own linear algebra runs in one thread, and the user's in as many as before."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

from bursar.core.budget import Budget
from bursar.core.domain import Dates, Domain, IntegerRange, Period
from bursar.threads import one_thread
from harness.small import config, engine


def now() -> set[int]:
    """How many threads the BLAS libraries have."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two() -> Iterator[None]:
    """The user's own setting."""
    with threadpool_limits(2, user_api="blas"):
        assert now() == {2}
        yield
        assert now() == {2}


def test_one_inside_and_as_before_outside() -> None:
    with one_thread():
        assert now() == {1}
        with one_thread():
            assert now() == {1}
        assert now() == {1}
    assert now() == {2}


def test_it_is_put_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert now() == {2}


def test_who_leaves_first_changes_nothing_for_others() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_thread():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        entered.wait()
    assert now() == {1}
    leave.set()
    thread.join()
    assert now() == {2}


LATE = """
import numpy
from threadpoolctl import threadpool_info
from bursar.threads import one_thread
import sys
assert "scipy.linalg" not in sys.modules
counts = lambda: [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
with one_thread():
    before = counts()
    import scipy.linalg
    with one_thread():
        inside = counts()
print(before, inside, counts())
"""


def test_a_library_that_is_loaded_late_is_limited_too() -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    ran = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True, env=environment)
    before, inside, after = (part.strip("[]\n").split(", ") for part in ran.stdout.split("] ["))
    assert set(before) == set(inside) == {"1"}
    assert set(after) == {"2"}
    assert len(after) == len(inside)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The threads that each factorisation had."""
    found: list[set[int]] = []

    def watched(function: Any) -> Any:
        def call(*args: Any, **rest: Any) -> Any:
            found.append(now())
            return function(*args, **rest)

        return call

    for module, names in (
        (np.linalg, ("eigh", "solve", "lstsq", "cholesky", "inv", "pinv", "qr", "svd")),
        (scipy.linalg, ("eigh", "cholesky", "cho_factor", "cho_solve", "pinv")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, watched(getattr(module, name)))
    return found


def test_the_watch_sees_two_threads_outside(seen: list[set[int]]) -> None:
    scipy.linalg.eigh(np.eye(3))
    assert seen == [{2}]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people WHERE day < '2023-02-05' AND delay > 3",
        "SELECT DATE_TRUNC('month', day) AS m, AVG(delay) FROM people GROUP BY m",
        "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) FROM people GROUP BY ROLLUP (m)",
    ],
)
def test_planning_and_answering_take_one(sql: str, seen: list[set[int]]) -> None:
    days = Dates(name="day", first=date(2023, 1, 1), last=date(2023, 3, 31), by=Period("day"))
    domain = Domain((days, IntegerRange(name="delay", lower=-3, upper=8)))
    table = np.ones(domain.sizes(domain.names), np.int64)
    door = engine(table=table, settings=config(domain=domain, budget=Budget.of(epsilon=5.0, delta=1e-9)))
    door.explain(sql, within=200)
    door.query(sql, within=200)
    door.query(sql, within=150)
    assert set(map(frozenset, seen)) <= {frozenset({1})}
    assert seen
