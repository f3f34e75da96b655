"""TRUSTED. Mechanisms beyond `measure`, one file each with one argument: event, price, sampler and verb."""
