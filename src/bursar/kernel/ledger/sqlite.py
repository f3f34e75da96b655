"""The default ledger: one SQLite file, safe for threads, processes, forks, crashes and full disks."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Self, TypeVar

from bursar.errors import LedgerError
from bursar.kernel.ledger import codec
from bursar.kernel.ledger.anchor import Anchor, anchor_path, read_anchor, write_anchor
from bursar.kernel.ledger.database import SEALED, Database, State
from bursar.kernel.ledger.group import GroupCommit
from bursar.kernel.ledger.ledger import Charter, Health, Record, Transaction
from bursar.kernel.ledger.medium import SqliteMedium
from bursar.kernel.ledger.transaction import drop_expired, stored_answer

T = TypeVar("T")
