"""Bursar: a differentially private query engine.

An analyst writes SQL and says what error is acceptable; Bursar answers within that error, with the stated confidence,
for the least privacy budget that it can find; the data owner's total budget is never exceeded.

    import bursar

    db = bursar.open("bursar.toml")
    answer = db.query("SELECT region, COUNT(*) FROM people GROUP BY region", within=50)
    print(answer)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bursar.errors import BursarError

if TYPE_CHECKING:
    from bursar.engine import Bursar
    from bursar.opening import create, open

__version__ = "0.2.0"
__all__ = ["Bursar", "BursarError", "__version__", "create", "open"]


def __getattr__(name: str) -> Any:
    """Load the engine at first use: `bursar --help` and `import bursar` stay quick."""
    if name in ("create", "open"):
        from bursar import opening

        return getattr(opening, name)
    if name == "Bursar":
        from bursar.engine import Bursar

        return Bursar
    raise AttributeError(f"module 'bursar' has no attribute {name!r}")
