"""docs/co-runs.md: what it shows of platform files is right."""

import re
from pathlib import Path

import yaml

from parapipe.cost.co_run import LinearContention, SharedMemoryLaw, SlowdownTable, co_run_law
from parapipe.platform.load import read_platform

DOCS = Path("docs")


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
