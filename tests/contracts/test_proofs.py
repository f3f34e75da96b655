"""A trusted module must not move away from the written argument that it keeps privacy."""

from __future__ import annotations

import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import proofs  # noqa: E402


def test_every_trusted_module_has_a_fresh_argument() -> None:
    assert proofs.check() == []


def test_a_changed_module_makes_its_argument_stale(tmp_path: Path) -> None:
    module = tmp_path / "a.py"
    module.write_text("def f():\n    return 1\n")
    before = proofs.digest(module)
    module.write_text('def f():\n    """Says more now."""\n    return 1  # and here\n')
    assert proofs.digest(module) == before
    module.write_text("def f():\n    return 2\n")
    assert proofs.digest(module) != before
