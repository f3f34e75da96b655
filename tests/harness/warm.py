"""Commands that start at once: a process that has loaded everything forks for each of them.

What a command does and prints is what it does and prints from a shell; only the loading of libraries, which takes
longer than most commands, is not done again. That a process loads what it needs by itself is tested in `test_cli.py`.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

_BYTES = 2**20


def shell_function() -> str:
    """The definition of `bursar` for a shell."""
    return f'bursar() {{ {shlex.join([sys.executable, "-I", "-S", __file__, _door()])} "$@"; }}'


def begin(
    folder: Path, environment: Mapping[str, str], words: Sequence[str], streams: Sequence[int], *, terminal: bool
) -> socket.socket:
    """Have a command run in a folder with these streams; `terminal`: they are its own terminal. See `exit_code`."""
    return _sent(_door(), [str(folder), dict(environment), list(words), terminal], streams)


def exit_code(line: socket.socket) -> int:
    """Wait until the command of a line ends."""
    with line:
        return int(line.recv(16))


@cache
def _door() -> str:
    """Where the process that forks listens. It ends when this one has ended, however that happens."""
    place = str(Path(tempfile.mkdtemp()) / "door")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
        door.listen()
        words = [sys.executable, "-P", __file__, str(door.fileno()), place]
        own = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        _SERVERS.append(subprocess.Popen(words, pass_fds=[door.fileno()], env=own, stdin=subprocess.PIPE))
    return place


_SERVERS: list[subprocess.Popen[bytes]] = []
"""Kept, or the pipe would be closed: its end tells the server that nobody is there any more."""


def _sent(place: str, command: list[object], streams: Sequence[int]) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.connect(place)
    socket.send_fds(line, [json.dumps(command).encode()], list(streams))
    return line


def _serve(door: socket.socket, place: str) -> None:
    """Run every command that comes in a process of its own, until whoever started this one is gone."""
    for module in ("bursar.cli.app", "bursar.session", "bursar.presets", "bursar.service.run", "scipy.optimize"):
        import_module(module)
    gc.freeze()  # or every command would look through, and copy, what it shares with this process
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while sys.stdin not in select.select([door, sys.stdin], [], [])[0]:
        line, _ = door.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            line.sendall(str(_answered(line)).encode())
            os._exit(0)
        line.close()
    shutil.rmtree(Path(place).parent)


def _answered(line: socket.socket) -> int:
    body, streams, _, _ = socket.recv_fds(line, _BYTES, 3)
    child = os.fork()
    if child == 0:
        _run(*json.loads(body), streams)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(folder: str, environment: dict[str, str], words: list[str], terminal: bool, streams: list[int]) -> None:
    from bursar.cli import main

    for place, stream in enumerate(streams):
        os.dup2(stream, place)
    if terminal:  # or Ctrl-C would go to somebody else
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(place, "w", 1, encoding="utf-8", closefd=False) for place in (1, 2))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["bursar", *words]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it any more
            stream.flush()
    os._exit(code)  # taking apart all that was loaded takes longer than most commands


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
    else:
        sys.exit(exit_code(_sent(sys.argv[1], [os.getcwd(), dict(os.environ), sys.argv[2:], False], [0, 1, 2])))
