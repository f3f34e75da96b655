"""Chance for what is made from noisy values: starts of a fit, rows drawn by weight. It protects nobody."""

from __future__ import annotations

from numpy.random import PCG64, Generator


def entropy() -> Generator:
    """A generator that the operating system starts; nothing here needs to be repeated."""
    return Generator(PCG64())
