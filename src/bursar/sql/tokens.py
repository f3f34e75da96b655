"""The words of one statement: limits that hold before anything is parsed, and the accuracy clause, which is cut off.

`WITH ERROR 50 CONFIDENCE 95%` stands at the end, or `/*+ error(50) confidence(95%) */` anywhere. Outputs may have
errors of their own: `WITH ERROR 50 ON n, 2% ON total`; an amount without ON is for all others. `WITH RELATIVE ERROR 5%
FLOOR 200` is 5 % of each true count, or of 200 where that is more. The clause is cut off
at the level of tokens, so words inside strings, names and ordinary comments are never taken for it.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from decimal import Decimal

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokens import Token, TokenType

from bursar.errors import GoalError, QueryError
from bursar.goal import Goal, GoalKind, OutputGoal
from bursar.lazy_dataclass import dataclass

LARGEST_TEXT = 8 * 1024
"""Most bytes of a question."""

DEEPEST = 20
"""Most levels of brackets, CASEs, NOTs and signs inside one another; the parser recurses on each."""

MOST_ITEMS = 500
"""Most items between two brackets."""

LONGEST_CHAIN = 80
"""Most levels of a syntax tree without AND and OR: `a + b + c` and `x::int::text` nest without brackets."""

MOST_KEYS = 64
"""Most items of GROUP BY."""

MOST_TEDIOUS = 8
"""Most of each thing that no question has and that the parser takes long for."""

NO_JOINS = (
    "joins are not available here: they are for tables that the config declares; the data owner can declare one under "
    "[tables], or join tables behind this one, as a view"
)

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_TYPES = DuckDB.Parser.TYPE_TOKENS


def statement_tokens(text: str) -> tuple[list[Token], bool]:
    """The words of the one question, without EXPLAIN and closing semicolons; and whether EXPLAIN stood there.

    Guarantees: the offsets of the tokens are those of the text, and the limits above hold.
    """
    if not isinstance(text, str):
        raise QueryError("a question is text")
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST_TEXT:
        raise QueryError(f"a question has at most {LARGEST_TEXT} bytes")
    tokens = tokenize(text)
    explain = bool(tokens) and tokens[0].token_type is TokenType.COMMAND and tokens[0].text.upper() == "EXPLAIN"
    if explain:
        # The tokenizer swallows the rest of a command as one string, so it is shown the text without the word.
        word = tokens[0]
        tokens = tokenize(text[: word.start] + " " * (word.end + 1 - word.start) + text[word.end + 1 :])
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    ticks = [token.start for token in tokens if token.token_type is TokenType.UNKNOWN and token.text == "`"]
    if ticks and text.count("`") == len(ticks) and not len(ticks) % 2 and '"' not in text:
        return statement_tokens(text.replace("`", '"'))  # as long as it was, so that places stay
    if ticks:
        raise QueryError('names are quoted like "this"', position=ticks[0])
    tokens = numbered_placeholders(without_top(without_escapes(tokens)))
    _begins_with_select(text, tokens, explain)
    _check(tokens)
    _check_tedious(tokens)
    return tokens, explain


class _Silence(logging.Filter):
    """Keeps what the parser would log of a question to itself, while a question is read."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _reading.get()


_reading: ContextVar[bool] = ContextVar("reading", default=False)
logging.getLogger("sqlglot").addFilter(_Silence())


@contextmanager
def silently() -> Iterator[None]:
    """Inside, the parser logs nothing: its lines have words of the question in them."""
    token = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(token)


def tokenize(text: str) -> list[Token]:
    """The tokens of DuckDB's SQL; whatever cannot be split into tokens is refused."""
    try:
        with silently():
            return list(DuckDB().tokenize(text))
    except Exception as fault:  # the tokenizer is not ours: no junk may bring up an error of its own
        raise QueryError("the question cannot be split into words: is a quote or a comment left open?") from fault


_ESCAPES = {"D": TokenType.DATE, "TS": TokenType.TIMESTAMP}


def without_escapes(tokens: list[Token]) -> list[Token]:
    """ODBC and JDBC escapes: {d '2024-12-31'} is DATE '2024-12-31', {fn UCASE(x)} is UCASE(x)."""
    kept: list[Token] = []
    open_braces = 0
    for place, token in enumerate(tokens):
        then = tokens[place + 1] if place + 1 < len(tokens) else None
        before = tokens[place - 1] if place else None
        word = str(token.text).upper()
        if token.token_type is TokenType.L_BRACE and then is not None and str(then.text).upper() in (*_ESCAPES, "FN"):
            open_braces += 1
        elif token.token_type is TokenType.R_BRACE and open_braces:
            open_braces -= 1
        elif before is not None and before.token_type is TokenType.L_BRACE and word in (*_ESCAPES, "FN"):
            if word != "FN":
                kept.append(_token(_ESCAPES[word], {"D": "DATE", "TS": "TIMESTAMP"}[word], token))
        else:
            kept.append(token)
    return kept


def without_top(tokens: list[Token]) -> list[Token]:
    """SELECT TOP 5 ... is SELECT ... LIMIT 5."""
    words = [str(token.text).upper() for token in tokens[:3]]
    if words[:2] != ["SELECT", "TOP"] or len(tokens) < 4 or tokens[2].token_type is not TokenType.NUMBER:
        return tokens
    limit = _token(TokenType.LIMIT, "LIMIT", tokens[1])
    return [tokens[0], *tokens[3:], limit, tokens[2]]


def numbered_placeholders(tokens: list[Token]) -> list[Token]:
    """? is $1, $2, ... in the order of the text, which a syntax tree does not keep."""
    if not any(token.token_type is TokenType.PLACEHOLDER for token in tokens):
        return tokens
    numbered: list[Token] = []
    numbers = itertools.count(1)
    for token in tokens:
        if token.token_type is TokenType.PARAMETER:
            raise QueryError("parameters are all written ?, or all $1, or all :name", position=token.start)
        if token.token_type is TokenType.PLACEHOLDER:
            numbered += [_token(TokenType.PARAMETER, "$", token), _token(TokenType.NUMBER, str(next(numbers)), token)]
        else:
            numbered.append(token)
    return numbered


def _token(kind: TokenType, text: str, place: Token) -> Token:
    return Token(kind, text, place.line, place.col, place.start, place.end)


def needs_quotes(name: str) -> bool:
    """Whether a name cannot stand in a question as it is; words that may be keywords are quoted to be safe."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) is None or name.upper() in DuckDB.Tokenizer.KEYWORDS


def depths(tokens: list[Token]) -> list[int]:
    """How many brackets and CASEs are open before each token."""
    steps = [(t.token_type in _OPENING) - (t.token_type in _CLOSING) for t in tokens]
    return list(itertools.accumulate(steps, initial=0))[: len(tokens)]


def _begins_with_select(text: str, tokens: list[Token], explain: bool) -> None:
    if not tokens:
        raise QueryError("there is no question")
    outer = [t for t, deep in zip(tokens, depths(tokens), strict=True) if t.token_type is TokenType.SELECT and not deep]
    first = tokens[0].token_type
    if first in (TokenType.SELECT, TokenType.PIVOT) or (first in (TokenType.WITH, TokenType.FROM) and outer):
        return
    selects = [token.start for token in tokens if token.token_type is TokenType.SELECT]
    bracketed = tokens[0].token_type is TokenType.L_PAREN and tokens[-1].token_type is TokenType.R_PAREN
    end = tokens[-1].start if bracketed else tokens[-1].end + 1
    if str(tokens[0].text).upper() == "SUMMARIZE" and len(tokens) == 2:
        raise QueryError(
            "SUMMARIZE would show what single people have; DESCRIBE shows what is declared",
            position=tokens[0].start,
            rewrite=f"DESCRIBE {text[tokens[1].start : tokens[1].end + 1]}",
            differs="tells what is declared about each column, and nothing is measured",
        )
    raise QueryError(
        "a question begins with SELECT, or EXPLAIN SELECT; nothing else is run",
        position=tokens[0].start,
        rewrite="EXPLAIN " * explain + text[selects[0] : end] if selects else "",
    )


def _check(tokens: list[Token]) -> None:
    items = [0]  # commas seen so far in each open bracket
    prefixes = 0
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.SEMICOLON:
            raise QueryError("only one statement can be asked at a time", position=token.start)
        prefixes = prefixes + 1 if kind in _PREFIXES else 0
        if kind in _OPENING:
            items.append(0)
        elif kind in _CLOSING:
            items = items[:-1] or [0]
        elif kind is TokenType.COMMA:
            items[-1] += 1
            if len(items) > 1 and items[-1] >= MOST_ITEMS:
                raise QueryError(f"a list has at most {MOST_ITEMS} items", position=token.start)
        if len(items) - 1 + prefixes > DEEPEST:
            raise QueryError(f"conditions can be nested at most {DEEPEST} deep", position=token.start)


def _check_tedious(tokens: list[Token]) -> None:
    """Each JOIN without ON, and each type with brackets inside another, doubles the parser's time; [ ] square it."""
    tedious = {
        NO_JOINS: [t for t in tokens if t.token_type is TokenType.JOIN],
        "square brackets are not available": [t for t in tokens if t.token_type is TokenType.L_BRACKET],
        "functions are not available": [
            word
            for word, then in itertools.pairwise(tokens)
            if word.token_type in _TYPES and then.token_type is TokenType.L_PAREN
        ],
    }
    for reason, places in tedious.items():
        if len(places) > MOST_TEDIOUS:
            raise QueryError(reason, position=places[0].start)


LARGEST_SCRIPT = 2**20
MOST_QUESTIONS = 1000


def questions_of(text: str) -> list[str]:
    """The questions of a script. Semicolons inside quotes and comments separate nothing."""
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST_SCRIPT:
        raise QueryError(f"a file of questions has at most {LARGEST_SCRIPT} bytes")
    pieces: list[str] = []
    start: int | None = None
    for token in tokenize(text):
        if token.token_type is TokenType.SEMICOLON:
            pieces += [] if start is None else [text[start : token.start].strip()]
            start = None
        elif start is None:
            start = token.start
    pieces += [] if start is None else [text[start:].strip()]
    if not pieces:
        raise QueryError("the file has no question in it")
    if len(pieces) > MOST_QUESTIONS:
        raise QueryError(f"a batch has at most {MOST_QUESTIONS} questions")
    return pieces


_RELATIVE = "RELATIVE_ERROR"
_KINDS = {
    "ERROR": GoalKind.ERROR,
    _RELATIVE: GoalKind.ERROR,
    "RMSE": GoalKind.RMSE,
    "EPSILON": GoalKind.SPEND,
    "RHO": GoalKind.SPEND,
}
_NAMES = (*_KINDS, "CONFIDENCE", "FLOOR")

_CLAUSES = (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT)
"""What may have been written behind the accuracy by mistake."""


@dataclass(frozen=True, kw_only=True)
class AccuracyTerm:
    """One named amount, with the offsets in the text between which its number stands."""

    name: str
    amount: float
    percent: bool
    position: int
    end: int
    output: str | None = None  # behind ON


@dataclass(frozen=True, kw_only=True)
class Hint:
    """The terms of a `/*+ */` comment, with the offsets between which it stands."""

    terms: list[AccuracyTerm]
    position: int
    end: int


def cut_accuracy(text: str, tokens: list[Token]) -> tuple[list[Token], Goal | None]:
    """The tokens without the clause, and the goal it states, if there is one.

    A WITH outside of brackets begins the clause, unless it is the first word of the statement.
    """
    hint = _hint(text, tokens)
    withs = [
        place
        for place, (token, deep) in enumerate(zip(tokens, depths(tokens), strict=True))
        if token.token_type is TokenType.WITH and deep == 0 and place > 0
    ]
    if not withs:
        return tokens, None if hint is None else _goal(text, hint.terms)
    terms = _clause(text, tokens, withs[0])
    if hint is not None:
        raise QueryError(
            "the accuracy is given twice, in a WITH clause and in a comment",
            position=hint.position,
            rewrite=text[: hint.position] + text[hint.end :],
        )
    return tokens[: withs[0]], _goal(text, terms)


def _options(text: str, tokens: list[Token], start: int) -> QueryError:
    """The refusal of SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (...), with what it would spend behind the question."""
    inside = depths(tokens)
    ends = [at for at in range(start + 3, len(tokens) - 1) if tokens[at].token_type in _CLOSING and inside[at] == 1]
    words = [str(token.text) for token in tokens[start : ends[0] if ends else start]]
    spent = next((words[at + 2] for at in range(len(words) - 2) if words[at : at + 2] == ["epsilon", "="]), "")
    rest = f"{text[: tokens[start].start]}{text[tokens[ends[0]].end + 1 :].strip()}" if ends and spent else ""
    return QueryError(
        "who is protected, delta and all bounds are declared by the data owner, and are not part of a question; what "
        "it may cost stands behind it, as in WITH EPSILON 0.1",
        position=tokens[start].start,
        rewrite=f"{rest} WITH EPSILON {spent}" if rest else "",
        differs="has the bounds and the delta of the config, whatever the options say" if rest else "",
    )


def accuracy_text(text: str, tokens: list[Token], without: list[Token]) -> str:
    """What states the accuracy, as it is written, of tokens that it was cut off from: the clause, or the comment."""
    clause = tokens[len(without) :]
    if clause:
        return text[clause[0].start : clause[-1].end + 1]
    hint = next(comment for token in tokens for comment in token.comments if comment.startswith("+"))
    return f"/*{hint}*/"


def _clause(text: str, tokens: list[Token], start: int) -> list[AccuracyTerm]:
    terms: list[AccuracyTerm] = []
    at = start + 1
    while at < len(tokens) and (relative := _relative(tokens, at), _word(tokens[at + relative]) in _NAMES)[1]:
        more, at = _terms(tokens, at + relative)
        terms += [replace(term, name=_RELATIVE) for term in more] if relative else more
    if not terms and at < len(tokens) and _word(tokens[at]) in ("ROLLUP", "CUBE"):
        raise QueryError(
            "totals are written GROUP BY ROLLUP (a, b), without WITH",
            position=tokens[at].start,
        )
    if not terms and at + 2 < len(tokens) and _word(tokens[at]) in ("DIFFERENTIAL_PRIVACY", "ANONYMIZATION"):
        raise _options(text, tokens, start)
    if not terms:
        raise QueryError(
            "after WITH comes ERROR, RELATIVE ERROR, RMSE, EPSILON or RHO, for example WITH ERROR 50 CONFIDENCE 95%",
            position=tokens[at].start if at < len(tokens) else len(text),
        )
    if at < len(tokens):
        clause = text[tokens[start].start : tokens[at - 1].end + 1]
        misplaced_text = text[tokens[at].start : tokens[-1].end + 1]
        misplaced = tokens[at].token_type in _CLAUSES
        raise QueryError(
            "nothing can follow the accuracy clause",
            position=tokens[at].start,
            rewrite=f"{text[: tokens[start].start]}{misplaced_text} {clause}" if misplaced else "",
        )
    return terms


def _relative(tokens: list[Token], at: int) -> bool:
    """Whether RELATIVE ERROR stands here, which is one name in two words."""
    return at + 1 < len(tokens) and (_word(tokens[at]), _word(tokens[at + 1])) == ("RELATIVE", "ERROR")


def _hint(text: str, tokens: list[Token]) -> Hint | None:
    hint: Hint | None = None
    # Between two tokens there is nothing but blanks and comments. A comment is handed over with the token before it
    # or behind it and without its place, and a line comment that begins with + is found nowhere in this form.
    gaps = zip([0, *(t.end + 1 for t in tokens)], [*(t.start for t in tokens), len(text)], strict=True)
    places = [text[low:high] for low, high in gaps]
    for number, token in enumerate(tokens):
        for comment in token.comments:
            whole = f"/*{comment}*/"
            before, behind = places[number].find(whole), places[number + 1].find(whole)
            if not comment.startswith("+") or (before < 0 and behind < 0):
                continue
            start = token.end + 1 + behind if behind >= 0 else token.start - len(places[number]) + before
            if hint is not None:
                raise QueryError("the accuracy is given twice, in two comments", position=start)
            hint = Hint(terms=_hinted(comment, start), position=start, end=start + len(whole))
    return hint


def _hinted(comment: str, low: int) -> list[AccuracyTerm]:
    unclear = QueryError(
        "a /*+ */ comment states an accuracy, for example /*+ error(50) confidence(95%) */", position=low
    )
    try:
        tokens = tokenize(comment[1:])
    except QueryError:
        raise unclear from None
    terms: list[AccuracyTerm] = []
    at = 0
    while at + 1 < len(tokens) and _word(tokens[at]) in _NAMES and tokens[at + 1].token_type is TokenType.L_PAREN:
        more, behind = _terms([tokens[at], *tokens[at + 2 :]], 0, offset=low + 3)
        terms += more
        at += behind + 1
        if at >= len(tokens) or tokens[at].token_type is not TokenType.R_PAREN:
            last = terms[-1]
            raise QueryError(f"a closing bracket is missing after {last.name.lower()}", position=last.end)
        at += 1
        if at < len(tokens) and tokens[at].token_type is TokenType.COMMA:
            at += 1
    if at < len(tokens) or not terms:
        raise unclear
    return terms


def _terms(tokens: list[Token], at: int, *, offset: int = 0) -> tuple[list[AccuracyTerm], int]:
    """The name at `at` with the amounts behind it, and the place of the token after them."""
    term, behind = _term(tokens, at, at + 1, offset)
    terms = [term]
    while term.name == "ERROR" and behind < len(tokens) and tokens[behind].token_type is TokenType.COMMA:
        term, after = _term(tokens, at, behind + 1, offset)
        if term.output is None and terms[-1].output is None:
            break  # a comma between two amounts of which none is ON anything: not ours
        terms.append(term)
        behind = after
    return terms, behind


def _term(tokens: list[Token], at: int, first: int, offset: int) -> tuple[AccuracyTerm, int]:
    """The name at `at` with the number at `first`, its % and its ON, and the place of the token after that."""
    name = tokens[at]
    number = first + (first < len(tokens) and tokens[first].token_type is TokenType.DOT)  # .5 is two tokens
    if number >= len(tokens) or tokens[number].token_type is not TokenType.NUMBER:
        place = tokens[first].start if first < len(tokens) else tokens[-1].end + 1
        raise QueryError(f"a positive number is expected after {name.text}", position=place + offset)
    percent = number + 1 < len(tokens) and tokens[number + 1].token_type is TokenType.MOD
    try:
        digits = Decimal(("." if number > first else "") + tokens[number].text)
        amount = float(digits)
        if percent and _word(name) == "CONFIDENCE":
            amount = float(digits / 100)  # in decimal digits: 99.9% is 0.999
    except ArithmeticError:
        raise QueryError("this is not a number in range", position=tokens[first].start + offset) from None
    behind, output = number + 1 + percent, None
    if behind < len(tokens) and tokens[behind].token_type is TokenType.ON and _word(name) == "ERROR":
        if behind + 1 >= len(tokens) or not _is_name(tokens[behind + 1]):
            raise QueryError("after ON comes the name of an output", position=tokens[behind].start + offset)
        output, behind = str(tokens[behind + 1].text), behind + 2
    term = AccuracyTerm(
        name=_word(name),
        amount=amount,
        percent=percent,
        position=tokens[first].start + offset,
        end=tokens[number].end + 1 + offset,
        output=output,
    )
    return term, behind


def _is_name(token: Token) -> bool:
    return token.token_type is TokenType.IDENTIFIER or str(token.text)[:1].isalpha() or str(token.text)[:1] == "_"


def _word(token: Token) -> str:
    quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    return "" if quoted else str(token.text.upper())


def _goal(text: str, terms: list[AccuracyTerm]) -> Goal:
    amounts = [term for term in terms if term.name in _KINDS]
    confidences, floors = ([term for term in terms if term.name == name] for name in ("CONFIDENCE", "FLOOR"))
    several = len(amounts) > 1 and any(term.output is not None for term in amounts)
    if not amounts or (len(amounts) > 1 and not (several and len({term.name for term in amounts}) == 1)):
        place = amounts[1].position if amounts else terms[0].position
        raise QueryError("state exactly one of ERROR, RMSE, EPSILON and RHO", position=place)
    if len(confidences) > 1:
        raise QueryError("the confidence is given twice", position=confidences[1].position)
    first, kind = amounts[0], _KINDS[amounts[0].name]
    relative = first.name == _RELATIVE
    _check_relative(text, first, floors)
    if kind is GoalKind.SPEND and first.percent:
        raise QueryError(f"{first.name} is a price, not a percentage", position=first.position)
    for sure in confidences:
        if not 0 < sure.amount < 1:
            raise QueryError(
                "a confidence lies strictly between 0% and 100%, or 0 and 1",
                position=sure.position,
                rewrite="" if sure.percent else f"{text[: sure.end]}%{text[sure.end :]}",
            )
    unit = first.name.lower() if kind is GoalKind.SPEND else ""
    output_goals = [
        OutputGoal(amount=term.amount, percent=term.percent, output=term.output, position=term.position)
        for term in amounts
    ]
    parts = tuple(output_goals) if several or first.output is not None else ()
    try:
        goal = Goal(
            kind=kind,
            amount=first.amount,
            percent=first.percent,
            unit=unit,
            parts=parts,
            relative=relative,
            floor=floors[0].amount if floors else None,
        )
        return replace(goal, confidence=confidences[0].amount) if confidences else goal
    except GoalError as fault:
        raise QueryError(str(fault), position=first.position) from None


def _check_relative(text: str, first: AccuracyTerm, floors: list[AccuracyTerm]) -> None:
    """Refuse a relative error that is no percentage, and floors of anything else."""
    if first.name == _RELATIVE and not first.percent:
        raise QueryError(
            "a relative error is a percentage of each true count",
            position=first.position,
            rewrite=f"{text[: first.end]}%{text[first.end :]}",
        )
    if len(floors) > 1 or (floors and (first.name != _RELATIVE or floors[0].percent)):
        raise QueryError(
            "FLOOR is one number of rows, behind RELATIVE ERROR: WITH RELATIVE ERROR 5% FLOOR 200",
            position=floors[-1].position,
        )


def bind_goal(goal: Goal | None, outputs: Sequence[str]) -> Goal | None:
    """The goal with the names behind ON as the outputs are called; refused unless every output has one error."""
    if goal is None or not goal.parts:
        return goal
    named = {name.casefold(): name for name in outputs}
    parts: dict[str | None, OutputGoal] = {}
    for part in goal.parts:
        output = None if part.output is None else named.get(part.output.casefold())
        if output is None and part.output is not None:
            shown = ", ".join(outputs)
            raise QueryError(f"nothing is called {part.output} here; there is {shown}", position=part.position)
        if output in parts:
            what = "all others" if output is None else output
            raise QueryError(f"the error of {what} is given twice", position=part.position)
        parts[output] = replace(part, output=output)
    bare = [name for name in outputs if name not in parts]
    if bare and None not in parts:
        raise QueryError(
            f"no error is given for {bare[0]}; an amount without ON is for all that are not named",
            position=goal.parts[0].position,
        )
    return replace(goal, parts=tuple(parts.values()))


def nearest_goal(goal: Goal | None, outputs: Sequence[str]) -> Goal | None:
    """A goal near to the given one that `bind_goal` accepts: parts of unknown outputs go, others get the first."""
    if goal is None or not goal.parts:
        return goal
    named = {name.casefold(): name for name in outputs}
    parts: dict[str | None, OutputGoal] = {}
    for part in goal.parts:
        output = None if part.output is None else named.get(part.output.casefold())
        if part.output is None or output is not None:
            parts.setdefault(output, replace(part, output=output))
    if None not in parts and any(name not in parts for name in outputs):
        parts[None] = replace(goal.parts[0], output=None)
    return replace(goal, parts=tuple(parts.values()) if set(parts) != {None} else ())
