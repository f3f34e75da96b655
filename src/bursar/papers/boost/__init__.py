"""Boost (Kostopoulou et al., 2023) as published: its constants, its learning, its windows, as settings of `pmw`.

PMW-Bypass itself is in the engine, with noise as exact tails allow it. Here are the constants behind the paper's
figures, those of Algorithm 1 as printed, and PMW without a bypass.
"""

from __future__ import annotations

from dataclasses import replace

from bursar.core.accounting import NoiseKind
from bursar.papers.boost.calibration import Lemma, Printed, Published
from bursar.papers.boost.learning import AdaptiveAsPrinted, Always, ConstantRate, LearningAsPrinted
from bursar.planner.choose import Preset
from bursar.proposers.pmw import Pmw, PmwSettings
from bursar.proposers.pmw_windows import PmwWindows
from bursar.views.learner import Adaptive, Decaying, Learning

VANILLA_ALPHA = 0.05
"""The error, as a part of the rows, that the rate of vanilla PMW is set for: alpha/8."""

PUBLISHED = PmwSettings(learning=Learning(schedule=Decaying(), heuristic=Adaptive()), calibration=Published())
"""The constants behind the published figures (Covid); failures are up to 2 beta."""

PRINTED = PmwSettings(
    learning=LearningAsPrinted(schedule=Decaying(), heuristic=AdaptiveAsPrinted(), spread=4.0), calibration=Printed()
)
"""Algorithm 1 as it is printed."""

VANILLA = PmwSettings(
    learning=LearningAsPrinted(schedule=ConstantRate(value=VANILLA_ALPHA / 8), heuristic=Always()),
    calibration=Lemma(),
    cache=False,
)
"""PMW without a bypass: every question is tested, at the rate alpha/8 that minimises the worst case."""

preset = Preset("boost", (Pmw(PUBLISHED), PmwWindows(PUBLISHED, whole=True)), sequential=True)
"""Boost with the constants behind its figures, charged as in its paper: for comparison. Only goals in errors.

Its histograms start warm, inner nodes too; groups of columns are those asked about together, an exact factoring.
"""

printed_preset = Preset("boost-printed", (Pmw(PRINTED),), sequential=True)
"""Algorithm 1 as printed, without partitions."""

gaussian_preset = Preset("boost-gaussian", (Pmw(replace(PUBLISHED, answers=NoiseKind.GAUSSIAN)),), sequential=True)
"""Gaussian PMW-Bypass (A.5), for a budget in rho; tests have Laplace noise, as there."""

vanilla_preset = Preset("pmw", (Pmw(VANILLA),), sequential=True)
"""PMW without a bypass, which Boost is compared with."""

cold_preset = Preset("boost-cold", (Pmw(PUBLISHED), PmwWindows(PUBLISHED, whole=True, warm=False)), sequential=True)
"""The same where every histogram starts uniform."""
