"""docs/errors.md has a remedy for what shares, contracts, goals, set-up, batches and SQL refuse, and no other; what is
offered with a refusal is a question or a command."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from bursar import errors
from harness.cases import every
from harness.source_trees import SOURCE as SRC
from harness.source_trees import nodes_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
CLASSES = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
VARIES = "…"
ANY = "any"

ROOMS = (
    "analysts/queue.py", "analysts/shares.py", "analysts/policy.py", "core/accounts.py", "session.py",
    "planner/admit.py", "planner/goals.py", "planner/batch.py", "batch.py",
    "cli/setup.py", "curate/changes.py", "curate/check.py", "curate/confirm.py", "curate/draft_from_data.py",
    "curate/edit.py", "curate/guess.py", "curate/metadata.py", "curate/survey.py", "report/*.py", "rewrite/*.py",
    "sql/*.py", "compile/*.py",
)  # fmt: skip
"""Where people are refused in words that need a remedy beyond the text itself."""

SYNTAX = {
    "sql/tokens.py": frozenset({"statement_tokens", "tokenize", "_begins_with_select", "_check", "questions_of"}),
    "sql/parse.py": frozenset({"parse", "_tree", "read_statement", "_table", "_item", "_named"}),
    "sql/conditions.py": frozenset(
        {"read_condition", "_condition", "read_column", "_compare", "_at_least", "_like", "_is", "_same"}
    ),
    "sql/literals.py": frozenset({"read_literal", "read_date", "_folded"}),
}
"""Functions for what is no SQL of ours, which is told with its place, and listed in docs/sql.md."""


@cache
def rows() -> tuple[tuple[str, str, str], ...]:
    """Class, text and remedy of every row of the page's tables."""
    return tuple(
        (part.split("`")[1], said, remedy)
        for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
        for said, remedy in re.findall(r"^\| `(.+?)` \| (.+) \|$", part, re.MULTILINE)
    )


@cache
def assigned(file: Path) -> dict[str, list[ast.expr]]:
    """What is assigned to each name of a module, wherever in it."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes_of(file):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return found


@cache
def constants() -> dict[str, list[ast.expr]]:
    """The constants of all modules, which others may import."""
    found = [item for file in SRC.rglob("*.py") for item in assigned(file).items()]
    return {name: values for name, values in found if name.isupper()}


@cache
def messages(file: Path, skipped: frozenset[str] = frozenset()) -> tuple[tuple[str, str], ...]:
    """Class and first line of every refusal that a module writes, with … for what varies.

    A text that has a name may be raised elsewhere, as another class: its class is any. What some functions write can be
    skipped.
    """
    own = assigned(file)
    found = []
    functions = [node for node in nodes_of(file) if isinstance(node, ast.FunctionDef) and node.name in skipped]
    inside = {node for function in functions for node in ast.walk(function)}
    for node in nodes_of(file):
        if node in inside:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES and node.args:
            first = node.args[0]
            named = isinstance(first, ast.Name)
            texts = own.get(first.id, constants().get(first.id, [])) if named else [first]
            found += [(ANY if named else node.func.id, text) for text in map(_text, texts) if _says_something(text)]
    return tuple(dict.fromkeys(found))


def _text(node: ast.expr) -> str:
    """The first line of a written text; constants that stand in it are written out."""
    if isinstance(node, ast.JoinedStr):
        ended = [isinstance(part, ast.Constant) and "\n" in str(part.value) for part in node.values]
        return "".join(map(_text, node.values[: [*ended, True].index(True) + 1]))
    if isinstance(node, ast.FormattedValue):
        known = constants().get(node.value.id, []) if isinstance(node.value, ast.Name) else []
        return (_text(known[0]) if known else "") or VARIES
    return node.value.split("\n")[0] if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _says_something(text: str) -> bool:
    """Whether there is enough fixed text to tell a refusal by; what begins with another text is told by that one."""
    return len(re.findall(r"\w{2,}", text.replace("contract", ""))) >= 3 and not text.startswith(f"{VARIES}contract")


def _explains(kind: str, said: str, name: str, message: str) -> bool:
    """Whether a row is about a message: it is how the message begins."""
    return name in (ANY, kind) and message.startswith(said.removesuffix(VARIES).rstrip())


MODULES = sorted({file for room in ROOMS for file in SRC.glob(room)})
SKIPPED = {SRC / name: functions for name, functions in SYNTAX.items()}


def written() -> list[tuple[Path, str, str]]:
    return [(file, name, text) for file in MODULES for name, text in messages(file, SKIPPED.get(file, frozenset()))]


@every("case", written, lambda case: f"{case[0].stem}: {case[2]}")
def test_a_refusal_has_a_remedy(case: tuple[Path, str, str]) -> None:
    _, name, text = case
    assert [said for kind, said, _ in rows() if _explains(kind, said, name, text)]


def test_no_remedy_is_for_a_refusal_that_does_not_exist() -> None:
    found = [pair for file in SRC.rglob("*.py") for pair in messages(file)]
    assert [said for kind, said, _ in rows() if not any(_explains(kind, said, *pair) for pair in found)] == []


def test_remedies_are_sentences_and_none_stands_twice() -> None:
    found = rows()
    assert len(found) > 80
    assert len({(kind, said) for kind, said, _ in found}) == len(found)
    assert [remedy for *_, remedy in found if not remedy.endswith((".", ".`"))] == []


def test_every_room_is_looked_into() -> None:
    assert [room for room in ROOMS if not list(SRC.glob(room))] == []
    for file, functions in SKIPPED.items():
        assert functions <= {node.name for node in nodes_of(file) if isinstance(node, ast.FunctionDef)}
    assert len(written()) > 80


def offered(nodes: Iterable[ast.AST]) -> list[str]:
    """What a module offers in words of its own, as a rewrite."""
    values = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "rewrite"]
    whole = [value.value for value in values if isinstance(value, ast.Constant)]
    first = [value.values[0] for value in values if isinstance(value, ast.JoinedStr)]
    parts = [part.value for part in first if isinstance(part, ast.Constant)]
    return [text for text in (*whole, *parts) if isinstance(text, str) and text]


def test_no_rewrite_is_prose() -> None:
    """What is offered can be typed as it is: a question, or a command of the shell. Advice goes into the reason."""
    texts = [text for path in sorted(SRC.rglob("*.py")) for text in offered(nodes_of(path))]
    assert [text for text in texts if not text.startswith(("SELECT ", "DESCRIBE ", "\\"))] == []


def test_a_rewrite_in_prose_is_found() -> None:
    wrong = "raise QueryError('no', rewrite='ask less')\nraise QueryError('no', rewrite=f'try {x}')\n"
    assert offered(ast.walk(ast.parse(wrong))) == ["ask less", "try "]
