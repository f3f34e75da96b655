"""Commands run in this process, as a shell would run them in another."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bursar.cli import main


class Outcome(NamedTuple):
    """How a command ended, what it printed, and what it complained about."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs commands; each ends with the words in `last`."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], last: tuple[str, ...] = ()
    ) -> None:
        self._monkeypatch, self._capsys, self._last = monkeypatch, capsys, last

    def __call__(self, *words: str | Path, stdin: str | None = "") -> Outcome:
        """Without `stdin` at all where that is None."""
        self._monkeypatch.setattr(sys, "argv", ["bursar", *map(str, words), *self._last])
        self._monkeypatch.setattr(sys, "stdin", None if stdin is None else io.StringIO(stdin))
        self._capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        said = self._capsys.readouterr()
        return Outcome(code, said.out, said.err)

    def json(self, *words: str) -> Any:
        """What a command that must work prints as JSON."""
        outcome = self(*words, "--json")
        assert outcome.code == 0, outcome.err
        return outcome.json
