"""Keeps the written privacy arguments in step with the code they speak about.

Each `*.proof.md` in a trusted room begins with a list of the modules it covers, each with a digest of that module's
syntax tree (comments and layout do not count). `check` says which arguments are stale or missing; after reading an
argument again beside the changed code, `stamp` writes the new digests.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "bursar"
ROOMS = ("core",)
HEADER = re.compile(r"\A<!-- covers\n(?P<lines>.*?)-->\n", re.DOTALL)


def digest(module: Path) -> str:
    """Changes with the code, not with its comments, docstrings or layout."""
    tree = ast.parse(module.read_text())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                body.pop(0)
    return hashlib.blake2b(ast.dump(tree).encode(), digest_size=6).hexdigest()


def covered(proof: Path) -> dict[Path, str]:
    """The modules that a proof names, with the digests it was written for."""
    found = HEADER.match(proof.read_text())
    lines = found["lines"].split("\n") if found else []
    pairs = [line.split() for line in lines if line.strip()]
    return {(proof.parent / name).resolve(): rest[0] if rest else "" for name, *rest in pairs}


def check() -> list[str]:
    """What is wrong, one sentence each; empty when every trusted module has a fresh argument."""
    faults: list[str] = []
    seen: set[Path] = set()
    for room in ROOMS:
        for proof in sorted((SOURCE / room).rglob("*.proof.md")):
            for module, stamped in covered(proof).items():
                name = module.relative_to(SOURCE)
                seen.add(module)
                if not module.exists():
                    faults.append(f"{proof.name} covers {name}, which is gone")
                elif digest(module) != stamped:
                    faults.append(f"{name} changed since {proof.name} was read last")
        for module in sorted((SOURCE / room).rglob("*.py")):
            if module.name != "__init__.py" and module not in seen:
                faults.append(f"{module.relative_to(SOURCE)} has no written argument")
    return faults


def stamp() -> None:
    """Write the present digests into every proof's header."""
    for room in ROOMS:
        for proof in sorted((SOURCE / room).rglob("*.proof.md")):
            names = {os.path.relpath(module, proof.parent): module for module in covered(proof) if module.exists()}
            lines = "".join(f"{name} {digest(module)}\n" for name, module in names.items())
            proof.write_text(HEADER.sub(f"<!-- covers\n{lines}-->\n", proof.read_text()))


if __name__ == "__main__":
    if sys.argv[1:] == ["stamp"]:
        stamp()
    problems = check()
    print("\n".join(problems) or "every written argument is fresh")
    sys.exit(bool(problems))
