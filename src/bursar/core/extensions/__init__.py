"""TRUSTED. Mechanisms beyond `measure`, one file each: what they draw, and what that costs."""
