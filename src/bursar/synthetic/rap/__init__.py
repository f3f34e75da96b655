"""Relaxed adaptive projection: rows that are fitted to answers."""
