"""Settings of all tests."""

import pytest
from hypothesis import HealthCheck, settings

# No test measures time: a busy machine must not make one fail.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture(scope="session", autouse=True)
def _no_test_meets_the_users_cache(tmp_path_factory: pytest.TempPathFactory):
    """For fixtures that outlive a test, and for their child processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARAPIPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _no_test_meets_anothers_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARAPIPE_CACHE", str(tmp_path_factory.mktemp("cache")))
