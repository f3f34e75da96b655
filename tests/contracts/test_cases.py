"""Tests of many cases fail with all that failed, ask for fixtures as others do, and never pass for want of cases."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import cases
from harness.cases import every, examples, few, mark_what_is_sampled, take_fewer_examples
from harness.patience import PATIENCE, left_running


@every("number", lambda: [1, 2, 3])
def test_fixtures_are_given(number: int, tmp_path: Path) -> None:
    assert number > 0
    assert tmp_path.is_dir()


def test_all_failures_are_told() -> None:
    @every("number", lambda: [1, 2, 3, 4], lambda number: f"case {number}")
    def odd(number: int) -> None:
        if number == 4:
            pytest.fail("four")
        assert number % 2 == 1

    with pytest.raises(pytest.fail.Exception) as failed:
        odd()
    told = str(failed.value)
    assert told.startswith("2 of 4 cases failed:")
    assert "case 2" in told
    assert "four" in told
    assert "case 1" not in told


def test_no_cases_are_a_failure() -> None:
    with pytest.raises(AssertionError, match="there are no cases"):
        every("number", list)(lambda number: None)()


def test_of_a_long_file_every_nth_case_is_taken_where_heavy_tests_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    @every("number", lambda: [1, 2, 3, 4], nth=3)
    def some(number: int) -> None:
        seen.append(number)

    assert [mark.name for mark in some.pytestmark] == ["partly"]  # so that `make test-all` takes all of them
    monkeypatch.setattr(cases, "_FEWER", [])
    some()
    monkeypatch.setattr(cases, "_FEWER", [True])
    some()
    assert seen == [1, 2, 3, 4, 1, 4]


def test_few_cases_stay_and_the_others_are_heavy() -> None:
    first, second, pair = few(["a", "b", (1, 2)])
    assert first == "a"
    assert (second.values, pair.values) == (("b",), (1, 2))
    assert all(mark.name == "heavy" for case in (second, pair) for mark in case.marks)


def test_of_a_sampled_test_every_nth_case_stays() -> None:
    class Item:
        def __init__(self, nodeid: str, *marks: pytest.Mark) -> None:
            self.nodeid, self.marks, self.when = nodeid, marks, "always"

        def get_closest_marker(self, name: str) -> pytest.Mark | None:
            return next((mark for mark in self.marks if mark.name == name), None)

        def add_marker(self, name: str) -> None:
            self.when = name

    third = pytest.mark.sampled(3).mark
    items = [Item(f"test_a[{number}]", third) for number in range(5)] + [Item("test_b[0]", third), Item("test_c[0]")]
    mark_what_is_sampled(items)  # type: ignore[arg-type]
    assert [item.when for item in items] == ["always", "heavy", "soak", "always", "heavy", "always", "always"]


def test_a_part_of_the_examples_is_taken_once_for_all_cases_of_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    @settings(max_examples=400)
    @given(st.integers())
    def many(number: int) -> None:
        seen.append(number)

    @settings(max_examples=12)
    @given(st.integers())
    def few_enough(number: int) -> None:
        seen.append(number)

    class Item:
        def __init__(self, obj: object) -> None:
            self.obj = obj

    monkeypatch.setattr(cases, "_FEWER", [])
    assert (examples(400), examples(4)) == (400, 4)
    take_fewer_examples([Item(many), Item(many), Item(few_enough), Item(len)])  # type: ignore[list-item]
    many()
    assert len(seen) == 100
    few_enough()
    assert len(seen) == 106
    assert (examples(400), examples(12), examples(4)) == (100, 6, 4)


def test_a_thread_that_goes_on_is_found_and_one_that_ends_is_not() -> None:
    known, end = threading.enumerate(), threading.Event()
    threads = [threading.Thread(target=end.wait, name="goes on"), threading.Thread(target=end.is_set, name="ends")]
    for thread in threads:
        thread.start()
    threads[1].join()
    assert left_running(known, 0.01) == ["goes on"]
    end.set()
    assert left_running(known, PATIENCE) == []
