"""The published systems, a folder per paper, for comparison."""
