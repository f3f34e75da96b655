"""The accuracy clause of a question, which is cut off before the rest is parsed.

`WITH ERROR 50 CONFIDENCE 95%` stands at the end, or `/*+ error(50) confidence(95%) */` anywhere. Outputs may have
errors of their own: `WITH ERROR 50 ON n, 2% ON total`; an amount without ON is for all others. `WITH RELATIVE ERROR 5%
FLOOR 200` is 5 % of each true count, or of 200 where that is more. `DISCOVERY`, alone or with an amount of rho, stands
behind the accuracy or without one: texts of open columns are looked for first. The clause is cut off at the level of
tokens, so words inside strings, names and ordinary comments are never taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from difflib import get_close_matches

from sqlglot.tokens import Token, TokenType

from bursar.errors import GoalError, QueryError
from bursar.goal import Goal, GoalKind, OutputGoal, TextSearch
from bursar.lazy_dataclass import dataclass
from bursar.sql.tokens import CLOSING, depths, tokenize

_RELATIVE = "RELATIVE_ERROR"
_KINDS = {
    "ERROR": GoalKind.ERROR,
    _RELATIVE: GoalKind.ERROR,
    "RMSE": GoalKind.RMSE,
    "EPSILON": GoalKind.SPEND,
    "RHO": GoalKind.SPEND,
}
_SEARCH = "DISCOVERY"
_NAMES = (*_KINDS, "CONFIDENCE", "FLOOR", _SEARCH)

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
    bare: bool = False  # DISCOVERY without an amount


@dataclass(frozen=True, kw_only=True)
class Hint:
    """The terms of a `/*+ */` comment, with the offsets between which it stands."""

    terms: list[AccuracyTerm]
    text: str
    position: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """A question without its clause, and what the clause says."""

    tokens: list[Token]
    goal: Goal | None = None
    search: TextSearch | None = None
    clause: str = ""  # as it is written


def cut_accuracy(text: str, tokens: list[Token]) -> Accuracy:
    """The tokens without the clause, and what it states, if there is one.

    A WITH outside of brackets begins the clause, unless it is the first word of the statement.
    """
    hint = _hint(text, tokens)
    withs = [
        place
        for place, (token, deep) in enumerate(zip(tokens, depths(tokens), strict=True))
        if token.token_type is TokenType.WITH and deep == 0 and place > 0
    ]
    if not withs:
        return Accuracy(tokens=tokens) if hint is None else _accuracy(text, hint.terms, tokens, hint.text)
    terms = _clause(text, tokens, withs[0])
    if hint is not None:
        raise QueryError(
            "the accuracy is given twice, in a WITH clause and in a comment",
            position=hint.position,
            rewrite=text[: hint.position] + text[hint.end :],
        )
    clause = text[tokens[withs[0]].start : tokens[-1].end + 1]
    return _accuracy(text, terms, tokens[: withs[0]], clause)


def _accuracy(text: str, terms: list[AccuracyTerm], tokens: list[Token], clause: str) -> Accuracy:
    searches = [term for term in terms if term.name == _SEARCH]
    if len(searches) > 1 or any(term.percent for term in searches):
        place = searches[-1].position
        raise QueryError("DISCOVERY is said once, alone or with an amount of rho, as in DISCOVERY 0.05", position=place)
    amounts = [term for term in terms if term.name != _SEARCH]
    first = searches[0] if searches else None
    search = None if first is None else TextSearch(spend=None if first.bare else first.amount, position=first.position)
    goal = _goal(text, amounts) if amounts else None
    return Accuracy(tokens=tokens, goal=goal, search=search, clause=clause)


def _options(text: str, tokens: list[Token], start: int) -> QueryError:
    """The refusal of SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (...), with what it would spend behind the question."""
    inside = depths(tokens)
    ends = [at for at in range(start + 3, len(tokens) - 1) if tokens[at].token_type in CLOSING and inside[at] == 1]
    words = [str(token.text) for token in tokens[start : ends[0] if ends else start]]
    spent = next((words[at + 2] for at in range(len(words) - 2) if words[at : at + 2] == ["epsilon", "="]), "")
    without_options = (
        f"{text[: tokens[start].start]}{text[tokens[ends[0]].end + 1 :].strip()}" if ends and spent else ""
    )
    return QueryError(
        "who is protected, delta and all bounds are declared by the data owner, and are not part of a question; what "
        "it may cost stands behind it, as in WITH EPSILON 0.1",
        position=tokens[start].start,
        rewrite=f"{without_options} WITH EPSILON {spent}" if without_options else "",
        differs="has the bounds and the delta of the config, whatever the options say" if without_options else "",
    )


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
            "after WITH comes ERROR, RELATIVE ERROR, RMSE, EPSILON, RHO or DISCOVERY, as in WITH ERROR 50",
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
            if not comment.startswith("+") or (before < 0 and behind < 0) or _for_another_database(comment):
                continue
            start = token.end + 1 + behind if behind >= 0 else token.start - len(places[number]) + before
            if hint is not None:
                raise QueryError("the accuracy is given twice, in two comments", position=start)
            hint = Hint(terms=_hinted(comment, start), text=whole, position=start, end=start + len(whole))
    return hint


def _for_another_database(comment: str) -> bool:
    """Whether a hint is none about accuracy, not even one that is misspelt: /*+ parallel(4) */ changes no answer."""
    words = re.findall("[A-Z_]+", comment.upper())
    return bool(words) and not any(get_close_matches(word, _NAMES, cutoff=0.75) for word in words)


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
    while at < len(tokens) and _word(tokens[at]) in _NAMES:
        if not (at + 1 < len(tokens) and tokens[at + 1].token_type is TokenType.L_PAREN):
            if _word(tokens[at]) != _SEARCH:
                break
            more, at = _terms(tokens, at, offset=low + 3)
            terms += more
            continue
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
    if _word(name) == _SEARCH and not (
        first < len(tokens) and tokens[first].token_type in (TokenType.NUMBER, TokenType.DOT)
    ):
        place, end = name.start + offset, name.end + 1 + offset
        return AccuracyTerm(name=_SEARCH, amount=0.0, percent=False, position=place, end=end, bare=True), first
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
