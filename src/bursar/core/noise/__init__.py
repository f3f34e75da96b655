"""TRUSTED. Noise: the law that sets and prices a draw, and exact samplers of it."""
