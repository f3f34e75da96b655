"""A shell in which `bursar` starts at once: a process that has loaded everything forks for each command.

What a command does and prints is what it does and prints from a shell; only the loading of libraries, which takes
longer than most commands, is not done again. That a process loads what it needs by itself is tested in `test_cli.py`.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

_BYTES = 2**20


@contextmanager
def warm() -> Iterator[str]:
    """The definition of `bursar` for a shell that runs inside the block."""
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "door")
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(place)
            door.listen()
            words = [sys.executable, "-P", __file__, str(door.fileno())]
            own = {**os.environ, "PYTHONIOENCODING": "utf-8"}
            server = subprocess.Popen(words, pass_fds=[door.fileno()], env=own)
        try:
            yield f'bursar() {{ {shlex.join([sys.executable, "-I", "-S", __file__, place])} "$@"; }}'
        finally:
            server.kill()
            server.wait()


def ask(place: str, words: list[str]) -> int:
    """Have a command run with the streams, the folder and the environment of this process; its exit code."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(place)
        socket.send_fds(line, [json.dumps([os.getcwd(), dict(os.environ), words]).encode()], [0, 1, 2])
        return int(line.recv(16))


def serve(door: socket.socket) -> None:
    """Run every command that comes in a process of its own, until somebody ends it."""
    for module in ("bursar.cli.app", "bursar.session", "bursar.presets"):
        import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        line, _ = door.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            line.sendall(str(_answered(line)).encode())
            os._exit(0)
        line.close()


def _answered(line: socket.socket) -> int:
    body, streams, _, _ = socket.recv_fds(line, _BYTES, 3)
    child = os.fork()
    if child == 0:
        _run(*json.loads(body), streams)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(folder: str, environment: dict[str, str], words: list[str], streams: list[int]) -> None:
    from bursar.cli import main

    for place, stream in enumerate(streams):
        os.dup2(stream, place)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(place, "w", 1, encoding="utf-8", closefd=False) for place in (1, 2))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["bursar", *words]
    main()
    sys.exit()


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].isdigit():
        serve(socket.socket(fileno=int(sys.argv[1])))
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
