"""Accounts: what an analyst may cause, beside what the data set may lose; both admitted in one commit."""

from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np
import pytest

from bursar.core.accounting import Allotted, Measured, Noise, NoiseKind
from bursar.core.accounting import profile as grid
from bursar.core.accounts import Charge
from bursar.core.budget import Budget
from bursar.core.extensions.shares import REST
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose
from bursar.core.queries import LinearMap, Mask, Product, Steps
from bursar.errors import AnalystError, BudgetError, ConfigError, Stale
from bursar.planner.grant import Grant
from bursar.session import Bursar
from harness.kernels import history
from harness.maps import domain_of
from harness.small import Silence, config, engine

ONE = 2**50
HALVES = {"ann": Fraction(1, 2), "bob": Fraction(1, 2)}
BY_AGE = Product((Mask(("age",), (10,), Steps.identity(10)),))
BY_SEX = Product((Mask(("sex",), (2,), Steps.identity(2)),))


def age(*cells: int) -> LinearMap:
    """The counts of some ages."""
    return Product((Mask(("age",), (10,), Steps.identity(10).take(list(cells))),))


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def measured(strategy: LinearMap = BY_AGE, scale: float = 4.0) -> Measured:
    return Measured(strategy=strategy, noise=laplace(scale), version=1)


def measure(kernel: Kernel, analyst: str, strategy: LinearMap = BY_AGE, scale: float = 4.0) -> Charge:
    return kernel.measure(strategy, laplace(scale), analyst=analyst, purpose=Purpose("why", "test"), at_most=2**60)[1]


def small(shares: dict[str, Fraction] | None = None, **settings: object) -> Bursar:
    """An engine whose budget is epsilon 1, given out in halves."""
    made = engine(randomness=Silence(), settings=config(**settings))
    made.kernel.allot(HALVES if shares is None else shares)
    return made


# -- admission ------------------------------------------------------------------------------------------------


def test_a_share_is_the_limit_and_the_refusal_names_it() -> None:
    kernel = small().kernel
    assert [measure(kernel, "ann") for _ in range(2)] == [Charge(total=ONE // 4, account=ONE // 4)] * 2
    with pytest.raises(BudgetError, match="0 is left of the share of ann; nothing was spent"):
        measure(kernel, "ann")
    assert (kernel.account("ann").left, kernel.account("bob").left, kernel.left()) == (0, ONE // 2, ONE // 2)
    measure(kernel, "bob", scale=2.0)
    assert (kernel.account("bob").left, kernel.left()) == (0, 0)


def test_without_shares_the_data_set_pays() -> None:
    kernel = engine().kernel
    assert measure(kernel, "ann", scale=1.0) == Charge(total=ONE, account=ONE)
    assert kernel.account("anybody") == kernel.account("ann")
    assert kernel.account("ann").left == 0
    with pytest.raises(BudgetError, match="0 is left; nothing"):
        measure(kernel, "bob")


def test_different_people_count_once_in_each_account_and_once_in_all() -> None:
    kernel = small().kernel
    assert measure(kernel, "ann", age(0), 2.0) == Charge(total=ONE // 2, account=ONE // 2)
    assert measure(kernel, "bob", age(1), 2.0) == Charge(total=0, account=ONE // 2)
    assert kernel.left() == ONE // 2
    charges = [charge for _, charge in history(kernel)]
    assert charges[2:] == [Charge(total=ONE // 2, account=ONE // 2), Charge(total=0, account=ONE // 2)]


def test_what_is_slack_to_one_account_can_cost_the_data_set() -> None:
    kernel = small().kernel
    measure(kernel, "ann", age(0), 2.0)
    measure(kernel, "bob", age(1), 2.0)
    assert kernel.charge([measured(age(1), 4.0)], "ann") == Charge(total=ONE // 4, account=0)
    assert measure(kernel, "ann", age(1), 4.0) == Charge(total=ONE // 4, account=0)
    assert kernel.account("ann").left == 0


def test_refining_anothers_row_costs_the_difference() -> None:
    kernel = small().kernel
    block = kernel.measure(BY_AGE, laplace(4.0), analyst="ann", purpose=Purpose("", "test"), at_most=2**60)[0].position
    facts = {"before": laplace(4.0), "purpose": Purpose("", "test"), "at_most": 2**60}
    charge = kernel.refine(block, [0, 1], laplace(2.0), analyst="bob", **facts)[1]
    assert charge == Charge(total=ONE // 4, account=ONE // 4)
    assert kernel.account("ann").spent == kernel.account("bob").spent == ONE // 4
    assert kernel.spent() == ONE // 2


def test_sequential_accounts_add_up_measurement_by_measurement() -> None:
    kernel = small().kernel
    counted = Kernel(**vars_of(kernel), sequential=True)
    block = counted.measure(age(0), laplace(8.0), analyst="ann", purpose=Purpose("", "test"), at_most=2**60)[0].position
    measure(counted, "ann", age(1), 8.0)
    facts = {"before": laplace(8.0), "purpose": Purpose("", "test"), "at_most": 2**60}
    counted.refine(block, [0], laplace(4.0), analyst="bob", **facts)
    counted.refine(block, [0], laplace(2.0), analyst="bob", **{**facts, "before": laplace(4.0)})
    assert counted.account("ann").spent == 2 * ONE // 8
    assert counted.account("bob").spent == ONE // 2 - ONE // 8
    assert counted.spent() == ONE // 2 + ONE // 8


def vars_of(kernel: Kernel) -> dict[str, object]:
    """The parts that a second kernel on the same ledger is made of."""
    facts = {"domain": kernel.domain, "unit": kernel._accountant.unit, "budget": kernel.budget, "max_rows": 100_000}
    door = {"ledger": kernel.ledger, "open_source": kernel._open_source, "randomness": kernel._randomness}
    return {**facts, **door}


def test_nobody_without_a_share_is_admitted() -> None:
    kernel = small().kernel
    for work in (
        lambda: measure(kernel, "owner"),
        lambda: kernel.account("eve"),
        lambda: kernel.hold([measured(), measured(BY_SEX)], analyst="eve", seconds=60),
    ):
        with pytest.raises(AnalystError, match="has no share of this budget"):
            work()
    assert kernel.spent() == kernel.held() == 0


def test_a_quote_is_about_what_whoever_pays_is_charged() -> None:
    kernel = small().kernel
    measure(kernel, "ann", age(0), 2.0)
    measure(kernel, "bob", age(1), 4.0)
    with pytest.raises(Stale, match="price"):
        kernel.measure(age(0), laplace(4.0), analyst="bob", purpose=Purpose("", "test"), at_most=-1)
    assert kernel.charge([measured(age(1), 4.0)], "ann") == Charge(total=0, account=0)
    kernel.measure(
        age(0), laplace(4.0), analyst="bob", purpose=Purpose("", "test"), at_most=0
    )  # nothing to bob, a quarter to all
    assert kernel.left() == ONE // 4


# -- holds ----------------------------------------------------------------------------------------------------


def test_own_holds_count_in_the_own_account_and_all_holds_in_the_total() -> None:
    kernel = small().kernel
    plan = (measured(age(0), 4.0), measured(age(0, 1), 4.0))
    with Grant(kernel, "ann", "why", plan, kernel.charge(plan, "ann").account) as held:
        assert (kernel.held("ann"), kernel.held("bob"), kernel.held()) == (ONE // 2, 0, ONE // 2)
        with pytest.raises(BudgetError, match="share of ann"):
            measure(kernel, "ann", age(0), 8.0)
        measure(kernel, "ann", age(5), 2.0)  # other people: the hold and this need no more than the hold
        measure(kernel, "bob", age(0), 2.0)
        held.measure(age(0), laplace(4.0))
        with pytest.raises(BudgetError, match="share of ann"):
            measure(kernel, "ann", age(0), 8.0)
        held.measure(age(0, 1), laplace(4.0))
    assert kernel.account("ann").spent == ONE // 2
    assert kernel.left() == 0


def test_earlier_members_of_a_group_count_in_their_accounts() -> None:
    """Works of several threads share one commit: each sees what the others before it were admitted for."""
    kernel = small(budget=Budget.of(epsilon=8.0)).kernel
    start, outcomes = threading.Barrier(16), []

    def work(analyst: str) -> None:
        start.wait()
        try:
            outcomes.append((analyst, measure(kernel, analyst, scale=1.0).account))
        except BudgetError:
            outcomes.append((analyst, None))

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ann", "bob") * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes, key=str) == sorted([(n, c) for n in HALVES for c in [ONE] * 4 + [None] * 4], key=str)
    assert kernel.left() == 0


def test_shares_given_out_earlier_in_a_group_are_in_force() -> None:
    kernel = engine().kernel

    def work(transaction):
        nothing = np.zeros(0, np.int64)
        event = Allotted(shares=tuple(HALVES.items()))
        transaction.append(analyst="owner", purpose=Purpose("", "test"), event=event, values=nothing)
        return kernel._accounts_with(transaction).shares, kernel._accounts.shares

    assert kernel.ledger.commit(work) == (HALVES, {})


# -- giving out shares ----------------------------------------------------------------------------------------


def test_shares_are_in_the_log_once() -> None:
    kernel = small().kernel
    kernel.allot(dict(reversed(HALVES.items())))
    events = [record.event for record in kernel.ledger.records()]
    assert events[1:] == [Allotted(shares=(("ann", Fraction(1, 2)), ("bob", Fraction(1, 2))))]
    assert kernel.shares() == HALVES


def test_another_process_goes_by_the_log() -> None:
    kernel = small().kernel
    other = Kernel(**vars_of(kernel))
    measure(other, "ann", scale=2.0)
    kernel.allot({**HALVES, "bob": Fraction(1, 4), "eve": Fraction(1, 4)})
    with pytest.raises(BudgetError, match="share of bob"):
        measure(other, "bob", scale=2.0)
    measure(other, "eve")
    with pytest.raises(BudgetError, match="share of ann"):
        measure(other, "ann")


def test_somebody_new_needs_what_is_not_given_out() -> None:
    kernel = small({"ann": Fraction(1, 2)}).kernel
    kernel.allot({"ann": Fraction(1, 2), "bob": Fraction(1, 4)})
    with pytest.raises(ConfigError, match="at most 1 together"):
        kernel.allot({**kernel.shares(), "eve": Fraction(1, 2)})
    assert kernel.shares() == {"ann": Fraction(1, 2), "bob": Fraction(1, 4)}


def test_what_was_spent_outside_shares_is_not_given_out() -> None:
    kernel = engine().kernel
    measure(kernel, "owner")
    with pytest.raises(AnalystError, match=r"are epsilon 1 together, and 0\.75 can be given out"):
        kernel.allot(HALVES)
    kernel.allot({"ann": Fraction(1, 2), "bob": Fraction(1, 4)})
    measure(kernel, "ann", scale=2.0)
    measure(kernel, "bob")
    assert kernel.left() == 0
    assert kernel._accounts._books()[REST].spent() == ONE // 4


def test_what_somebody_spent_before_shares_counts_towards_the_own_share() -> None:
    kernel = engine().kernel
    measure(kernel, "ann")
    kernel.allot(HALVES)
    assert (kernel.account("ann").left, kernel.account("bob").left) == (ONE // 4, ONE // 2)


def test_a_share_cannot_fall_below_what_is_spent_and_spenders_cannot_be_left_out() -> None:
    kernel = small().kernel
    measure(kernel, "ann")
    before = kernel.ledger.verify()
    with pytest.raises(AnalystError, match=r"ann has spent epsilon 0\.25, and a share cannot be smaller"):
        kernel.allot({"ann": Fraction(1, 5), "bob": Fraction(1, 2)})
    with pytest.raises(AnalystError, match=r"ann has spent epsilon 0\.25 and cannot be left out"):
        kernel.allot({"bob": Fraction(1, 2)})
    with pytest.raises(AnalystError, match="cannot be left out"):
        kernel.allot({})
    assert kernel.ledger.verify() == before
    kernel.allot({"ann": Fraction(1, 4), "eve": Fraction(3, 4)})  # bob has spent nothing
    assert measure(kernel, "eve").account == ONE // 4


def test_what_is_set_aside_counts_when_shares_change() -> None:
    kernel = small().kernel
    plan = (measured(age(0), 4.0), measured(age(0, 1), 4.0))
    with Grant(kernel, "ann", "why", plan, ONE), pytest.raises(AnalystError, match=r"ann has spent epsilon 0\.5"):
        kernel.allot({"ann": Fraction(1, 4), "bob": Fraction(1, 2)})
    kernel.allot({"ann": Fraction(1, 4), "bob": Fraction(1, 2)})


def test_a_hold_from_before_shares_is_not_given_out_and_cannot_be_used() -> None:
    kernel = engine().kernel
    plan = (measured(age(0), 4.0), measured(age(0, 1), 4.0))
    with Grant(kernel, "eve", "why", plan, ONE) as held:
        with pytest.raises(AnalystError, match=r"0\.5 can be given out"):
            kernel.allot({"ann": Fraction(3, 4)})
        kernel.allot({"ann": Fraction(1, 2)})
        with pytest.raises(AnalystError, match="'eve' has no share"):
            held.measure(age(0), laplace(4.0))
    assert kernel.spent() == 0


def test_all_shares_can_be_taken_back_while_nothing_is_spent() -> None:
    kernel = small().kernel
    kernel.allot({})
    assert kernel.shares() == {}
    assert measure(kernel, "eve", scale=1.0) == Charge(total=ONE, account=ONE)


@pytest.mark.parametrize(
    "shares",
    [
        (("ann", Fraction(0)),),
        (("ann", Fraction(-1, 2)), ("bob", Fraction(1, 2))),
        (("ann", Fraction(2, 3)), ("bob", Fraction(2, 3))),
        (("", Fraction(1, 2)),),
        (("ann", Fraction(1, 4)), ("ann", Fraction(1, 4))),
        (("ann", Fraction(1, 10**61)),),
    ],
)
def test_shares_that_make_no_sense(shares: tuple[tuple[str, Fraction], ...]) -> None:
    with pytest.raises(ConfigError):
        Allotted(shares=shares)


def test_shares_are_rounded_down_so_that_they_fit_together() -> None:
    thirds = {name: Fraction(1, 3) for name in "abc"}
    kernel = small(thirds).kernel
    assert [kernel.account(name).cap for name in "abc"] == [ONE // 3] * 3


# -- the sum of the accounts is a bound, too ------------------------------------------------------------------


def test_a_loose_bound_of_the_data_set_refuses_nobody_within_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has a = b, b = c and a != c, which three columns tell and four, on a grid of eight blocks, do not."""
    monkeypatch.setattr(grid, "MOST_BLOCKS", 8)
    kernel = engine(settings=config(domain=domain_of(a=2, b=2, c=2, d=2)), table=np.ones((2,) * 4, int)).kernel
    kernel.allot(HALVES)
    same, other = [[1, 0, 0, 1]], [[0, 1, 1, 0]]
    for columns, row in ((("a", "b"), same), (("b", "c"), same), (("a", "c"), other)):
        measure(kernel, "ann", Product((Mask(columns, (2, 2), Steps.dense(row)),)))
    assert kernel.account("ann").spent == ONE // 2
    last = Product((Mask(("d",), (2,), Steps.identity(2)),))
    assert measure(kernel, "bob", last, 2.0).account == ONE // 2
    assert kernel.spent() == ONE < kernel._accounts.total.spent()
    assert kernel.left() == kernel.account("bob").left == 0


def test_versions_reach_every_account() -> None:
    db = small()
    measure(db.kernel, "ann", age(0), 4.0)
    db.owner.declare_version()
    assert db.kernel.version() == 2
    measure(db.kernel, "ann", age(1), 4.0)  # perhaps the same person, who sits elsewhere now
    assert db.kernel.account("ann").spent == ONE // 2


def test_events_of_all_kinds_have_one_account() -> None:
    """The sum over accounts of what their events cost is no less than what all of them cost."""
    kernel = small(budget=Budget.of(epsilon=4.0)).kernel
    rng = np.random.default_rng(5)
    for _ in range(12):
        cells = sorted(rng.choice(10, 3, replace=False).tolist())
        measure(kernel, str(rng.choice(["ann", "bob"])), age(*cells), float(rng.choice([4.0, 8.0, 16.0])))
    accounts = sum(kernel.account(name).spent for name in HALVES)
    assert kernel.spent() <= accounts <= kernel.budget.units
    assert sum(charge.total for _, charge in history(kernel)) == kernel.spent()
    for name in HALVES:
        own = [charge.account for record, charge in history(kernel) if record.analyst == name]
        assert sum(own) == kernel.account(name).spent
        book = kernel.book_of(name)
        assert book is not None
        assert book.spent() == kernel.account(name).spent
    whole = kernel.book_of(None)
    assert whole is not None
    assert whole.spent() == kernel.spent()
    assert kernel.book_of("cleo") is None  # who has no share has no account
    position = kernel.position()
    kernel.allot({"ann": Fraction(1, 3), "bob": Fraction(1, 3)})  # the same people: their books stay as they are
    measure(kernel, "ann", age(1), 16.0)
    assert kernel.position() == position + 2
    for name in HALVES:
        own = [charge.account for record, charge in history(kernel) if record.analyst == name]
        assert sum(own) == kernel.account(name).spent
