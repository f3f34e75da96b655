"""Chance for what is made from noisy values: starts of a fit, rows drawn by weight. It protects nobody."""

from __future__ import annotations

from hashlib import blake2b

from numpy.random import PCG64, Generator


def entropy() -> Generator:
    """A generator that the operating system starts; nothing here needs to be repeated."""
    return Generator(PCG64())


def repeated(text: str) -> Generator:
    """The same generator for the same text, for public choices that an interrupted run has to make again."""
    return Generator(PCG64(int.from_bytes(blake2b(text.encode(), digest_size=16).digest())))
