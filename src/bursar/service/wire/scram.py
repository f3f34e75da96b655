"""SCRAM-SHA-256 (RFC 5802, RFC 7677) for tokens as passwords: the server's side, without channel binding.

Somebody who was never let in is sent a salt that is always the same for the name, and fails at the end like anybody
with a wrong token: nothing tells which names are known.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

from bursar.service.people import ITERATIONS, Verifier
from bursar.service.wire.protocol import ProtocolError

MECHANISM = "SCRAM-SHA-256"
LONGEST_NONCE = 256

_SECRET = secrets.token_bytes(32)
"""Makes the salts of unknown names; other after each start."""


def mock_salt(data_set: str, name: str) -> bytes:
    """The salt that somebody unknown would have."""
    return hmac.digest(_SECRET, f"{data_set}\0{name}".encode(), "sha256")[:16]


class Exchange:
    """One log-in: `first` answers the client's first message, `final` its last one."""

    def __init__(self, salt: bytes, verifiers: list[Verifier], *, nonce: str | None = None) -> None:
        """`nonce` is for tests: else it is made of 144 random bits."""
        self._salt, self._verifiers = salt, verifiers
        self._nonce = base64.b64encode(secrets.token_bytes(18)).decode() if nonce is None else nonce
        self._bare = self._header = self._server_first = ""

    def first(self, message: bytes) -> bytes:
        """Nonce, salt and iterations. The name in the message is not looked at: libpq leaves it empty."""
        text = _decoded(message)
        flag, _, after_flag = text.partition(",")
        identity, _, bare = after_flag.partition(",")
        if flag not in ("n", "y") or identity:
            raise ProtocolError("only SCRAM-SHA-256 without channel binding is offered")
        fields = bare.split(",")
        if len(fields) < 2 or not fields[0].startswith("n=") or not fields[1].startswith("r="):
            raise ProtocolError("the first message of SCRAM is malformed")
        nonce = fields[1][2:]
        if not 8 <= len(nonce) <= LONGEST_NONCE:
            raise ProtocolError("the nonce of SCRAM has a wrong length")
        self._header, self._bare, self._nonce = f"{flag},{identity},", bare, nonce + self._nonce
        salt = base64.b64encode(self._salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={ITERATIONS}"
        return self._server_first.encode()

    def final(self, message: bytes) -> tuple[bytes, str] | None:
        """The proof that the server knows the token as well, and the token's id; None where the client does not."""
        without_proof, _, proof_text = _decoded(message).rpartition(",p=")
        binding = base64.b64encode(self._header.encode()).decode()
        if without_proof.split(",")[:2] != [f"c={binding}", f"r={self._nonce}"]:
            raise ProtocolError("the last message of SCRAM does not belong to the first")
        try:
            proof = base64.b64decode(proof_text, validate=True)
        except (binascii.Error, ValueError):
            raise ProtocolError("the proof of SCRAM is malformed") from None
        if len(proof) != 32:
            raise ProtocolError("the proof of SCRAM is malformed")
        said = f"{self._bare},{self._server_first},{without_proof}".encode()
        accepted: tuple[bytes, str] | None = None
        for verifier in self._verifiers:
            signature = hmac.digest(verifier.stored_key, said, "sha256")
            client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
            if hmac.compare_digest(hashlib.sha256(client_key).digest(), verifier.stored_key):
                server_signature = base64.b64encode(hmac.digest(verifier.server_key, said, "sha256"))
                accepted = b"v=" + server_signature, verifier.token
        return accepted


def _decoded(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ProtocolError("a message of SCRAM is UTF-8") from None
