"""A network that a test can cut: connections to a server's socket go through here."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path


class Cut(Enum):
    """What happens to a connection once its client has sent certain bytes."""

    BEFORE = "they do not arrive, and the connection ends"
    AFTER = "they arrive, the server answers, and the connection ends before the answer arrives"
    SILENT = "they arrive, and from then on the client hears nothing, not even an end"


@dataclass
class Network:
    """Passes everything on until a cut that was planned; later connections are whole again."""

    server: Path
    cuts: int = field(default=0, init=False)
    received: int = field(default=0, init=False)  # bytes that came to clients
    _planned: tuple[Cut, bytes, bytes] | None = field(default=None, init=False)

    def plan(self, cut: Cut, at: bytes, answer: bytes = b"") -> None:
        """Cut the first connection whose client sends `at`; AFTER waits until the server has answered `answer`."""
        self._planned = cut, at, answer

    def serve(self, door: socket.socket) -> None:
        with suppress(OSError):  # the door is closed
            while True:
                client, _ = door.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(str(self.server))
            cut, answer, told = None, b"", b""
            while True:
                for end in select.select([client, server], [], [])[0]:
                    if not (piece := end.recv(2**16)):
                        return
                    if end is client:
                        if self._planned is not None and self._planned[1] in piece:
                            (cut, _, answer), self._planned = self._planned, None
                            self.cuts += 1
                        if cut is Cut.BEFORE:
                            return
                        server.sendall(piece)
                    elif cut is None:
                        client.sendall(piece)
                        self.received += len(piece)
                    else:
                        told += piece
                        if cut is Cut.AFTER and answer in told:
                            return


@contextmanager
def network(server: Path, door: Path) -> Iterator[Network]:
    """What listens at the socket `door` is the server at another socket, through a network."""
    made = Network(server)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(door))
        door.chmod(0o777)
        listening.listen(64)
        thread = threading.Thread(target=made.serve, args=(listening,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
