"""docs/memory.md: rows of its tables are what its script writes."""

import re

import pytest

from docs.networks import NETWORKS
from tests.cases.pages import DOCS, script_of


@pytest.fixture(scope="module")
def script():
    return script_of("memory_claims")


@pytest.mark.parametrize("model", ["googlenet", "petr", "unet"])
def test_the_row_of_a_model_is_what_the_script_writes(script, model):
    assert script.row(model) in (DOCS / "memory.md").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", ["orders", "arenas"])
def test_every_network_stands_in_the_table(name):
    text = (DOCS / "memory.md").read_text(encoding="utf-8")
    table = re.search(rf"<!-- {name}: .*? -->\n(.*?)\n\n", text, re.DOTALL)[1]
    assert re.findall(r"^\| `(\S+)` \|", table, re.MULTILINE) == [*NETWORKS]
