"""A class is what `dataclasses` would have made of it, from its first instance on, whoever looks at it first."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Any

import pytest

from bursar.goal import Goal, GoalKind
from bursar.lazy_dataclass import dataclass

Decorator = Callable[..., Callable[[type], type]]


def made_by(decorator: Any) -> dict[str, type]:
    """Classes of all shapes that the project has."""

    @decorator(frozen=True, kw_only=True)
    class Point:
        """A point."""

        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list, compare=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x is below 0")

        @cached_property
        def total(self) -> int:
            return self.x + self.y

    @decorator(frozen=True, kw_only=True)
    class Named(Point):
        name: str = "no name"

    class Undecorated(Named):
        def doubled(self) -> int:
            return 2 * self.x  # type: ignore[no-any-return, attr-defined]

    @decorator(frozen=True, eq=False)
    class Same:
        parts: tuple[int, ...]

    @decorator
    class Counter:
        steps: int = 0
        kept: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    class Shape(ABC):
        @abstractmethod
        def area(self) -> int: ...

    @decorator(frozen=True)
    class Square(Shape):
        side: int

        def area(self) -> int:
            return self.side**2

        def __repr__(self) -> str:
            return f"{self.side} squared"

    @decorator
    class Written:
        x: int

        def __init__(self, twice: int) -> None:
            self.x = twice // 2

    return {c.__name__: c for c in (Point, Named, Undecorated, Same, Counter, Square, Written)}


def told(act: Callable[[], object]) -> object:
    try:
        return act()
    except Exception as error:
        return type(error), str(error)


def behaviour(classes: dict[str, Any]) -> list[object]:
    """What can be seen of the classes and their instances."""
    point, named, undecorated, same, counter, square, written = classes.values()
    first, second = point(x=1), point(x=1, tags=["a"])
    return [
        *(repr(first), repr(named(x=1, y=3)), repr(counter(3)), repr(square(3)), repr(same((1, 2)))),
        *(first == second, first == point(x=2), first == named(x=1), told(lambda: hash(first) == hash(second))),
        *(same((1,)) == same((1,)), counter(3) == counter(3), told(lambda: hash(counter(3))), written(8).x),
        *(repr(replace(named(x=1), name="b")), undecorated(x=4).doubled(), first.total, square(3).area()),
        *(told(lambda: point(1)), told(lambda: point()), told(lambda: point(x=1, z=3)), told(lambda: point(x=-1))),
        *(
            told(lambda: setattr(first, "x", 3)),
            told(lambda: setattr(first, "z", 3)),
            told(lambda: delattr(first, "x")),
        ),
        *([(f.name, f.compare, f.kw_only) for f in fields(c)] for c in (point, named, undecorated, counter)),
        *(is_dataclass(c) for c in classes.values()),
        *(point.__doc__, point.__init__.__qualname__, named.__match_args__, square.__match_args__),
    ]


def test_it_behaves_as_a_dataclass_of_the_standard_library() -> None:
    assert behaviour(made_by(dataclass)) == behaviour(made_by(dataclasses.dataclass))


def test_the_behaviour_that_is_compared_would_show_a_class_that_is_not_frozen() -> None:
    def thawed(cls: Any = None, /, **options: bool) -> Any:
        return dataclass(cls, **{**options, "frozen": False})

    assert behaviour(made_by(thawed)) != behaviour(made_by(dataclasses.dataclass))


def test_methods_are_written_for_the_first_instance_and_not_before() -> None:
    point, named = list(made_by(dataclass).values())[:2]
    assert "__repr__" not in vars(point)
    named(x=1)
    assert {"__repr__", "__eq__", "__hash__", "__setattr__"} <= set(vars(point)) & set(vars(named))


@pytest.mark.parametrize("look", [fields, is_dataclass, lambda cls: dataclasses.dataclass(type("Heir", (cls,), {}))])
def test_whoever_looks_at_the_fields_has_them_written(look: Callable[[Any], object]) -> None:
    counter = made_by(dataclass)["Counter"]
    look(counter)
    assert "__repr__" in vars(counter)


@pytest.mark.parametrize("name", made_by(dataclasses.dataclass))
def test_arguments_are_known_before_the_first_instance(name: str) -> None:
    assert signature(made_by(dataclass)[name]) == signature(made_by(dataclasses.dataclass)[name])


READ = """
import pickle, sys
from bursar.goal import Goal
unwritten = "__eq__" not in vars(Goal)
goal, same = pickle.loads(sys.stdin.buffer.read())
print(unwritten, goal == same, hash(goal) == hash(same), repr(goal))
"""


def test_an_instance_that_comes_from_another_process_is_a_whole_one() -> None:
    goal, same = Goal(kind=GoalKind.ERROR, amount=2), Goal(kind=GoalKind.ERROR, amount=2)
    told = subprocess.run(
        [sys.executable, "-c", READ], input=pickle.dumps((goal, same)), capture_output=True, check=True
    )
    assert told.stdout.decode().strip() == f"True True True {goal!r}"


def test_threads_that_make_the_first_instance_together_all_make_a_whole_one() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            point: Any = made_by(dataclass)["Point"]
            start, made = threading.Barrier(4), []

            def make(point: Any = point, start: threading.Barrier = start, made: list[Any] = made) -> None:
                start.wait()
                made.append(point(x=1))

            threads = [threading.Thread(target=make) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert [repr(each) for each in made] == [repr(point(x=1))] * 4
            with pytest.raises(FrozenInstanceError):
                made[0].x = 2
    finally:
        sys.setswitchinterval(interval)


def test_a_field_may_have_any_name() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Tested:
        instance: int
        self_: int = 0

    assert Tested(instance=3).instance == 3
