"""front.json and what stands beside it, read back; its figures fit together."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from parapipe.cli.map import command as map_click
from parapipe.documents.drawing import map_command
from parapipe.documents.front_folder import folder_of, front_csv, load_folder
from parapipe.errors import FrontError, PlanError
from parapipe.search.options import MapOptions, flag, option_names


@pytest.fixture
def folder(branchy_folder: Path, tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(branchy_folder, tmp_path / "copy"))


def test_a_folder_that_was_written_is_read_back_whole(branchy_front, branchy_folder) -> None:
    read = load_folder(branchy_folder)
    assert read.document == branchy_front.document
    assert list(read.plans) == [made.id for made in branchy_front]
    assert all(read.plans[made.id] == made.plan() for made in branchy_front)
    assert len(read.solve_log) == len(branchy_front.solve_log())


def test_front_csv_is_what_pandas_writes_of_the_same_table(branchy_front, branchy_folder) -> None:
    text = front_csv(branchy_front.document.configurations)
    assert text == branchy_front.to_pandas().to_csv(index=False)
    assert text == (branchy_folder / "front.csv").read_text()


def test_energy_is_that_of_the_processors_dynamic_and_static(branchy_front) -> None:
    for row in branchy_front.document.configurations:
        used = [processor for stage in row.stages for processor in stage.processors]
        static_w = sum(processor.static_power_w for processor in used)
        dynamic_j = sum(processor.dynamic_energy_j for processor in used)
        assert dynamic_j + static_w * row.period_s == pytest.approx(row.energy_j, rel=1e-12)


def test_a_processor_is_busy_as_long_as_its_operators_run_and_never_longer_than_the_period(
    branchy_front,
) -> None:
    for made in branchy_front:
        plan = made.plan()
        for row, stage in zip(made.stages, plan.stages, strict=True):
            for processor, placed in zip(row.processors, stage.processors, strict=True):
                assert processor.busy_s == pytest.approx(
                    sum(at.end_s - at.start_s for at in placed.operators)
                )
                sent_s = sum(t.time_s for t in plan.transfers if t.occupies == processor.name)
                assert processor.transfer_s == pytest.approx(sent_s)
                assert processor.busy_s <= made.period_s * (1 + 1e-9)


def test_the_platforms_processors_are_listed_used_or_not(branchy_front) -> None:
    names = [processor.name for processor in branchy_front.document.processors]
    assert names == ["big", "little", "gpu"]
    assert branchy_front.document.processors[2].kind == "gpu"


def test_the_command_holds_what_is_not_at_its_default(branchy_front) -> None:
    words = shlex.split(branchy_front.document.command)
    assert words[:2] == ["parapipe", "map"]
    assert words[2].endswith("branchy.onnx")
    assert words[3:] == ["--platform", "amlogic-a311d", "--interleave", "none"]


def test_the_command_gives_the_options_back_that_it_was_made_of() -> None:
    given = {
        "mapper": "fine", "granularity": "onnx", "time_limit_s": 7.5, "seed": 3, "draws": 9,
        "deterministic": True, "resolution": 0.0, "energy_resolution": 0.1,
        "dvfs": True, "dvfs_points": 2, "dims": {"batch": 4},
        "shapes": {"x": (1, 3, 8, 8), "y": ("int8", (2,))},
        "rules": "r.yaml", "profiles": ["a.csv", "b c.csv"],
        "max_memory_bytes": {"dram": 64e6, "local": 1234.5},
        "max_segments": {"npu": 8, "gpu": 3},
        "rates": {"it": 30.0}, "deadline_s": {"it": 0.04}, "priority": {"it": 2.0},
    }  # fmt: skip
    words = shlex.split(map_command("my models/it's.onnx", "p.yaml", MapOptions(**given)))
    parsed = map_click.make_context("map", words[2:]).params
    parsed["profiles"] = [str(path) for path in parsed["profiles"]]
    parsed["rules"] = str(parsed["rules"])
    assert (parsed["models"], parsed["platform"]) == (("my models/it's.onnx",), "p.yaml")
    assert {name: parsed[name] for name in given} == given


def test_options_that_say_nothing_beside_the_others_are_left_out() -> None:
    idle = MapOptions(objectives="latency-throughput", energy_resolution=0.5, dvfs_points=5)
    line = map_command("m", "p", idle)
    assert line == "parapipe map m --platform p --objectives latency-throughput"


def test_options_have_the_same_defaults_in_the_command_and_in_python() -> None:
    options = map_click.make_context("map", ["m.onnx", "--platform", "p"]).params
    for name, default in MapOptions().to_dict().items():
        assert (options[name] or None) == (None if name == "cache" else default or None), name


def test_every_option_that_changes_figures_is_in_the_command() -> None:
    others = {
        "mapper": "fine", "granularity": "onnx", "time_limit_s": 7.5, "seed": 3, "draws": 9,
        "budget_s": 60.0, "deterministic": True, "resolution": 0.0, "dvfs": True,
        "energy_resolution": 0.1,
        "dvfs_points": 2, "dims": {"batch": 4}, "shapes": {"x": (1, 3)}, "rules": "r.yaml",
        "profiles": ["a.csv"], "objectives": "latency-throughput", "precision": "int8",
        "split": "auto", "interleave": "none", "max_memory_bytes": {"dram": 64e6},
        "max_segments": 8,
        "robust": 0.75, "scenarios": 3, "recompute": True, "search": ["two-stages"],
        "rates": {"m": 30.0}, "deadline_s": {"m": 0.04}, "priority": {"m": 2.0},
        "compiler": "rknn", "exclude": ["gpu"], "pins": {"conv*": "big"}, "max_stages": 2,
        "memory_limit_bytes": 2e9,
        "at_most": 300, "states": {"h": "hn"}, "sequences": 2, "thermal_state": "sustained",
    }  # fmt: skip
    assert set(others) == set(option_names(lambda option: option.changes_results))
    for name, value in others.items():
        needed = {"dvfs": name == "dvfs_points", "robust": 0.9 if name == "scenarios" else None}
        needed |= {"max_memory_bytes": 1e9} if name == "recompute" else {}
        line = map_command("m", "p", MapOptions(**{**needed, name: value}))
        assert flag(name) in line.split(), name


def test_a_missing_front_is_named(tmp_path) -> None:
    with pytest.raises(FrontError, match=r"front\.json: cannot be read"):
        load_folder(tmp_path)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "is not text in UTF-8"),
        (b"[]", "names no schema"),
        (
            b'{"schema": "parapipe/front/99"}',
            'is of schema "parapipe/front/99", and parapipe',
        ),
        (
            b'{"schema": "parapipe/front/0", "parapipe": "0.1.0"}',
            'is of schema "parapipe/front/0", written by parapipe 0.1.0, .* reads fronts of schema',
        ),
        (
            b'{"schema": "parapipe/front/1"}',
            r"\d+ mistakes: parapipe: is missing; model: is missing",
        ),
    ],
)
def test_a_front_that_is_none_is_answered_with_what_is_wrong(folder, content, complaint) -> None:
    (folder / "front.json").write_bytes(content)
    with pytest.raises(FrontError, match=complaint):
        load_folder(folder)


def test_a_plan_in_the_place_of_a_front_is_told_what_it_is(folder) -> None:
    plan = folder / "plans" / "c01.json"
    with pytest.raises(FrontError) as caught:
        folder_of(plan)
    told = "is a plan, not a front; give the folder that `parapipe map` wrote"
    assert str(caught.value) == f"{plan}: {told}"


def test_a_front_goes_by_its_name_only(folder) -> None:
    assert folder_of(folder) == folder_of(folder / "front.json") == folder
    other = folder / "mine.json"
    shutil.copy(folder / "front.json", other)
    with pytest.raises(FrontError, match=r"mine\.json: is no front\.json; give the folder"):
        folder_of(other)


def test_a_missing_plan_is_named(folder) -> None:
    (folder / "plans" / "c01.json").unlink()
    with pytest.raises(PlanError, match=r"c01\.json: cannot be read"):
        load_folder(folder)


def test_a_plan_of_another_front_is_named(folder) -> None:
    shutil.copy(folder / "plans" / "c02.json", folder / "plans" / "c01.json")
    with pytest.raises(FrontError, match=r"plans/c01\.json belongs to another front"):
        load_folder(folder)


def test_an_id_that_leaves_the_folder_is_refused(folder) -> None:
    front = json.loads((folder / "front.json").read_text())
    front["configurations"][0]["id"] = "../../c01"
    (folder / "front.json").write_text(json.dumps(front))
    with pytest.raises(FrontError, match=r"configurations\[0\]\.id"):
        load_folder(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("latency_s", float("nan")), ("period_s", float("inf")), ("period_s", 0.0),
        ("energy_j", -1.0), ("gap", float("nan")), ("input_s", -1e-9), ("stages", []),
    ],
)  # fmt: skip
def test_a_figure_that_can_be_none_is_named(folder, key, value) -> None:
    front = json.loads((folder / "front.json").read_text())
    front["configurations"][1][key] = value
    (folder / "front.json").write_text(json.dumps(front))
    with pytest.raises(FrontError, match=rf"front\.json: .*configurations\[1\]\.{key}: "):
        load_folder(folder)


def test_a_front_of_nothing_is_refused(folder) -> None:
    front = json.loads((folder / "front.json").read_text())
    (folder / "front.json").write_text(json.dumps({**front, "configurations": []}))
    with pytest.raises(FrontError, match=r"configurations: tuple should have at least 1 item"):
        load_folder(folder)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("C02", "c02"),
        ("c2", "c02"),
        ("2", "c02"),
        ("Balanced", "balanced"),
        ("balancd", "balanced"),
    ],
)
def test_an_id_or_a_name_that_is_nearly_one_is_asked_back(branchy_front, key, meant) -> None:
    with pytest.raises(FrontError, match=f"no configuration '{key}'.*; did you mean '{meant}'[?]$"):
        branchy_front.document.configuration(key)


def test_a_number_that_is_none_is_not_taken_for_its_neighbour(branchy_front) -> None:
    with pytest.raises(FrontError, match=r"no configuration 'c99' in this front; give an id"):
        branchy_front.document.configuration("c99")


@pytest.mark.parametrize("content", ["{}", "[1]", '[{"solver": "x"}]'])
def test_a_solve_log_that_is_none_is_named(folder, content) -> None:
    (folder / "solve_log.json").write_text(content)
    with pytest.raises(FrontError, match=r"solve_log\.json: is no list of solved problems"):
        load_folder(folder)
