"""Platforms as plain data."""

import json

from parapipe.platform.describe import as_dict, describe, list_platforms
from parapipe.platform.load import read_platform
from parapipe.platform.platform import Platform
from tests.cases.installed_package import install
from tests.cases.soc_texts import SOC, spoil

TOY = read_platform(SOC, "soc.yaml")


def test_the_list_holds_every_shipped_platform_and_all_are_right():
    rows = {row.name: row for row in list_platforms()}
    assert rows["amlogic-a311d"].processors == ("big", "little", "gpu")
    assert [row.mistakes for row in rows.values()] == [()] * len(rows)


def test_a_broken_file_is_listed_with_its_mistakes(tmp_path, monkeypatch):
    file = tmp_path / "broken.yaml"
    file.write_text("name: broken\nlinks: 3\n")
    code = 'from pathlib import Path\nBOARD = Path(__file__).with_name("broken.yaml")\n'
    (tmp_path / "broken_board.py").write_text(code)
    entries = {"broken": "broken_board:BOARD", "lost": "broken_board:LOST"}
    install(tmp_path, "broken-board", "1.0", {"parapipe.platforms": entries})
    monkeypatch.syspath_prepend(tmp_path)
    rows = {row.name: row for row in list_platforms()}
    assert rows["broken"].file == str(file)
    assert f"{file}:2: links: must be a list" in rows["broken"].mistakes
    assert "'lost' of the package 'broken-board 1.0' cannot be" in rows["lost"].mistakes[0]


def test_a_platform_as_a_dict_is_json_that_reads_back_as_the_same_platform():
    text = json.dumps(as_dict(TOY))
    assert Platform.model_validate(json.loads(text)) == TOY


def test_a_processors_full_power_is_static_plus_the_hungriest_class():
    cpu, gpu = describe(TOY).platform.processors
    assert (cpu.static_power_w, cpu.full_power_w) == (0.5, 2.5)
    assert (gpu.host, len(gpu.operating_points), len(cpu.operating_points)) == ("cpu", 1, 2)


def test_links_are_rows_by_ordered_pair():
    there, back = describe(TOY).links
    assert (there.sender, there.receiver, there.latency_s) == ("cpu", "gpu", 1e-3)
    assert abs(there.per_mebibyte_s - 2**20 / 1e9) < 1e-12
    assert (back.sender, back.per_mebibyte_s, back.provenance) == ("gpu", 0, "nominal")


def test_synchronisation_is_a_column_and_a_section_of_its_own():
    old = "to: cpu, latency_s: 5e-4"
    new = f"{old}, synchronisation: {{overhead_s: 2e-4, source: guess}}"
    shown = describe(read_platform(spoil((old, new)), "soc.yaml"))
    assert [link.overhead_s for link in shown.links] == [0, 2e-4]
    assert shown.links[1].latency_s == describe(TOY).links[1].latency_s
    assert "gpu to cpu.synchronisation" in shown.sources[0].sections


def test_every_source_says_which_sections_name_it():
    (source,) = describe(TOY).sources
    assert source.sections[:3] == ("board", "memory", "cpu")
    assert {"cpu.power", "gpu.clock", "gpu to cpu"} <= set(source.sections)
    assert len(source.sections) == 20
