"""Stage 4 of 5: Offer -> records. One file per way to answer."""
