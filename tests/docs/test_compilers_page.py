"""docs/compilers.md: its recipe is the one that is tested, and its tables are those of the code."""

import re
from pathlib import Path

from parapipe.compilers.registry import COMPILERS, compiler
from parapipe.compilers.results import FOLDER
from parapipe.compilers.samples import MOST_SAMPLES

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "compilers.md").read_text(encoding="utf-8")


def test_its_recipe_installs_what_the_tests_install() -> None:
    (line,) = re.findall(r"^~/rknn/bin/pip install ('numpy.+)$", PAGE, re.MULTILINE)
    stated = (REPOSITORY / "parapipe/compilers/rknn/requirements.txt").read_text("utf-8")
    pins = [each for each in stated.splitlines() if not each.startswith("#")]
    assert line.replace("'", "").split() == pins
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    (version,) = set(re.findall(r"rknn-toolkit2==([\d.]+)", PAGE + makefile))
    assert f"**rknn-toolkit2 {version}**" in PAGE


def test_it_lists_all_compilers_and_their_chips() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+? \| (.+?) \| (yes|no) \| \w+ \|$", PAGE, re.MULTILINE)
    assert [name for name, _, _ in rows] == [*COMPILERS.own]
    for name, chips, prices in rows:
        tool = compiler(name)
        assert tuple(chips.lower().split(", ")) == tuple(tool.targets)
        assert (prices == "yes") == tool.prices


def test_it_says_where_results_are_and_how_many_samples_are_used() -> None:
    assert f"Results are in `{FOLDER}` in the cache" in PAGE
    assert f"At most\n{MOST_SAMPLES} samples are used" in PAGE


def test_it_describes_all_that_a_compiler_has() -> None:
    from parapipe.compilers.registry import _NEEDED

    table = PAGE.partition("## A compiler of your own")[2]
    assert [name for name in _NEEDED if not re.search(rf"\| .*`{name}[`(]", table)] == []
