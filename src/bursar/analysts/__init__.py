"""Several people and one budget: who may spend how much of it, who may see what, and whose turn it is."""
