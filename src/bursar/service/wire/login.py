"""From a socket to somebody who may ask: TLS, the first message, SCRAM."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from bursar.service.datasets import DataSet, DataSets
from bursar.service.people import Person
from bursar.service.wire import protocol, scram
from bursar.service.wire.connection import Connection
from bursar.service.wire.failures import BAD_PASSWORD, fatal
from bursar.service.wire.protocol import CancelRequest, EncryptionRequest, Password, ProtocolError, Startup
from bursar.service.wire.settings import REPORTED, SessionSettings

LARGEST_LOGIN = 4_096
"""Most bytes of a message of SCRAM."""

_SASL, _CONTINUE, _FINAL, _OK = 10, 11, 12, 0


@dataclass(frozen=True)
class Login:
    """Somebody who has proved to have a token for a data set."""

    person: Person
    token: str  # its public id
    data: DataSet
    settings: SessionSettings

    @property
    def good(self) -> bool:
        """Whether the token was neither revoked nor has expired since."""
        return self.data.people.good(self.token)


async def greet(connection: Connection, tls: ssl.SSLContext | None, *, require_tls: bool) -> Startup | CancelRequest:
    """The first message, after the client has asked for encryption or not."""
    while isinstance(first := await connection.first(), EncryptionRequest):
        if first.tls and tls is not None and not connection.encrypted:
            await connection.encrypt(tls)
        else:
            connection.send(b"N")
            await connection.flush()
    if isinstance(first, Startup) and require_tls and not connection.encrypted:
        raise fatal(
            "28000",
            "this server takes encrypted connections only",
            "libpq and JDBC: sslmode=require; ODBC: SSLmode=require",
        )
    return first


async def log_in(connection: Connection, first: Startup, datasets: DataSets) -> Login:
    """Who it is, by SCRAM-SHA-256 with a token; refused as PostgreSQL does, without a word about who is known."""
    if first.minor or first.unknown:
        connection.send(protocol.negotiate(first.unknown))
    name = first.parameters.get("user", "")
    database = first.parameters.get("database", "") or name
    if not name:
        raise fatal("28000", "no PostgreSQL user name specified in startup packet")
    if first.parameters.get("replication", "").lower() not in ("", "off", "false", "no", "0"):
        raise fatal("0A000", "there is no replication here")
    # Who asks for a data set that is not there is let in or not by one that is, so that names are told to nobody else.
    data = datasets.get(database) or next((d for d in datasets.values() if d.people.person(name) is not None), None)
    secrets = None if data is None else data.people.verifiers(name)
    salt, verifiers = secrets if secrets is not None else (scram.mock_salt(database, name), [])
    exchange = scram.Exchange(salt, verifiers)
    connection.send(protocol.authentication(_SASL, scram.MECHANISM.encode() + b"\0\0"))
    await connection.flush()
    mechanism, _, first_message = (await _step(connection)).partition(b"\0")
    if mechanism != scram.MECHANISM.encode() or len(first_message) < 4:
        raise ProtocolError("only SCRAM-SHA-256 is offered")
    connection.send(protocol.authentication(_CONTINUE, exchange.first(first_message[4:])))
    await connection.flush()
    proven = exchange.final(await _step(connection))
    person = None if data is None else data.people.person(name)
    if proven is None or person is None or data is None:
        raise fatal(BAD_PASSWORD, f'password authentication failed for user "{name}"')
    signature, token = proven
    connection.send(protocol.authentication(_FINAL, signature))
    connection.send(protocol.authentication(_OK))
    if data.name != database:
        raise fatal("3D000", f'database "{database}" does not exist')
    settings = SessionSettings(name)
    settings.begin(first.parameters)
    for setting, shown in REPORTED.items():
        connection.send(protocol.parameter_status(shown, settings.get(setting) or ""))
    return Login(person, token, data, settings)


async def _step(connection: Connection) -> bytes:
    message = await connection.receive(LARGEST_LOGIN)
    if not isinstance(message, Password):
        raise ProtocolError("a password is expected")
    return message.body
