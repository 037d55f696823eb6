"""Commands that read a model have --at-most."""

import pytest


@pytest.mark.parametrize("command", ["evaluate", "inspect", "map", "profile", "split"])
def test_commands_have_the_option(parapipe, command):
    assert "--at-most" in parapipe(command, "--help").out
