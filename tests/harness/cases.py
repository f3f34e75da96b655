"""Many small cases in one test, which names all that fail.

A case that takes a millisecond costs several as a test of its own: it is collected by every worker, set up, reported
and torn down. A fixture file, or a long list, is therefore one test.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")
HEAVY, FOR_SOAK = pytest.mark.heavy, pytest.mark.soak
SHOWN = 20
"""Most failures that are told in full; of the others there is only the number."""
FEWEST = 6
"""Examples that `make test` takes of a generated test that has so many."""
SETTINGS_OF_A_TEST = "_hypothesis_internal_use_settings"
"""Where hypothesis keeps, and its plugin for pytest finds, what a decorator has set."""


def every(
    name: str, cases: Callable[[], Iterable[T]], label: Callable[[T], str] = str, *, nth: int = 1
) -> Callable[..., Any]:
    """Run a test with every case as the argument of this name, and fail with the label and reason of each that failed.

    Guarantees: `cases` is called when the test runs, never when it is imported; no cases are a failure. Where heavy
    tests are left out only every `nth` case is taken; such a test is marked `partly`, and `make test-all` takes all.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*values: Any, **fixtures: Any) -> None:
            total, failed = 0, []
            for case in islice(cases(), 0, None, nth if QUARTER in _FEWER else 1):
                total += 1
                try:
                    test(*values, **fixtures, **{name: case})
                except (Exception, pytest.fail.Exception) as fault:
                    failed.append(f"{label(case)}\n    {type(fault).__name__}: {fault}")
            assert total > 0, "there are no cases"
            if failed:
                pytest.fail("\n".join([f"{len(failed)} of {total} cases failed:", *failed[:SHOWN]]), pytrace=False)

        signature = inspect.signature(test)
        others = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run if nth == 1 else pytest.mark.partly(run)

    return decorate


def few(cases: Iterable[Any], most: int = 1) -> list[Any]:
    """The cases of a family that takes long, for `parametrize`: the first `most` as they are; of the others the first
    is heavy, the next for `make soak`, and so on."""
    return marked(cases, lambda place, _: None if place < most else FOR_SOAK if (place - most) % 2 else HEAVY)


def marked(cases: Iterable[Any], mark: Callable[[int, Any], pytest.MarkDecorator | None]) -> list[Any]:
    """The cases of a family that takes long, each with its mark by `mark(place, case)`, if it has one."""
    found = []
    for place, case in enumerate(cases):
        when = mark(place, case)
        values = case if type(case) is tuple else (case,)
        found.append(case if when is None else pytest.param(*values, marks=when))
    return found


def mark_what_is_sampled(items: Iterable[pytest.Item]) -> None:
    """Of the cases of a test marked `sampled(n)`, every nth from the first on stays as it is, the one after every other
    of these is heavy, beginning with the first, and the others are for `make soak`."""
    seen: Counter[str] = Counter()
    for item in items:
        if (mark := item.get_closest_marker("sampled")) is not None:
            test = item.nodeid.partition("[")[0]
            if seen[test] % mark.args[0]:
                item.add_marker("heavy" if seen[test] % (2 * mark.args[0]) == 1 else "soak")
            seen[test] += 1


def mark_what_is_thinned(items: Iterable[pytest.Item]) -> None:
    """Of the tests of a file, or the cases of a test, that is marked `thinned(n)`, every nth from the first on stays as
    it is; the others are heavy.

    A test that has a mark of its own is not counted among those of its file.
    """
    seen: Counter[str] = Counter()
    for item in items:
        node, mark = next(item.iter_markers_with_node("thinned"), (item, None))
        if mark is not None and not any(item.get_closest_marker(other) for other in ("heavy", "soak", "sampled")):
            family = node.nodeid.partition("[")[0]
            if seen[family] % mark.args[0]:
                item.add_marker("heavy")
            seen[family] += 1


QUARTER, HALF = 4, 2
"""Of the examples of a generated test: what `make test` takes, and CI, whose examples are the same in every run."""

_FEWER: list[int] = []
"""Empty where all examples are taken; else by what their number is divided."""


def examples(most: int) -> int:
    """How many examples are taken of what is generated within a test, which is then marked `hypothesis` by hand."""
    return max(most // _FEWER[-1], min(most, FEWEST)) if _FEWER else most


def take_fewer_examples(items: Iterable[pytest.Item], part: int) -> None:
    """A part of the examples of every generated test, but `FEWEST` where it has them."""
    _FEWER.append(part)
    for test in {item.obj for item in items if getattr(item.obj, "is_hypothesis_test", False)}:  # type: ignore[attr-defined]
        whole = getattr(test, SETTINGS_OF_A_TEST, settings.default)
        setattr(test, SETTINGS_OF_A_TEST, settings(whole, max_examples=examples(whole.max_examples)))
