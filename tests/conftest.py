"""What all tests share.

Where BURSAR_NO_SKIPS is set, as it is in CI, no test may be skipped and generated examples are the same in every run,
as is what `random` picks, so that a change lands or not for what it is. Elsewhere every run looks at new examples. No
example has a deadline: how long one takes, or takes to be made, tells how busy the machine is. Where heavy tests are
left out, as in `make test`, a generated test takes a quarter of its examples, and in CI half of them.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can say: from harness... import ...

from harness.cases import HALF, QUARTER, mark_what_is_sampled, mark_what_is_thinned, take_fewer_examples
from harness.patience import PATIENCE, left_running

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background job; what tests start would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "bursar",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="BURSAR_NO_SKIPS" in os.environ,
)
settings.register_profile(
    "unshrunk", settings.get_profile("bursar"), phases=(Phase.explicit, Phase.reuse, Phase.generate)
)  # for tools/mutants.py, which asks whether a test fails, not for the shortest example
settings.load_profile("bursar")


LEFT_OUT = "(heavy or hypothesis or partly) and not soak"
"""The tests of `make test-all`."""

MAKES_HEAVY = ("mark.heavy", "HEAVY", "few(", "sampled(", "thinned(", "@given(", "nth=")
"""What a file has in it of which `make test-all` runs something: a mark, what sets it, or generated examples."""


def pytest_collection() -> None:
    gc.disable()  # all that is made until the end of the collection stays, and would be looked through again and again


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_what_is_sampled(items)
    mark_what_is_thinned(items)
    if "not heavy" in config.option.markexpr:
        take_fewer_examples(items, QUARTER)
    elif "BURSAR_NO_SKIPS" in os.environ:
        take_fewer_examples(items, HALF)


def pytest_collection_finish() -> None:
    """The libraries are loaded: tests that run side by side would only make BLAS threads wait for each other.

    Processes that tests start are not limited, so that what the package itself does about threads is tried. What was
    collected stays until the end, and is not looked through again, here or in a process that is forked.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    threadpool_limits(1, user_api="blas")

    _OWN_THREADS.update(threading.enumerate())


_OWN_THREADS: set[threading.Thread] = set()
"""Those of pytest and its workers."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None):
    """No thread outlives its file: one that turns in circles would slow down all tests after it, and nobody would know.

    They wait for each other's turn a hundred times a second, so that the others take many times as long.
    """
    result = yield
    if nextitem is None or nextitem.path != item.path:
        assert left_running(_OWN_THREADS, PATIENCE) == [], f"threads still run after all tests of {item.path.name}"
    return result


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # or what is left at the end would be told to have leaked


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where only heavy tests run, files that have none are not even read: most of the time to collect goes there."""
    if config.option.markexpr != LEFT_OUT or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return None if any(word in text for word in MAKES_HEAVY) else True


def pytest_runtest_setup(item: pytest.Item) -> None:
    if "BURSAR_NO_SKIPS" in os.environ:
        random.seed(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    report = yield
    if report.skipped and "BURSAR_NO_SKIPS" in os.environ:
        report.outcome = "failed"
        report.longrepr = f"a file is skipped where nothing may be: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    report = yield
    if report.skipped and os.environ.get("BURSAR_NO_SKIPS") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be skipped: {report.longrepr}"
    return report
