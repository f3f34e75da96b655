"""Ports for servers that cannot be told to take any that is free, or are told of before they start."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_port() -> Iterator[int]:
    """A port of this machine that nobody else is given during the block, and at which nobody listens yet.

    A port that was only looked for can be somebody else's by the time its server starts. A socket that is bound and
    does not listen keeps it; a server that sets SO_REUSEADDR, as almost all do, can listen there all the same.
    """
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        yield keeper.getsockname()[1]
