"""Wrong arguments of the API are named, all at once, before any work is done."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from pathlib import Path
from typing import get_type_hints

import pytest

import parapipe
from parapipe.api.checked import types_of
from parapipe.api.map import check_directory
from parapipe.documents.figure_table import DemandKeywords, Demands
from parapipe.errors import ArgumentError, KeywordError, ParapipeError, PlatformError
from parapipe.files.checked_arguments import check_arguments, type_text
from parapipe.search.options import MapKeywords, MapOptions

GOOD = {
    "model": ["zoo:googlenet", Path("a.onnx")],
    "platform": ["amlogic-a311d", Path("soc.yaml")],
    "mapper": ["auto"],
    "granularity": ["fused", "onnx"],
    "precision": ["model", "float16", "int8", None],
    "thermal_state": ["cold", "sustained", None],
    "time_limit_s": [1, 1e-9],
    "budget_s": [1, 1e-9],
    "seed": [0, 2**40],
    "draws": [0, 200],
    "confidence": [None, 0.9, 1],
    "deterministic": [True, False],
    "jobs": [None, 1],
    "executor": [None, ThreadPoolExecutor(1)],
    "cache": [True, False, "folder", Path("folder")],
    "objectives": ["latency-throughput"],
    "resolution": [0, 0.999],
    "energy_resolution": [0, 0.05, 1],
    "assignment": [None, "a.yaml", Path("a.yaml")],
    "order": [None, "GGBB"],
    "points": [None, "1800 800/1200"],
    "view": [None, "deployed", "as-measured"],
    "dvfs": [True, False],
    "dvfs_points": [2, 5],
    "profiles": [(), ["a.csv", Path("b.csv")]],
    "dims": [None, {}, {"batch": 1}],
    "shapes": [None, {"data": (1, 3)}, {"data": [1]}, {"y": ("int8", [1])}],
    "rules": [None, "rules.yaml", Path("rules.yaml")],
    "rates": [None, 30, 0.5, {"detect": 30}, {"detect": 0.5, "read": 10.0}],
    "deadline_s": [None, {"detect": 0.04}],
    "priority": [None, {"detect": 2}],
    "frames": [1],
    "queue": [None, 1],
    "jitter": [0, 0.999],
    "jitter_from": [None, "run.json"],
    "robust": [None, 0.9],
    "scenarios": [1, 8],
    "p99_latency_s": [None, 0.045],
    "p99_period_s": [None, 0.02],
    "saturate": [True, False],
    "in_step": [True, False],
    "arena": [True, False],
    "random_arrivals": [True, False],
    "sustained": [True, False],
    "contention": [True, False, 0.3, 2],
    "unit": ["operator", "segment"],
    "disturb": [None, {}, {"big": 0.5}],
    "runtime": ["onnxruntime", "native"],
    "strategy": ["steal", "mine:Strategy", dict],
    "input": ["in.npz"],
    "warmup": [0, 3],
    "period_s": [0.01],
    "watch_s": [0.01],
    "patience_s": [1, 0.5],
    "keep": ["out.npz"],
    "cores": [{}, {"big": [0, 1], "gpu": (2,)}],
    "progress": [None, print],
    "note": [None, print],
    "name": ["this-machine"],
    "exclude": [(), ["gpu"]],
    "pins": [None, {}, {"conv*": "npu"}],
    "states": [None, {}, {"past_0": "present_0"}],
    "sequences": [1, 4],
    "min_tokens_per_second": [0, 8, 0.5],
    "at_most": [None, 300],
    "example_inputs": [None, (1,), [1.5, "x"]],
    "model_file": [None, "a.onnx", Path("a.onnx")],
    "compiler": [None, "rknn"],
    "max_stages": [None, 1, 3],
    "split": ["none", "auto"],
    "interleave": ["none", "auto"],
    "recompute": [True, False],
    "search": [(), ["two-stages"]],
    "processors": [(), [[0], [1, 2]]],
    "out": [None, "profile.csv", Path("profile.csv")],
    "again": [True, False],
    "operators_only": [True, False],
    "most_useful": [None, 3],
    "parts": [True, False],
    "path": ["plan.json"],
    "predicted": ["a.json"],
    "measured": ["a.csv"],
    "directory": [Path("out")],
    "minimise": ["latency", "period", "energy", "power", "memory"],
    "min_fps": [0, 12.5],
    "max_latency_s": [0.1, 1, float("inf")],
    "max_energy_j": [0.1],
    "max_energy_per_token_j": [0.04],
    "max_power_w": [4],
    "max_memory_bytes": [None, 64e6, {"dram": 64e6}],
    "memory_limit_bytes": [None, 2e9],
    "max_segments": [None, 8, {"npu": 8}],
    "board": [True],
    "what_if": [True, False],
    "configuration": [None, "c07", "hybrid-T"],
    "operators": [(), ["conv1"]],
}
BAD = {
    "model": [None, "", 3],
    "platform": [None, "", b"a"],
    "mapper": [None, 1],
    "granularity": ["fine", None, []],
    "precision": ["fp16", 8, []],
    "thermal_state": ["hot", 1, []],
    "time_limit_s": [0, -1, float("inf"), float("nan"), "60", True, None],
    "budget_s": [0, -1, float("inf"), float("nan"), "60", True],
    "seed": [-1, 1.0, True, None],
    "draws": [-1, 1.0, None],
    "confidence": [0, 1.01, float("nan"), "0.9"],
    "deterministic": [1, "yes", None],
    "jobs": [0, 1.5, True],
    "executor": [1, ThreadPoolExecutor],
    "cache": [None, 1, ""],
    "objectives": ["latency", None],
    "resolution": [1, -0.01, float("nan"), True, "0"],
    "energy_resolution": [1.01, -0.01, float("nan"), "0", None],
    "assignment": ["", 1],
    "order": [1, ["G"]],
    "points": [1800, ["1800"]],
    "view": ["measured"],
    "dvfs": [1, None],
    "dvfs_points": [1, 2.0, True],
    "profiles": ["a.csv", None, [1]],
    "dims": [{"batch": -1}, {1: 1}, [("batch", 1)]],
    "shapes": [{"data": 3}, {"data": (1, -1)}, {"data": "1x3"}, {"y": ("int8", 1)}],
    "rules": ["", 1],
    "rates": [0, float("inf"), "30", {"detect": 0}, {"detect": "30"}, {"detect": float("inf")}],
    "deadline_s": [0.04, {"detect": -1.0}],
    "priority": [2, {"detect": float("nan")}],
    "frames": [0, 1.5, None],
    "queue": [0, True],
    "jitter": [1, -0.1, "5%"],
    "jitter_from": ["", 3],
    "robust": [0, 1, "90%"],
    "scenarios": [0, 2.5, None],
    "p99_latency_s": [0, float("inf"), "45ms"],
    "p99_period_s": [0, float("nan"), "20ms"],
    "saturate": [1, None],
    "in_step": [1, None],
    "arena": [1, None],
    "random_arrivals": [1, None],
    "sustained": [1, None],
    "contention": [0, -1, "platform", None],
    "unit": ["frame", None],
    "disturb": [{"big": 1}, {"big": -0.1}, 0.5, {1: 0.5}],
    "runtime": [None, "", 3],
    "strategy": ["", None, 3],
    "input": ["", 3],
    "warmup": [-1, 0.5],
    "period_s": [0, -1, float("inf")],
    "watch_s": [0, -1, float("inf")],
    "patience_s": [0, "1"],
    "keep": ["", 3],
    "cores": [{"big": []}, {"big": [-1]}, [0, 1], {"big": 0}],
    "progress": [1],
    "note": ["print"],
    "name": ["", None],
    "exclude": ["gpu", [""], [1], None],
    "compiler": ["", 1],
    "pins": [["conv1=npu"], {"conv1": ""}, {"conv1": 1}],
    "states": [["past_0=present_0"], {"past_0": ""}, {"past_0": 1}],
    "sequences": [0, 1.5, "2", True],
    "min_tokens_per_second": [-1, "8", float("nan")],
    "at_most": [0, 1.5, "2", True],
    "example_inputs": [1, {1: 2}],
    "model_file": ["", 1],
    "max_stages": [0, 1.5, True],
    "split": ["all", 2, None],
    "interleave": ["all", True, None],
    "recompute": ["yes", 1, None],
    "search": ["two-stages", [""], None],
    "processors": [None, [0], [[-1]], ["0"]],
    "out": ["", 1],
    "again": [1, None],
    "operators_only": [1, None],
    "most_useful": [0, 1.5, True],
    "parts": [1, None],
    "path": [None],
    "predicted": [None],
    "measured": [""],
    "directory": [1],
    "minimise": ["cost", None],
    "min_fps": [-1, float("inf"), "8", True],
    "max_latency_s": [0, -1, "150ms", float("nan"), True],
    "max_energy_j": [0, "1"],
    "max_energy_per_token_j": [0, "40mJ"],
    "max_power_w": [0, "4W"],
    "max_memory_bytes": [0, "64MB", True, float("inf"), {"dram": 0}],
    "memory_limit_bytes": [0, -1, "2GB", True, float("inf"), {"dram": 2e9}],
    "max_segments": [0, "8", True, 1.5, {"npu": 0}],
    "board": [1, None],
    "what_if": [1, None],
    "configuration": [7],
    "operators": ["conv1", None, [1]],
}


VERBS = (
    parapipe.simulate_plan, parapipe.run_plan, parapipe.evaluate, parapipe.explain, parapipe.pick,
    parapipe.compare, parapipe.report, parapipe.profile, parapipe.detect_platform,
    parapipe.load_plan, parapipe.map,
)  # fmt: skip
TYPES = {name: hint for verb in reversed(VERBS) for name, hint in types_of(verb).items()}
TYPES |= types_of(parapipe.map)  # whose platform must be given


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in GOOD.items() for value in values]
)
def test_what_an_argument_may_be_is_taken(name, value) -> None:
    check_arguments("f", TYPES, {name: value})


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_what_an_argument_may_not_be_is_named_with_what_it_must_be(name, value) -> None:
    with pytest.raises(ArgumentError) as caught:
        check_arguments("f", TYPES, {name: value})
    message = str(caught.value)
    assert message.startswith(f"f: {name} must be {type_text(TYPES[name])}, and is ")
    assert repr(value)[:40] in message
    assert "\n" not in message


@pytest.mark.parametrize("split", [None, 2])
def test_a_machine_may_be_detected_with_its_clusters_divided(split) -> None:
    check_arguments("f", types_of(parapipe.detect_platform), {"split": split})


@pytest.mark.parametrize("split", [0, 1.5, True])
def test_clusters_are_divided_among_whole_numbers(split) -> None:
    with pytest.raises(ArgumentError, match=r"^f: split must be a whole number"):
        check_arguments("f", types_of(parapipe.detect_platform), {"split": split})


def test_every_type_is_tried() -> None:
    verbs = {"return", "keywords", "demands", "options", "plan", "front"}
    assert set(GOOD) == set(BAD) == set(TYPES) - verbs


def test_all_wrong_arguments_are_named_at_once() -> None:
    with pytest.raises(ArgumentError) as caught:
        parapipe.map("zoo:googlenet", "no-such-platform", seed=-1, jobs=0, resolution=2)
    assert str(caught.value) == (
        "map: resolution must be a number of at least 0 and less than 1, and is 2; jobs must be a "
        "whole number of at least 1, or None, and is 0; seed must be a whole number of at least 0, "
        "and is -1"
    )
    assert isinstance(caught.value, ParapipeError)
    assert isinstance(caught.value, ValueError)


def test_options_are_checked_in_their_record_too() -> None:
    with pytest.raises(ArgumentError, match=r"^MapOptions: seed must be a whole number"):
        MapOptions(seed=-1)
    options = MapOptions(mapper="heft", seed=4)
    with pytest.raises(ArgumentError, match=r"^map: options must be of type MapOptions, or None"):
        parapipe.map("zoo:alexnet", "amlogic-a311d", options={"seed": 4})
    assert options.seed == 4


def test_an_argument_that_there_is_not_is_refused() -> None:
    told = r"^map: there is no argument 'sede'; did you mean 'seed'\?$"
    with pytest.raises(KeywordError, match=told):
        parapipe.map("zoo:alexnet", "amlogic-a311d", sede=4)


@pytest.mark.parametrize(
    ("keywords", "record"), [(MapKeywords, MapOptions), (DemandKeywords, Demands)]
)
def test_the_keywords_that_editors_show_are_the_fields_of_a_record(keywords, record) -> None:
    assert get_type_hints(keywords, include_extras=True) == types_of(record)


def test_a_long_value_is_cut_short() -> None:
    with pytest.raises(ArgumentError) as caught:
        check_arguments("f", TYPES, {"seed": "x" * 1000})
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    "function",
    [
        "map",
        "load_model",
        "inspect",
        "load_platform",
        "load_plan",
        "explain",
    ],
)
def test_a_function_of_the_api_has_its_arguments_checked(function) -> None:
    called = getattr(parapipe, function)
    required = [p.name for p in signature(called).parameters.values() if p.default is p.empty]
    with pytest.raises(ArgumentError, match=f"^{function}: {required[0]} must be"):
        called(*[None] * len(required))


def test_a_path_may_be_given_as_such(tmp_path) -> None:
    model = tmp_path / "alexnet.onnx"
    parapipe.build_zoo("alexnet", model, weightless=True)
    platform = tmp_path / "soc.yaml"
    platform.write_bytes((Path(__file__).parents[2] / "platforms/amlogic-a311d.yaml").read_bytes())
    assert parapipe.inspect(model).operators
    parapipe.check_platform(str(platform))
    assert parapipe.load_platform(platform).name == "amlogic-a311d"


@pytest.mark.parametrize(("kind", "told"), [("front", "a front"), ("plan", "a plan")])
def test_a_document_of_ours_in_the_place_of_a_platform_is_told_in_one_line(
    tmp_path, kind, told
) -> None:
    path = tmp_path / "x.json"
    path.write_text(f'{{"schema": "parapipe/{kind}/1"}}')
    with pytest.raises(PlatformError) as caught:
        parapipe.load_platform(path)
    assert str(caught.value).startswith(f"'{path}' is {told}, not a platform file; ")
    assert not caught.value.mistakes


def test_functions_for_the_commands_name_wrong_arguments_too():
    with pytest.raises(ArgumentError, match="directory"):
        check_directory(3)
