"""How fair a mechanism was: utility, maximum ratio error and empirical interference (Multi-Analyst DP, Sec. 8.3).

A utility is the number of an analyst's questions that were answered with an expected error of at most alpha; where a
mechanism has no closed form, the mean of that number over runs, with the errors that occurred. So it may be a fraction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

Utilities = Mapping[str, float]
"""The utility of each analyst under one mechanism, one collective and one sequence of questions."""


def utility(errors: Iterable[float | None], *, alpha: float) -> int:
    """Number of questions whose error is at most alpha; None stands for a question that was refused."""
    return sum(error is not None and error <= alpha for error in errors)


def ratio(other: float, joint: float) -> float:
    """other / joint; above 1 where an analyst would be better off otherwise.

    Edge cases: 0/0 = 1, since nothing was lost; anything else over 0 is infinite.
    """
    if joint == 0:
        return 1.0 if other == 0 else math.inf
    return other / joint


def ratio_error(alone: Utilities, joint: Utilities) -> float:
    """max_i U_i(M, Q^i, s_i epsilon) / U_i(M, Q, epsilon): at most 1 exactly if everybody gains by sharing.

    `alone[i]` is what analyst i gets from the same mechanism with the own questions and the own share only.
    Edge cases: 1 where there is no analyst.
    """
    _same_people(alone, joint)
    return max((ratio(alone[who], joint[who]) for who in joint), default=1.0)


def interference(without: Mapping[str, Utilities], joint: Utilities) -> float:
    """max_{i != j} U_i(M, Q without Q^j, (1 - s_j) epsilon) / U_i(M, Q, epsilon): at most 1 if nobody is in the way.

    `without[j]` has the utilities of everybody else where analyst j has stayed away, with share and questions.
    Edge cases: 1 where there are no two analysts.
    """
    _same_people(without, joint)
    pairs = [(i, j) for j in joint for i in joint if i != j]
    return max((ratio(without[j][i], joint[i]) for i, j in pairs), default=1.0)


def _same_people(one: Mapping[str, object], other: Mapping[str, object]) -> None:
    if one.keys() != other.keys():
        raise ValueError("utilities of different analysts are compared")
