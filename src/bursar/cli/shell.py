"""`bursar shell`: ask one question after the other, with completion, history, and the budget at hand."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from bursar.cli.opened import Stopped, Watch, working
from bursar.compile.values import ListedKeys, known_by_bin
from bursar.core.domain import Attribute, Dates, Domain, Value
from bursar.errors import BursarError, GoalError, QueryError, Unsupported
from bursar.planner.explain import Explanation
from bursar.planner.goals import Wanted, goal_of
from bursar.remote import Remote
from bursar.report import text as show
from bursar.sql.parameters import resolve_day
from bursar.sql.parse import read_syntax
from bursar.sql.tokens import needs_quotes, questions_of

if TYPE_CHECKING:
    from bursar import Bursar
    from bursar.answer import Answer


HISTORY_LINES = 1000

HELP = r"""SELECT ...;          ask; the answer is paid from the budget. A semicolon or an empty line ends a question.
\explain SELECT ...  every way to answer, with its cost and its error; free
\budget              what is spent, on what, and what is left
\d                   the table, its columns and their values
\goal                the accuracy of questions that name none; set it with
                     \goal 50   \goal 2% 99%   \goal rmse 20   \goal epsilon 0.1   \goal off
\out FILE            write the last answer: .csv, .parquet, .png, .svg or .pdf
\help  \q            this page; leave (also Ctrl-D)
The tab key completes. Ctrl-C clears a line, or stops a question and says what was charged."""


class Shell:
    """One person at a terminal. Errors are told and cost nothing; the shell goes on."""

    def __init__(self, bursar: Bursar | Remote, wanted: Wanted) -> None:
        self._bursar, self._wanted = bursar, wanted
        self.facts = bursar.columns()
        others = [name for name in self.facts.tables if name != self.facts.table]
        self.all_facts = (self.facts, *(bursar.table(name).columns() for name in others))
        self._last: Answer | None = None
        self._watch = Watch(bursar)
        self._commands: dict[str, Callable[[str], None]] = {
            "explain": self._explain,
            "budget": self._budget,
            "d": self._describe,
            "goal": self._goal,
            "out": self._out,
            "help": lambda _: print(HELP),
        }

    def run(self, read: Callable[[str], str]) -> None:
        """Read and answer until the person leaves. `read` is given the prompt, and raises EOFError at the end."""
        prompt = f"{show.plain(self.facts.table)}> "
        print(f"{self._bursar.budget().description}; \\help shows what can be done, \\q leaves")
        lines: list[str] = []
        while True:
            try:
                line = read(prompt if not lines else f"{'...> ':>{len(prompt)}}")
                if line.strip() in (r"\q", r"\quit", *(() if lines else ("quit", "exit"))):
                    return
                if lines and line.lstrip().startswith("\\") and not _in_quotes("\n".join(lines)):  # as in psql
                    self.take(line.strip())
                    continue
                lines.append(line)
                if _ended(lines):
                    text, lines = "\n".join(lines).strip(), []
                    self.take(text)
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                lines = []
                print()

    def take(self, text: str) -> None:
        """Do what a line or a statement says."""
        try:
            if text.startswith("\\"):
                name, _, words = text[1:].partition(" ")
                if name not in self._commands:
                    raise QueryError(f"there is no \\{show.plain(name)}", rewrite=r"\help")
                self._commands[name](words.strip().rstrip(";").strip())
            elif text:
                for question in questions_of(text):
                    self._ask(question)
        except BursarError as error:
            print(error, file=sys.stderr)
        except Stopped as stop:
            print(f"\n{stop}")

    def _ask(self, question: str) -> None:
        with self._watch.over(question), working("at work"):
            result = self._bursar.run(question, self._goal_for(question))
        self._last = None if isinstance(result, Explanation) else result
        show.answer(result, as_json=False, bars=True)

    def _goal_for(self, question: str) -> Wanted:
        """The goal of the session, for questions that name none."""
        try:
            return Wanted() if read_syntax(resolve_day(question).text).goal is not None else self._wanted
        except QueryError:
            return Wanted()  # asking will refuse it, and then knows the columns

    def _explain(self, question: str) -> None:
        with working("at work"):
            goal = asdict(self._goal_for(question))
            del goal["strategy"]  # of batches
            explanation = self._bursar.explain(question, **goal)
        print(explanation)

    def _budget(self, _: str) -> None:
        show.budget(self._bursar.budget(), self._bursar.spending(), as_json=False, png=None)

    def _describe(self, _: str) -> None:
        for facts in self.all_facts:
            wide = max(len(show.plain(name)) for name in facts.columns.names)
            print(f"table {show.plain(facts.table)}")
            for column in facts.columns.attributes:
                print(f"  {show.plain(column.name):<{wide}}  {show.plain(described(column))}")

    def _goal(self, words: str) -> None:
        if words:
            self._wanted = _goal_of(words.split())
        named = self._wanted.goal()
        goal = self.facts.goal if named is None else named.describe()
        print("no goal: each question names its own" if goal is None else f"goal: {goal}")

    def _out(self, name: str) -> None:
        from bursar.report import files

        if self._last is None:
            raise QueryError("there is no answer to write yet")
        if not name:
            raise QueryError("a file name is missing", rewrite=r"\out answer.csv")
        files.write(self._last, Path(name))
        print(f"written to {name}")


def _ended(lines: list[str]) -> bool:
    """Whether a statement is complete: a command is one line, a question ends with a semicolon or an empty line."""
    text = "\n".join(lines)
    if text.lstrip().startswith("\\") or not lines[-1].strip():
        return True
    return text.rstrip().endswith(";") and not _in_quotes(text)


def _in_quotes(text: str) -> bool:
    """Whether a text ends within quotes."""
    return any(text.count(quote) % 2 for quote in "'\"")


def _goal_of(words: list[str]) -> Wanted:
    if words == ["off"]:
        return Wanted()
    kind = words[0].lower()
    named = {"error": "within", "within": "within", "rmse": "rmse", "epsilon": "epsilon", "rho": "rho"}.get(kind)
    amount, *confidence = words[1:] if named is not None and len(words) > 1 else words
    if len(confidence) > 1:
        raise GoalError("a goal is an amount, and a confidence if you like, for example: \\goal 50 99%")
    goal = goal_of(named or "within", amount, confidence=confidence[0] if confidence else None)
    goal.goal()  # refused here, and the goal stays as it was
    return goal


def default_history() -> Path:
    """Among the person's own files, never beside the ledger."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "bursar" / "history"


def shell(bursar: Bursar | Remote, *, wanted: Wanted, history: Path | None) -> None:
    """Run a shell at the terminal; `history` is the file that keeps the lines, None for none."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise Unsupported("the shell needs a terminal\ntry: bursar query - or bursar batch FILE")
    beside = None if isinstance(bursar, Remote) else bursar.config.ledger_path.parent.resolve()
    if history is not None and beside in history.resolve().parents:
        raise Unsupported("the history of the shell is not kept beside the ledger\ntry: --history FILE, elsewhere")
    session = Shell(bursar, wanted)
    try:
        import readline
    except ImportError:  # no line editing on this system; the rest works without
        session.run(input)
        return
    completer = Completer(tables={facts.table: facts.columns for facts in session.all_facts})
    completions: list[str] = []

    def complete(text: str, state: int) -> str | None:
        nonlocal completions
        if state == 0:
            completions = completer.complete(readline.get_line_buffer()[: readline.get_endidx()], readline.get_begidx())
        return completions[state] if state < len(completions) else None

    readline.set_completer(complete)
    readline.set_completer_delims(DELIMITERS)
    readline.parse_and_bind("tab: complete")
    _recall(readline, history)
    try:
        session.run(input)
    finally:
        readline.set_completer(None)
        if history is not None:
            with suppress(OSError):
                readline.write_history_file(history)


def _recall(readline: ModuleType, history: Path | None) -> None:
    readline.clear_history()
    readline.set_history_length(HISTORY_LINES)
    if history is None:
        return
    try:
        history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(history, os.O_CREAT | os.O_RDONLY, 0o600))
        readline.read_history_file(history)
    except OSError:
        print(f"no history is kept: {history} cannot be used", file=sys.stderr)


KEYWORDS = (
    *("SELECT", "COUNT(*)", "FROM", "WHERE", "GROUP BY", "AND", "OR", "NOT", "IN", "BETWEEN", "IS NULL", "AS"),
    *("AVG(", "SUM(", "MEDIAN(", "STDDEV(", "FILTER (WHERE", "EXPLAIN", "WITH ERROR", "WITH RELATIVE ERROR", "FLOOR"),
    *("WITH RMSE", "CONFIDENCE"),
)
COMMANDS = (r"\budget", r"\d", r"\explain", r"\goal", r"\help", r"\out", r"\q")

DELIMITERS = " \t\n,()=<>;"
"""What ends a word for readline; quotes are not among them, so that a value is completed with its quotes."""

MOST_VALUES = 200

_COMPARED = re.compile(
    r"""(?P<name> "(?:[^"]|"")+" | \w+ ) \s* (?: = | <> | != | <=? | >=? | \b(?:NOT\s+)?IN\s*\( (?:[^()]*,)? ) \s* $""",
    re.IGNORECASE | re.VERBOSE,
)
"""A column that stands before a comparison, or before a list."""


@dataclass(frozen=True, kw_only=True)
class Completer:
    """Public facts alone: the config's tables and their columns."""

    tables: Mapping[str, Domain]

    def complete(self, line: str, begin: int) -> list[str]:
        """What may stand from `begin` to the end of the line; a value is offered with its quotes.

        `begin` is where readline sees the word begin. Inside quotes that may be later than where the value does, and
        then only the rest of the value is offered.
        """
        if line.startswith("\\") and " " not in line:
            return [command for command in COMMANDS if command.startswith(line)]
        start = _start(line)
        word = line[start:]
        completions = [each for each in self._candidates(line[:start], word) if _begins(each, word)]
        return [each[begin - start :] for each in dict.fromkeys(completions)]

    def _candidates(self, before: str, word: str) -> list[str]:
        compared = _COMPARED.search(before)
        column = None if compared is None else self._column(compared["name"])
        if column is not None:
            return _values(column)
        if word.startswith("'"):
            return [value for column in self._columns for value in _values(column) if value.startswith("'")]
        if before.rstrip().upper().endswith("FROM"):
            return [_name(table) for table in self.tables]
        return [*(_name(column.name) for column in self._columns), *KEYWORDS, *map(_name, self.tables)]

    @property
    def _columns(self) -> list[Attribute]:
        return [column for domain in self.tables.values() for column in domain.attributes]

    def _column(self, name: str) -> Attribute | None:
        bare = name[1:-1].replace('""', '"') if name.startswith('"') else name
        return next((a for a in self._columns if a.name.casefold() == bare.casefold()), None)


def _start(line: str) -> int:
    """Where the word begins that the line ends with; inside quotes, where they were opened."""
    for quote in "'\"":
        if line.count(quote) % 2:
            return line.rindex(quote)
    return max((line.rfind(each) for each in DELIMITERS), default=-1) + 1


def _begins(candidate: str, word: str) -> bool:
    return candidate.casefold().startswith(word.casefold())


def _values(column: Attribute) -> list[str]:
    if known_by_bin(column):
        return [f"{edge:.15g}" for edge in column.edges[:MOST_VALUES]]
    return [_literal(column.declared_label(cell)) for cell in range(min(column.declared, MOST_VALUES))]


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if needs_quotes(name) else name


def described(column: Attribute) -> str:
    """The values of a column in words, for `\\d`."""
    if isinstance(column, ListedKeys):
        texts = ", ".join(_literal(text) for text in column.values[:8]) + (", ..." if len(column.values) > 8 else "")
        told = f": {texts}" if texts else ""
        return f"open, {len(column.cells)} of its texts told apart{told}{_strays(column)}"
    labels = [column.declared_label(cell) for cell in (0, column.declared - 1)]
    if column.ordered:
        what = f"{column.by.value}s" if isinstance(column, Dates) else "bins" if known_by_bin(column) else "numbers"
        told = f"{column.declared} {what}, {labels[0]} to {labels[1]}"
    else:
        shown = [_literal(column.declared_label(cell)) for cell in range(min(column.declared, 8))]
        told = ", ".join(shown) + (f", ... ({column.declared} values)" if column.declared > len(shown) else "")
    return told + _strays(column)


def _strays(column: Attribute) -> str:
    return ("; other" if column.other is not None else "") + ("; NULL" if column.has_null and column.nullable else "")
