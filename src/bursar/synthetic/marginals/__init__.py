"""Marginals: which to measure, what the log says of them, consistent estimates."""
