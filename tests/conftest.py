"""One hypothesis profile for all tests: the same examples on every machine, however slow."""

from hypothesis import settings

settings.register_profile("symgrad", deadline=None, derandomize=True)
settings.load_profile("symgrad")
