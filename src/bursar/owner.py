"""What the data owner does with an open data set, and what everybody does when they are done with it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from bursar.config import Config
from bursar.kernel.curator import declare_version
from bursar.kernel.kernel import Kernel
from bursar.kernel.ledger import Health, Ledger
from bursar.kernel.randomness import Randomness
from bursar.kernel.sources.source import Source


class OwnersDoor:
    """The part of `Bursar` that asks nothing."""

    config: Config
    ledger: Ledger
    kernel: Kernel
    _open_source: Callable[[bytes], Source]
    _randomness: Randomness

    def declare_version(self, *, same_rows: bool = False) -> int:
        """For the data owner: the data have changed, and are what they are now."""
        return declare_version(self.ledger, self._open_source, self._randomness, same_rows=same_rows)

    def declare_shares(self) -> None:
        """For the data owner: the shares of the config are in force from now on, if they can be given out."""
        self.kernel.allot(self.config.analysts.accounts)

    def verify(self) -> Health:
        return self.ledger.verify()

    def recover(self) -> Health:
        return self.ledger.recover()

    def close(self) -> None:
        self.kernel.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()
