"""The borders of the tree: who may import whom, and what the trusted rooms must not contain."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Set
from pathlib import Path

import bursar
from harness.cases import every
from harness.source_trees import SOURCE, nodes_of, tree_of

ORDER = (
    ("errors", "arrays", "lazy_dataclass"),
    ("goal", "pace", "threads"),
    ("core.domain", "core.source.raw"),
    (
        *("core.queries", "core.extensions.hull", "core.extensions.predicate"),
        *("core.extensions.thresholds", "core.extensions.transform", "core.extensions.distinct"),
        *("core.extensions.per_person", "core.extensions.pairs"),
    ),
    ("core.noise", "core.extensions.renyi", "core.source.source", "core.accounts"),
    ("core.accounting", "core.extensions"),
    (
        *("core", "core.noise.system", "core.extensions.joins"),
        *("core.extensions.move", "core.extensions.curator", "core.extensions.declared_view"),
    ),
    ("sql",),
    ("compile", "strategies", "views", "estimation", "tails"),
    ("rewrite",),
    ("answer", "report"),
    ("planner",),
    ("proposers",),
    ("papers",),
    ("presets",),
    ("analysts", "synthetic"),
    ("papers.rap",),
    ("config",),
    ("report.spending", "report.savings"),
    ("synthetic.sight", "repeated", "ledgers", "open_keys"),
    ("engine",),
    ("curate.intake", "curate.ingest", "sources"),
    ("batch", "owner", "synthetic.session", "synthetic.alone"),
    ("session",),
    ("link", "remote"),
    ("testing",),
    ("audit",),
    ("simulate",),
    ("curate",),
    ("report.text",),
    ("service",),
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


def later(node: ast.AST) -> bool:
    """Whether what is inside is run after the modules were loaded, or never: functions, and names for types alone."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef)


@functools.cache
def imports(path: Path, *, of_core_later: bool = True) -> frozenset[str]:
    """What a module imports; inside the core perhaps without the names of the core that it needs later.

    An extension gives the core a kind of event, and its verb takes the kernel: each names the other, one of them later.
    """
    deferred: set[ast.AST] = set()
    if not of_core_later:
        deferred = {inner for node in nodes_of(path) if later(node) for inner in ast.walk(node)}
    found: set[str] = set()
    for node in nodes_of(path):
        if node in deferred and isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bursar.core"):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


@functools.cache
def place_of(name: str) -> int | None:
    """The place in ORDER of the most specific room that holds a module, if one does."""
    rooms = [(room, place) for place, line in enumerate(ORDER) for room in line]
    return max(((len(room), place) for room, place in rooms if f"{name}.".startswith(f"{room}.")), default=(0, None))[1]


def rank(name: str) -> int:
    """The place in ORDER of a module, which must have one."""
    place = place_of(name)
    if place is None:
        raise AssertionError(f"{name} is in no room of ORDER")
    return place


def breaches(source: Mapping[str, Set[str]]) -> list[str]:
    found = []
    for name, imported in source.items():
        inside = {i.removeprefix("bursar.") for i in imported if i.startswith("bursar.")}
        placed = {i for i in inside if place_of(i) is not None}
        found += [f"{name} imports {other}" for other in sorted(placed) if rank(other) > rank(name)]
    return found


def test_imports_go_one_way() -> None:
    inside = {path: name_of(path).split(".")[0] not in TRUSTED for path in modules()}
    tree = {name_of(path): imports(path, of_core_later=inside[path]) for path in modules() if name_of(path)}
    assert breaches(tree) == []


def test_a_kernel_that_reached_up_would_be_found() -> None:
    assert breaches({"core.kernel": {"bursar.planner.offer"}}) == ["core.kernel imports planner.offer"]
    assert breaches({"core.accounting.profile": {"bursar.core.tables"}}) != []


def test_stages_are_on_no_analysts_path() -> None:
    users = {name_of(path) for path in modules() if any(i.startswith("bursar.testing") for i in imports(path))}
    assert users == {"audit", "curate.check", "simulate"}


@every("path", lambda: modules(*TRUSTED), name_of)
def test_trusted_rooms_have_no_logging_and_no_float_noise(path: Path) -> None:
    bad = {i for i in imports(path) if any(f"{i}.".startswith(f"{f}.") for f in FORBIDDEN)}
    names = {node.id for node in nodes_of(path) if isinstance(node, ast.Name)}
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


STAGES = ("parse", "compile", "request", "explain", "turn", "choose", "_grant", "run", "_answer", "store")
"""What a question passes through, in this order."""


def calls(function: ast.AST) -> list[str]:
    """The names of all methods that a function calls, as they stand in the text."""
    found = [node for node in ast.walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return [node.func.attr for node in sorted(found, key=lambda node: (node.end_lineno, node.end_col_offset))]  # type: ignore[union-attr]


def staged(names: list[str]) -> bool:
    """Whether all stages are there, in their order."""
    places = [names.index(stage) if stage in names else -1 for stage in STAGES if stage != "turn"]
    return "turn" in names and -1 not in places and places == sorted(places)


def test_the_flow_is_one_function() -> None:
    nodes = nodes_of(SOURCE / "engine.py")
    (ask,) = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "ask"]
    assert staged(calls(ask))
    (prepare,) = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "prepare"]
    assert not staged(calls(prepare))


def test_nobody_inherits_from_an_engine_or_a_session() -> None:
    for name in ("engine.py", "session.py", "owner.py"):
        classes = [node for node in nodes_of(SOURCE / name) if isinstance(node, ast.ClassDef)]
        assert all(node.bases == [] for node in classes)


def public_classes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in modules():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name_of(path))
    return found


def test_no_public_class_name_stands_twice_in_the_tree() -> None:
    assert {name: places for name, places in public_classes().items() if len(places) > 1} == {}


def test_no_module_name_stands_twice_in_a_room() -> None:
    places: dict[tuple[str, str], list[str]] = {}
    for path in modules():
        if path.stem != "__init__":
            places.setdefault((path.relative_to(SOURCE).parts[0], path.stem), []).append(name_of(path))
    assert {key: names for key, names in places.items() if len(names) > 1} == {}


def test_public_names() -> None:
    errors = {"AnalystError", "BudgetError", "BursarError", "ConfigError", "GoalError", "LedgerError", "QueryError"}
    errors |= {"ServerError", "SourceError", "Unsupported", "Waiting"}
    held = {"Answer", "Batch", "Bursar", "Explanation", "Goal", "Remote", "connect", "create", "open"}
    assert set(bursar.__all__) == errors | held | {"__version__"}
    assert all(getattr(bursar, name).__doc__ for name in bursar.__all__)


def test_everything_that_a_person_holds_is_documented() -> None:
    from bursar.owner import Owner
    from bursar.remote import Remote
    from bursar.session import Bursar

    for kind in (Bursar, Owner, Remote):
        methods = [value for name, value in vars(kind).items() if not name.startswith("_") and callable(value)]
        assert methods
        assert [method.__name__ for method in methods if not method.__doc__] == []
