"""Only one synthetic table at a time is paid for."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from bursar.errors import Unsupported
from bursar.synthetic.alone import LOCK, WAITS, alone


def free(folder: Path) -> bool:
    """Whether nobody holds the lock: somebody who will not wait is told nothing."""
    told: list[str] = []
    with alone(folder / "table.npz", lambda: True, told.append):
        return not told


def test_others_are_kept_out_as_long_as_it_lasts(tmp_path: Path) -> None:
    with alone(tmp_path / "table.npz", lambda: False, lambda text: None):
        assert not free(tmp_path)
    assert free(tmp_path)


def test_it_waits_until_the_other_one_has_finished(tmp_path: Path) -> None:
    other, told = FileLock(tmp_path / LOCK), list[str]()
    other.acquire()
    asked = iter(range(3))

    def stop() -> bool:
        """Never; the other one has finished when it is asked the third time."""
        if next(asked) == 2:
            other.release()
        return False

    with alone(tmp_path / "table.npz", stop, told.append):
        assert not free(tmp_path)
    assert told == [WAITS]
    assert next(asked, None) is None


def test_whoever_is_stopped_does_not_wait(tmp_path: Path) -> None:
    with alone(tmp_path / "table.npz", lambda: False, lambda text: None):
        calls = iter([False, True])
        with alone(tmp_path / "table.npz", lambda: next(calls), lambda text: None):
            assert next(calls, None) is None


def test_a_lock_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / LOCK).mkdir()
    with (
        pytest.raises(Unsupported, match=f"{LOCK}' cannot be written"),
        alone(tmp_path / "table.npz", lambda: True, lambda text: None),
    ):
        pass


def test_what_goes_wrong_inside_leaves_no_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), alone(tmp_path / "table.npz", lambda: False, lambda text: None):
        raise ZeroDivisionError
    assert free(tmp_path)


def test_without_a_ledger_on_disk_there_is_nobody_else() -> None:
    with alone(None, lambda: False, lambda text: None), alone(None, lambda: False, lambda text: None):
        pass
