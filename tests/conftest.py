"""Settings of all tests."""

from hypothesis import HealthCheck, settings

# No test measures time: a busy machine must not make one fail.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
