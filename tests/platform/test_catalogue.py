"""The catalogue: every figure has a public source, every chip is a platform that maps a model."""

import warnings
from itertools import combinations_with_replacement

import pytest
import yaml

import parapipe
from parapipe.files.shipped import data_folder
from parapipe.files.yaml_file import parse_yaml
from parapipe.platform.catalogue import KINDS, catalogue
from parapipe.platform.consistency import named_sources
from parapipe.platform.load import read_platform
from parapipe.platform.new import new_platform
from tests.cases.branchy import branchy

FILES = sorted((data_folder("platforms") / "catalogue").rglob("*.yaml"))
CHIPS = tuple(catalogue().chips)
WANTED = (
    "rk3588", "rk3399", "rk3566", "raspberry-pi-4", "raspberry-pi-5", "jetson-orin-nano",
    "jetson-xavier-nx", "imx8mplus", "sm8550", "dimensity-9200", "tda4vm", "a311d",
)  # fmt: skip


def platform_of(chip):
    return read_platform(f"schema: parapipe/platform/1\nname: toy\nchip: {chip}\n", "toy.yaml")


def plain(path):
    return parse_yaml(path.read_text(encoding="utf-8")).value


def figures(value, source=None, path=()):
    """Yield every number below a value, with the source of the innermost section around it."""
    if isinstance(value, dict):
        source = value.get("source", source)
        for key, item in value.items():
            yield from figures(item, source, (*path, key))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from figures(item, source, (*path, index))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, source


def test_the_chips_that_were_promised_are_there():
    assert set(WANTED) <= set(CHIPS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_figure_names_a_source_of_the_catalogue(path):
    value = plain(path)
    found = [
        (at, source)
        for at, source in figures(value)
        # How many there are, and which numbers they have, is no measured figure.
        if at[0] != "sources" and at[-1] not in ("units", "count") and "operators" not in at
    ]
    assert found or path.stem in ("operators", "sources")
    for at, source in found:
        assert source in catalogue().sources, at
    assert {source for _, source in named_sources(value)} <= set(catalogue().sources)


@pytest.mark.parametrize("key", catalogue().sources)
def test_every_source_is_public_and_says_how_the_figures_follow(key):
    source = catalogue().sources[key]
    assert source.provenance == "nominal"
    assert source.reasoning
    assert key == "stated-clock" or source.url.startswith("https://")


def test_every_source_is_used():
    used = {source for path in FILES for _, source in named_sources(plain(path))}
    assert set(catalogue().sources) == used | {"stated-clock"}


def test_no_name_stands_in_two_files():
    for table in ("parts", "memories", "kinds", "operators", "sources"):
        names = [name for path in FILES for name in plain(path).get(table, ())]
        assert len(names) == len(set(names))


def test_every_kind_has_defaults_and_every_pair_of_kinds_a_link():
    assert set(catalogue().kinds) == set(KINDS)
    pairs = [tuple(sorted(link.between)) for link in catalogue().links]
    assert sorted(pairs) == sorted(map(tuple, map(sorted, combinations_with_replacement(KINDS, 2))))


def test_what_a_part_runs_stands_in_the_catalogue():
    assert {part.operators for part in catalogue().parts.values()} <= {None, *catalogue().operators}


@pytest.mark.parametrize("chip", CHIPS)
def test_a_chip_is_a_platform_of_nominal_figures(chip):
    platform = platform_of(chip)
    assert {source.provenance for source in platform.sources.values()} == {"nominal"}
    assert set(platform.nominal_power) == set(platform.names)
    for processor in platform.processors:
        assert (processor.host is None) == (processor.kind == "cpu")
        assert bool(processor.cores) == (processor.kind == "cpu")
        if processor.kind == "cpu":
            assert {"float32", "int8", "uint8", "int32", "int64", "bool"} <= {*processor.data_types}


@pytest.mark.parametrize("chip", CHIPS)
def test_a_model_is_mapped_on_a_chip(chip, tmp_path):
    file = tmp_path / "board.yaml"
    parapipe.new_platform(chip=chip).write(file)
    parapipe.check_platform(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nominal power
        front = parapipe.map(
            branchy(tmp_path / "branchy.onnx", joins=1), file,
            objectives="latency-throughput", mapper="heft", cache=False, jobs=1, interleave="none",
        )  # fmt: skip
    names = {p.name for c in front for stage in c.stages for p in stage.processors}
    assert names <= set(platform_of(chip).names)
    assert front.document.coverage.nominal.operators == 1


def test_an_rk3588_has_six_processors():
    platform = platform_of("rk3588")
    assert platform.names == ("little", "big", "gpu", "npu0", "npu1", "npu2")
    assert [p.cores for p in platform.processors[:2]] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert {p.host for p in platform.processors[2:]} == {"big"}


def test_rates_are_what_one_computes_by_hand():
    big = platform_of("rk3588").processors[1]
    # Two 128-bit units are 8 products in float32, on 4 cores at 2.4 GHz, of which 56 % are reached.
    assert big.peak.macs_per_s["float32"] == pytest.approx(8 * 4 * 2.4e9 * 0.56, rel=1e-3)
    assert big.peak.macs_per_s["int8"] == pytest.approx(32 * 4 * 2.4e9 * 0.56, rel=1e-3)
    # 416 µW/(MHz·V²) for each core, at 1 V and 2400 MHz.
    assert big.dynamic_power_w("conv3x3") == pytest.approx(4 * 416e-6 * 2400, rel=1e-3)
    assert big.static_power_w == pytest.approx(0.12 * 4 * 416e-6 * 2400, rel=1e-3)


def test_an_rk3588s_npu_runs_resnet_50_as_often_as_rockchip_publishes():
    npu = platform_of("rk3588").processors[3]
    assert npu.peak.macs_per_s["int8"] == pytest.approx(110.1 * 4.1e9, rel=0.01)
    assert "float32" not in npu.data_types
    assert npu.supports("Conv", "int8", {}) is None
    assert (
        str(npu.supports("LSTM", "int8", {}))
        == "LSTM cannot run on npu0: LSTM is not among the allowed operators"
    )


OWN_FIGURES = {
    "peak": "peak: {macs_per_s: {int8: 1e12}, source: rk3588}",
    "memory": "memory: {bandwidth_bytes_per_s: 1e10, source: rk3588}",
}


def test_rates_of_classes_come_with_the_part():
    npu, gpu = platform_of("rk3588").processors[3], platform_of("rk3588").processors[2]
    assert npu.rates == catalogue().parts["RK3588-NPU"].rates
    assert npu.rates.input_channels == 32
    assert gpu.rates is None


@pytest.mark.parametrize("own", OWN_FIGURES.values(), ids=OWN_FIGURES)
def test_rates_of_classes_do_not_go_with_figures_of_a_files_own(own):
    text = "schema: parapipe/platform/1\nname: toy\nchip: rk3588\nprocessors:\n"
    npu = read_platform(f"{text}  - name: npu\n    {own}\n", "toy.yaml").processors[3]
    assert npu.rates is None


@pytest.mark.parametrize("chip", CHIPS)
def test_the_full_form_of_a_chip_is_the_same_platform(chip):
    asked = {"name": "toy", "chip": chip, "parts": dict.fromkeys(KINDS, ()), "memory": None}
    full = new_platform(**asked, full=True).text
    assert "part" not in yaml.safe_load(full)["processors"][0]
    again = read_platform(full, "full.yaml")
    short = read_platform(new_platform(**asked, full=False).text, "short.yaml")
    assert again == short
