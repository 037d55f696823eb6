"""docs/co-runs.md: what it shows of platform files is right."""

import re
from pathlib import Path

import yaml

from parapipe.cost.co_run import LinearContention, SharedMemoryLaw, SlowdownTable, co_run_law
from parapipe.platform.load import read_platform
from parapipe.platform.states import in_state, unknown_clocks
from parapipe.zoo.registry import names

DOCS = Path("docs")
NAMES_OF_SOURCES = ("guess", "data-sheet", "power-meter")


def yaml_blocks(name):
    text = (DOCS / name).read_text(encoding="utf-8")
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def merged(whole, part):
    """Put a part of a file into it; processors are told apart by their names."""
    if not isinstance(whole, dict) or not isinstance(part, dict):
        return part
    more = {key: merged(whole.get(key), value) for key, value in part.items()}
    if "processors" in part and "processors" in whole:
        own = {each["name"]: each for each in part["processors"]}
        more["processors"] = [merged(p, own.get(p["name"], {})) for p in whole["processors"]]
    return whole | more


def platforms():
    whole = yaml_blocks("platforms.md")[0]
    for block in yaml_blocks("co-runs.md"):
        yield read_platform(yaml.safe_dump(merged(whole, block)), "my-soc.yaml")


def test_the_parts_of_platform_files_hold_for_the_chip_of_the_other_page():
    table, shared, contention, heat = platforms()
    assert isinstance(co_run_law(table), SlowdownTable)
    assert isinstance(co_run_law(shared), SharedMemoryLaw)
    assert co_run_law(contention) == LinearContention(0.3 / contention.memory.bandwidth_bytes_per_s)
    assert heat.state == "sustained"
    assert heat.power_budget.sustained_w == 5
    assert heat.processors[0].clock.sustained_frequency_hz == 1e9
    assert not [*unknown_clocks(heat)]


def test_the_clock_of_the_page_is_whole():
    """So it can be pasted into the file of a chip of the catalogue."""
    heat = yaml_blocks("co-runs.md")[3]
    more = {"schema": "parapipe/platform/1", "name": "board", "chip": "rk3399"}
    sources = {name: {"provenance": "nominal", "title": name} for name in NAMES_OF_SOURCES}
    processors = [{**heat["processors"][0], "name": "big"}]
    text = yaml.safe_dump({**heat, **more, "processors": processors, "sources": sources})
    chip = in_state(read_platform(text, "board.yaml"))
    assert next(p for p in chip.processors if p.name == "big").point.frequency_hz == 1e9


def test_the_zoo_has_the_models_of_the_page():
    found = re.findall(r"zoo:([\w-]+)", (DOCS / "co-runs.md").read_text(encoding="utf-8"))
    assert found
    assert {*found} <= {*names()}
