"""The accuracy clause: `WITH ERROR 50 CONFIDENCE 95%` at the end, or the comment `/*+ error(50) confidence(95%) */`.

Outputs may have errors of their own: `WITH ERROR 50 ON n, 2% ON total`; an amount without ON is for all others.

It is cut off at the level of tokens, so words inside strings, names and ordinary comments are never taken for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot.tokens import TokenType

from bursar.errors import GoalError, QueryError
from bursar.goal import Goal, GoalKind, OutputGoal
from bursar.sql.tokens import Token, depths, tokenize

_KINDS = {
    "ERROR": GoalKind.ERROR,
    "RMSE": GoalKind.RMSE,
    "EPSILON": GoalKind.SPEND,
    "RHO": GoalKind.SPEND,
}
_NAMES = (*_KINDS, "CONFIDENCE")

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


def _clause(text: str, tokens: list[Token], start: int) -> list[AccuracyTerm]:
    terms: list[AccuracyTerm] = []
    at = start + 1
    while at < len(tokens) and _word(tokens[at]) in _NAMES:
        found, at = _terms(tokens, at)
        terms += found
    if not terms and at < len(tokens) and _word(tokens[at]) in ("ROLLUP", "CUBE"):
        raise QueryError(
            "totals are written GROUP BY ROLLUP (a, b), without WITH",
            position=tokens[at].start,
        )
    if not terms:
        raise QueryError(
            "after WITH comes ERROR, RMSE, EPSILON or RHO, for example WITH ERROR 50 CONFIDENCE 95%",
            position=tokens[at].start if at < len(tokens) else len(text),
        )
    if at < len(tokens):
        clause = text[tokens[start].start : tokens[at - 1].end + 1]
        rest = text[tokens[at].start : tokens[-1].end + 1]
        misplaced = tokens[at].token_type in _CLAUSES
        raise QueryError(
            "nothing can follow the accuracy clause",
            position=tokens[at].start,
            rewrite=f"{text[: tokens[start].start]}{rest} {clause}" if misplaced else "",
        )
    return terms


def _hint(text: str, tokens: list[Token]) -> Hint | None:
    found: Hint | None = None
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
            if found is not None:
                raise QueryError("the accuracy is given twice, in two comments", position=start)
            found = Hint(terms=_hinted(comment, start), position=start, end=start + len(whole))
    return found


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
        found, behind = _terms([tokens[at], *tokens[at + 2 :]], 0, offset=low + 3)
        terms += found
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
    found = [term]
    while term.name == "ERROR" and behind < len(tokens) and tokens[behind].token_type is TokenType.COMMA:
        term, after = _term(tokens, at, behind + 1, offset)
        if term.output is None and found[-1].output is None:
            break  # a comma between two amounts of which none is ON anything: not ours
        found.append(term)
        behind = after
    return found, behind


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
    amounts = [term for term in terms if term.name != "CONFIDENCE"]
    confidences = [term for term in terms if term.name == "CONFIDENCE"]
    several = len(amounts) > 1 and any(term.output is not None for term in amounts)
    if not amounts or (len(amounts) > 1 and not (several and len({term.name for term in amounts}) == 1)):
        place = amounts[1].position if amounts else terms[0].position
        raise QueryError("state exactly one of ERROR, RMSE, EPSILON and RHO", position=place)
    if len(confidences) > 1:
        raise QueryError("the confidence is given twice", position=confidences[1].position)
    asked, kind = amounts[0], _KINDS[amounts[0].name]
    if kind is GoalKind.SPEND and asked.percent:
        raise QueryError(f"{asked.name} is a price, not a percentage", position=asked.position)
    for sure in confidences:
        if not 0 < sure.amount < 1:
            raise QueryError(
                "a confidence lies strictly between 0% and 100%, or 0 and 1",
                position=sure.position,
                rewrite="" if sure.percent else f"{text[: sure.end]}%{text[sure.end :]}",
            )
    unit = asked.name.lower() if kind is GoalKind.SPEND else ""
    own = [
        OutputGoal(amount=term.amount, percent=term.percent, output=term.output, position=term.position)
        for term in amounts
    ]
    parts = tuple(own) if several or asked.output is not None else ()
    try:
        goal = Goal(kind=kind, amount=asked.amount, percent=asked.percent, unit=unit, parts=parts)
        return replace(goal, confidence=confidences[0].amount) if confidences else goal
    except GoalError as fault:
        raise QueryError(str(fault), position=asked.position) from None


def bind(goal: Goal | None, outputs: Sequence[str]) -> Goal | None:
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


def usable(goal: Goal | None, outputs: Sequence[str]) -> Goal | None:
    """A goal near to the given one that `bind` accepts: parts of unknown outputs go, and the rest gets the first."""
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
