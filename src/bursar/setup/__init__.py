"""Setting up a data set: draft a config (`init`), settle its guesses (`confirm`), see what it promises (`check`)."""

from bursar.setup.check import Check, check
from bursar.setup.init import Drafted, init

__all__ = ["Check", "Drafted", "check", "init"]
