"""The borders of the tree: who may import whom, and what the trusted rooms must not contain."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import bursar

SOURCE = Path(bursar.__file__).parent

ORDER = (
    ("errors", "arrays"),
    ("goal", "pace", "threads"),
    ("core.domain",),
    ("core.queries", "core.extensions.predicate", "core.extensions.thresholds", "core.extensions.transform"),
    (
        *("core.noise", "core.extensions.refine", "core.extensions.select"),
        *("core.extensions.joint_selection", "core.extensions.renyi"),
    ),
    ("core.accounting", "core.extensions.replace_one", "core.extensions.sequential"),
    ("core",),
    ("sql", "compile", "rewrite", "strategies", "views", "estimation", "tails"),
    ("answer", "report"),
    ("planner",),
    ("proposers",),
    ("papers",),
    ("presets",),
    ("analysts", "synthetic"),
    ("papers.rap",),
    ("config",),
    ("report.spending",),
    ("curate.intake", "curate.ingest"),
    ("owner",),
    ("session",),
    ("thresholding",),
    ("synthetic.session", "synthetic.prepared", "synthetic.sight", "synthetic.alone"),
    ("engine",),
    ("opening", "audit"),
    ("simulate",),
    ("curate",),
    ("report.text",),
    ("cli",),
)
"""Lower never imports higher. Rooms of one line may import each other only if that makes no circle."""

TRUSTED = ("core",)
FORBIDDEN = {"logging", "random", "warnings", "numpy.random", "scipy.stats"}


def modules(*rooms: str) -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if not rooms or p.relative_to(SOURCE).parts[0] in rooms)


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def rank(name: str) -> int:
    """The place in ORDER of the most specific room that holds a module."""
    rooms = [(room, place) for place, line in enumerate(ORDER) for room in line]
    places = [(len(room), place) for room, place in rooms if f"{name}.".startswith(f"{room}.")]
    if not places:
        raise AssertionError(f"{name} is in no room of ORDER")
    return max(places)[1]


def breaches(source: dict[str, set[str]]) -> list[str]:
    found = []
    for name, imported in source.items():
        inside = {i.removeprefix("bursar.") for i in imported if i.startswith("bursar.")}
        known = {i for i in inside if any(f"{i}.".startswith(f"{r}.") for line in ORDER for r in line)}
        found += [f"{name} imports {other}" for other in sorted(known) if rank(other) > rank(name)]
    return found


def test_imports_go_one_way() -> None:
    tree = {name_of(path): imports(path) for path in modules() if name_of(path)}
    assert breaches(tree) == []


def test_a_kernel_that_reached_up_would_be_found() -> None:
    assert breaches({"core.kernel": {"bursar.planner.offer"}}) == ["core.kernel imports planner.offer"]
    assert breaches({"core.accounting.profile": {"bursar.core.tables"}}) != []


@pytest.mark.parametrize("path", modules(*TRUSTED), ids=name_of)
def test_trusted_rooms_have_no_logging_and_no_float_noise(path: Path) -> None:
    bad = {i for i in imports(path) if any(f"{i}.".startswith(f"{f}.") for f in FORBIDDEN)}
    names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
    assert bad == set()
    assert "print" not in names
    assert "default_rng" not in path.read_text()


def test_seeds_live_in_the_demo_only() -> None:
    seeded = [name_of(p) for p in modules() if "default_rng" in p.read_text() or "np.random" in p.read_text()]
    assert all(name == "curate.demo" for name in seeded), seeded
    drawing = [name_of(p) for p in modules() if "PCG64" in p.read_text()]
    assert drawing == ["synthetic.entropy"]
    assert "PCG64()" in (SOURCE / "synthetic" / "entropy.py").read_text()


def test_scipy_stats_is_never_imported() -> None:
    assert [name_of(p) for p in modules() if "scipy.stats" in imports(p)] == []


def test_the_engine_stays_a_page() -> None:
    assert len((SOURCE / "engine.py").read_text().splitlines()) < 150


def test_public_names() -> None:
    assert set(bursar.__all__) == {"Bursar", "BursarError", "__version__", "create", "open"}
    assert all(getattr(bursar, name) is not None for name in bursar.__all__)
