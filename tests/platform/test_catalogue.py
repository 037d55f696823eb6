"""The shipped platforms are found by name."""

import pytest

from parapipe.errors import PlatformError
from parapipe.platform.catalogue import find, shipped


def test_the_amlogic_a311d_is_shipped():
    assert "amlogic-a311d" in shipped()
    assert find("amlogic-a311d").name == "amlogic-a311d.yaml"


def test_shipped_names_are_sorted():
    assert list(shipped()) == sorted(shipped())


@pytest.mark.parametrize("name", ["", "..", "../amlogic-a311d", "amlogic-a311d.yaml", "*"])
def test_only_a_shipped_name_is_found(name):
    with pytest.raises(PlatformError, match=r"shipped: .*amlogic-a311d"):
        find(name)
