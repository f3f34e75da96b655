"""A program at a terminal: what a person would type, and what they would see."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

from harness.patience import PATIENCE
from harness.warm import begin, exit_code

SLOW = 5.0


class Terminal:
    """Runs `bursar` with a terminal of its own, so that prompts, completion and Ctrl-C are the real ones."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.said = ""
        self._read = 0
        own = {"XDG_STATE_HOME": str(folder / "state"), "TERM": "xterm", "COLUMNS": "100"}
        self._terminal, inside = os.openpty()
        self._line = begin(folder, {**os.environ, **own}, words, [inside] * 3, terminal=True)
        os.close(inside)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def interrupt(self, text: str) -> None:
        """Ctrl-C until a new text is seen: one that comes just before Python waits for a key waits for the next key.

        A second one too soon would throw away what the program says of the first, so each is given time.
        """
        give_up = time.monotonic() + PATIENCE
        while text not in self.said[self._read :] and time.monotonic() < give_up:
            self.type("\x03")
            again = time.monotonic() + SLOW
            while text not in self.said[self._read :] and (left := again - time.monotonic()) > 0:
                if select.select([self._terminal], [], [], left)[0]:
                    self._listen()
        self.expect(text)

    def expect(self, text: str) -> str:
        """Wait until a text is seen that was not seen before; returns everything up to its end."""
        give_up = time.monotonic() + PATIENCE
        while text not in self.said[self._read :]:
            if time.monotonic() > give_up or not self._listen():
                raise AssertionError(f"{text!r} did not come; what came is {self.said[self._read :]!r}")
        start, self._read = self._read, self.said.index(text, self._read) + len(text)
        return self.said[start : self._read]

    def end(self) -> int:
        """Wait until the program ends; its exit code."""
        while self._listen():
            pass
        os.close(self._terminal)
        return exit_code(self._line)

    def _listen(self) -> bool:
        """Take in what was printed; False when there is nothing more to come."""
        ready, _, _ = select.select([self._terminal], [], [], PATIENCE)
        try:
            more = os.read(self._terminal, 65536) if ready else b""
        except OSError:  # Linux says so when the program has closed the terminal
            more = b""
        self.said += more.decode(errors="replace").replace("\r\n", "\n")
        return bool(more)
