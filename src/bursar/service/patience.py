"""Clients that take their time: whoever begins a request and does not end its head in time is hung up on."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0


class PatientProtocol(H11Protocol):
    """uvicorn's own, which would wait for ever. Bodies have a limit of their own at the wall."""

    _hang_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the head of the first request."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait no longer where the head is there, and anew where a further request begins."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:  # the head is there
            self._rest()
        elif self._hang_up is None:  # a further request begins
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._rest()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._hang_up = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _rest(self) -> None:
        if self._hang_up is not None:
            self._hang_up.cancel()
            self._hang_up = None
