"""goal.contract and goal.family: which questions the confidence of an answer covers together."""

from __future__ import annotations

from bursar.config.column_lists import columns_of
from bursar.config.section import Section
from bursar.core.domain import Domain
from bursar.goal import Contract
from bursar.estimation.simultaneous import LARGEST_FAMILY, Family
from bursar.core.queries.product import MOST_COLUMNS

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
    sets = dict.fromkeys(_columns(section, domain, place) for place in range(len(items)))
    return Family(domain=domain, sets=tuple(sets))


def _columns(section: Section, domain: Domain, place: int) -> tuple[str, ...]:
    """One set of columns, in the order of the domain."""
    columns = columns_of(section, domain, "family", place, EXAMPLE)
    boxes = Family(domain=domain, sets=(columns,)).questions(columns)
    if len(columns) > MOST_COLUMNS or boxes > LARGEST_FAMILY:
        reason = f"{section.label('family', place)} has too many questions to cover together"
        section.refuse("family", place, reason=reason, hint="fewer columns")
    return columns
