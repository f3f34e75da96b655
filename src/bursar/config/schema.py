"""Which keys there are, and where each belongs."""

from __future__ import annotations

KINDS = (("values",), ("lower", "upper"), ("edges",), ("first", "last", "by"))
"""The keys that tell the four kinds of column apart."""

KEYS = {
    "": ("dataset", "partition", "source", "privacy", "budget", "goal", "analysts", "histograms", "columns"),
    "partition": ("column", "seal", "grace_days"),
    "source": ("path", "table", "view", "max_rows", "public_size", "confirmed"),
    "privacy": ("unit", "max_contributions", "neighbours", "pace", "confirmed"),
    "budget": ("epsilon", "delta", "rho", "accountant", "order", "confirmed"),
    "goal": ("error", "rmse", "confidence", "contract", "family"),
    "histograms": ("groups",),
    "analysts": ("policy", "scheduler", "probabilities", "idle", "shares", "seed"),
    "columns.*": (
        *(key for kind in KINDS for key in kind),
        "representatives",
        "outside",
        "null",
        "levels",
        "confirmed",
    ),
}

HOMES = {
    key: f"under [{section}]" if section else "at the top of the file, above the first [section]"
    for section, keys in KEYS.items()
    for key in keys
    if key != "confirmed"
}
"""Where a key belongs that was found in the wrong section."""
