"""Secrets at rest: AES-256-GCM under a key that is not in the database."""

from __future__ import annotations

import os

from bursar.errors import LedgerError, Unsupported

KEY_BYTES = 32
NONCE_BYTES = 12
"""Random: the chance that two of 2^32 rows share one is 2^-33."""


class AesGcm:
    """Implements `Cipher`. A row is a nonce and what AES-GCM makes of the body; its label is authenticated with it."""

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.exceptions import InvalidTag  # loaded here: a ledger in a file needs none of it
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            hint = "pip install '.[postgresql]' in a checkout of Bursar"
            raise Unsupported(f"a ledger in PostgreSQL needs psycopg and cryptography\ntry: {hint}") from None
        if len(key) != KEY_BYTES:
            raise LedgerError(f"the key of a ledger has {KEY_BYTES} bytes, not {len(key)}")
        self._aes, self._invalid = AESGCM(key), InvalidTag

    def encrypt(self, body: bytes, label: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._aes.encrypt(nonce, body, label)

    def decrypt(self, body: bytes, label: bytes) -> bytes:
        try:
            return self._aes.decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], label)
        except (self._invalid, ValueError):
            raise LedgerError("the key is not the one that the secrets of this ledger were encrypted with") from None
