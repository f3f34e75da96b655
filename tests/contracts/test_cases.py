"""Tests of many cases fail with all that failed, ask for fixtures as others do, and never pass for want of cases."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import cases
from harness.cases import QUARTER, every, examples, few, mark_what_is_sampled, mark_what_is_thinned, take_fewer_examples
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
    monkeypatch.setattr(cases, "_FEWER", [QUARTER])
    some()
    assert seen == [1, 2, 3, 4, 1, 4]


def test_few_cases_stay_and_the_others_are_heavy_or_for_soak() -> None:
    first, second, pair, last = few(["a", "b", (1, 2), "d"])
    assert first == "a"
    assert (second.values, pair.values, last.values) == (("b",), (1, 2), ("d",))
    assert [mark.name for case in (second, pair, last) for mark in case.marks] == ["heavy", "soak", "heavy"]


class Item:
    """What the marks look at."""

    def __init__(self, nodeid: str, *marks: pytest.Mark, file: Item | None = None) -> None:
        self.nodeid, self.marks, self.file, self.when = nodeid, marks, file, "always"

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((mark for mark in self.marks if mark.name == name), None)

    def iter_markers_with_node(self, name: str) -> Iterator[tuple[Item, pytest.Mark]]:
        yield from ((self, mark) for mark in self.marks if mark.name == name)
        if self.file is not None:
            yield from self.file.iter_markers_with_node(name)

    def add_marker(self, name: str) -> None:
        self.when = name


def test_of_a_sampled_test_every_nth_case_stays() -> None:
    third = pytest.mark.sampled(3).mark
    items = [Item(f"test_a[{number}]", third) for number in range(5)] + [Item("test_b[0]", third), Item("test_c[0]")]
    mark_what_is_sampled(items)  # type: ignore[arg-type]
    assert [item.when for item in items] == ["always", "heavy", "soak", "always", "soak", "always", "always"]


def test_of_a_thinned_file_every_nth_test_stays_beside_those_with_marks_of_their_own() -> None:
    second, heavy = pytest.mark.thinned(2).mark, pytest.mark.heavy.mark
    files = [Item("a.py", second), Item("b.py", second), Item("c.py")]
    items = [Item(f"a.py::test_{name}", *([heavy] if name == "b" else []), file=files[0]) for name in "abcde"]
    items += [Item("b.py::test_a", file=files[1]), *(Item(f"c.py::test_{name}", file=files[2]) for name in "ab")]
    mark_what_is_thinned(items)  # type: ignore[arg-type]
    assert [item.when for item in items] == ["always", "always", "heavy", "always", "heavy", *["always"] * 3]


def test_of_a_thinned_test_every_nth_case_stays() -> None:
    second, third = pytest.mark.thinned(2).mark, pytest.mark.thinned(3).mark
    file = Item("a.py", second)
    items = [Item(f"a.py::test_a[{number}]", third, file=file) for number in range(5)]
    items += [Item(f"a.py::test_{name}", file=file) for name in "bc"]
    mark_what_is_thinned(items)  # type: ignore[arg-type]
    assert [item.when for item in items] == ["always", "heavy", "heavy", "always", "heavy", "always", "heavy"]


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

    class Generated:
        def __init__(self, obj: object) -> None:
            self.obj = obj

    monkeypatch.setattr(cases, "_FEWER", [])
    assert (examples(400), examples(4)) == (400, 4)
    take_fewer_examples([Generated(many), Generated(many), Generated(few_enough), Generated(len)], QUARTER)  # type: ignore[list-item]
    many()
    assert len(seen) == 100
    few_enough()
    assert len(seen) == 106
    assert (examples(400), examples(12), examples(4)) == (100, 6, 4)


def test_the_harness_is_loaded_once() -> None:
    """Under a second name it would be a second module, which does not know that heavy tests are left out."""
    files = Path(__file__).parents[1].rglob("*.py")
    assert [path.name for path in files if "from tests." + "harness" in path.read_text(encoding="utf-8")] == []


def test_a_thread_that_goes_on_is_found_and_one_that_ends_is_not() -> None:
    known, end = threading.enumerate(), threading.Event()
    threads = [threading.Thread(target=end.wait, name="goes on"), threading.Thread(target=end.is_set, name="ends")]
    for thread in threads:
        thread.start()
    threads[1].join()
    assert left_running(known, 0.01) == ["goes on"]
    end.set()
    assert left_running(known, PATIENCE) == []
