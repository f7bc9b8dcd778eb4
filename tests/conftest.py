"""Hypothesis profiles: the default is reproducible, ``--hypothesis-profile=thorough`` searches."""

from hypothesis import settings

settings.register_profile("default", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("thorough", derandomize=False, deadline=None, max_examples=1000)
settings.load_profile("default")
