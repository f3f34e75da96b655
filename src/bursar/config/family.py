"""goal.contract and goal.family: which questions the confidence of an answer covers together."""

from __future__ import annotations

from typing import Any

from bursar.config.section import Section, nearest, shown
from bursar.domain import Domain
from bursar.goal import Contract
from bursar.inference.simultaneous import LARGEST_FAMILY, Family
from bursar.queries.product import MOST_COLUMNS

EXAMPLE = 'family = ["age", ["age", "sex"]], each a column or a list of columns'


def family(section: Section, domain: Domain) -> Family | None:
    """The declared family of the simultaneous contract; None under the per-query contract, which has none."""
    word = section.word("contract", (kind.value for kind in Contract), Contract.PER_QUERY.value)
    if word == Contract.PER_QUERY.value:
        if "family" in section:
            reason = (
                'goal.family says which questions contract = "simultaneous" covers, and the contract is another one'
            )
            section.refuse("family", reason=reason, hint='contract = "simultaneous"')
        return None
    if "family" not in section:
        reason = 'goal.contract = "simultaneous" covers a declared family of questions, and goal.family is missing'
        section.refuse("contract", reason=reason, hint=EXAMPLE)
    items = section.items("family", EXAMPLE)
    if not items:
        section.refuse("family", reason="goal.family is empty: no question could be asked", hint=EXAMPLE)
    sets = dict.fromkeys(_columns(section, domain, place, item) for place, item in enumerate(items))
    return Family(domain=domain, sets=tuple(sets))


def _columns(section: Section, domain: Domain, place: int, item: Any) -> tuple[str, ...]:
    """One set of columns, in the order of the domain."""
    names = item if isinstance(item, list) else [item]
    label = section.label("family", place)
    if not names:
        section.refuse("family", place, reason=f"{label} names no column", hint=EXAMPLE)
    for inner, name in enumerate(names):
        at = ("family", place, inner) if isinstance(item, list) else ("family", place)
        if not isinstance(name, str):
            reason = f"{section.label(*at)} must be the name of a column, not {shown(name)}"
            section.refuse(*at, reason=reason, hint=EXAMPLE)
        if name not in domain:
            near = nearest(name, domain.names)
            hint = f'did you mean "{near}"?' if near else "name one of the [columns.*]"
            if "," in name:
                hint = 'a list of columns for questions about several together: ["age", "sex"]'
            section.refuse(*at, reason=f"{section.label(*at)} is no declared column: {shown(name)}", hint=hint)
    columns = domain.ordered(names)
    if len(columns) < len(names):
        section.refuse("family", place, reason=f"{label} names a column twice", hint=EXAMPLE)
    boxes = Family(domain=domain, sets=(columns,)).questions(columns)
    if len(columns) > MOST_COLUMNS or boxes > LARGEST_FAMILY:
        section.refuse(
            "family", place, reason=f"{label} has too many questions to cover together", hint="fewer columns"
        )
    return columns
