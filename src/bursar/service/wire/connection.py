"""One client's socket: messages in, bytes out, each within limits of size and time."""

from __future__ import annotations

import asyncio
import ssl
import struct

from bursar.service.wire import protocol
from bursar.service.wire.protocol import LARGEST_MESSAGE, LARGEST_STARTUP, Message, ProtocolError

LOGIN_SECONDS = 30.0
"""How long logging in may take; a half-open connection is gone after it."""

SEND_SECONDS = 60.0
"""How long a client may take to read what it asked for."""

BUFFER_BYTES = 64 * 1024


class Gone(Exception):
    """The client has hung up, or reads nothing any more."""


class Interrupted(Exception):
    """The server ends, and reads no further message."""


class Connection:
    """What is sent is collected, and goes out with `flush`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._out = bytearray()
        self.encrypted = False

    @property
    def address(self) -> str:
        """Where the client is."""
        peer = self._writer.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) and peer else ""

    async def first(self) -> protocol.Startup | protocol.CancelRequest | protocol.EncryptionRequest:
        """What comes before anything else."""
        (length,) = struct.unpack("!i", await self._exactly(4))
        if not 8 <= length <= LARGEST_STARTUP:
            raise ProtocolError("the first message has a wrong length")
        return protocol.read_startup(await self._exactly(length - 4))

    async def receive(self, most: int = LARGEST_MESSAGE) -> Message:
        """The next message."""
        kind, length = struct.unpack("!ci", await self._exactly(5))
        if not 4 <= length <= most:
            raise ProtocolError(f"a message has at most {most} bytes")
        return protocol.read_message(kind, await self._exactly(length - 4))

    async def _exactly(self, length: int) -> bytes:
        try:
            return await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            raise Gone from None

    def interrupt(self) -> None:
        """Read no further message: who waits for one, or begins to, gets Interrupted."""
        self._reader.set_exception(Interrupted())

    def send(self, message: bytes) -> None:
        """Put a message behind those that wait to be sent."""
        self._out += message

    async def send_rows(self, message: bytes) -> None:
        """The same for one of many."""
        self._out += message
        if len(self._out) > BUFFER_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Send what waits; a client that does not read it in time is gone."""
        if not self._out:
            return
        self._writer.write(bytes(self._out))
        self._out.clear()
        if not self._writer.transport.get_write_buffer_size():
            return  # all of it has gone, and nobody has to be waited for
        try:
            await asyncio.wait_for(self._writer.drain(), SEND_SECONDS)
        except Interrupted:
            pass  # what was to be read is of no interest here
        except (TimeoutError, OSError):
            self._writer.transport.abort()
            raise Gone from None

    async def encrypt(self, tls: ssl.SSLContext) -> None:
        """Say yes to TLS, and go on by it. Whatever was sent along unencrypted could be somebody else's: refused."""
        transport = self._writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()  # from here on, what comes is for the handshake
        if getattr(self._reader, "_buffer", b""):
            raise ProtocolError("unencrypted bytes came in behind the request to encrypt")
        self._writer.write(b"S")
        try:
            await self._writer.start_tls(tls, ssl_handshake_timeout=LOGIN_SECONDS)
        except (OSError, ssl.SSLError):
            raise Gone from None
        self.encrypted = True

    async def close(self) -> None:
        """Hang up, after what waits was sent."""
        try:
            await self.flush()
            self._writer.close()
            await asyncio.wait_for(self._writer.wait_closed(), 5.0)
        except (TimeoutError, OSError, ssl.SSLError, Gone):
            self._writer.transport.abort()
