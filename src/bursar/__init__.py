"""Bursar: a differentially private query engine.

```python
import bursar

with bursar.open("bursar.toml", analyst="ana") as db:
    answer = db.query("SELECT region, COUNT(*) FROM people GROUP BY region", within=50)
    print(answer)  # every count with its error bar, and what it cost
    print(db.budget())  # what is left
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bursar.errors import (
    AnalystError,
    BudgetError,
    BursarError,
    ConfigError,
    GoalError,
    LedgerError,
    QueryError,
    ServerError,
    SourceError,
    Unsupported,
    Waiting,
)

if TYPE_CHECKING:
    from bursar.answer import Answer
    from bursar.goal import Goal
    from bursar.planner.batch import Batch
    from bursar.planner.explain import Explanation
    from bursar.remote import Remote, connect
    from bursar.session import Bursar, create, open

__version__ = "0.2.0"
__all__ = [
    "AnalystError",
    "Answer",
    "Batch",
    "BudgetError",
    "Bursar",
    "BursarError",
    "ConfigError",
    "Explanation",
    "Goal",
    "GoalError",
    "LedgerError",
    "QueryError",
    "Remote",
    "ServerError",
    "SourceError",
    "Unsupported",
    "Waiting",
    "__version__",
    "connect",
    "create",
    "open",
]

_LAZY = {
    "Answer": "bursar.answer",
    "Batch": "bursar.planner.batch",
    "Bursar": "bursar.session",
    "Explanation": "bursar.planner.explain",
    "Goal": "bursar.goal",
    "Remote": "bursar.remote",
    "connect": "bursar.remote",
    "create": "bursar.session",
    "open": "bursar.session",
}
"""What is loaded at first use: `bursar --help` and `import bursar` stay quick."""


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'bursar' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
