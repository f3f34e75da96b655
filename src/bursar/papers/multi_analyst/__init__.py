"""Multi-Analyst (Pujol et al.): Seeded Cache and Reconstruct as published; `policy = "seeded-cache"` takes it."""
