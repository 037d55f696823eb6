"""`parapipe pick`, and the same question put to `parapipe map`."""

import json
import re

import pytest

from parapipe import load_front, load_plan, new_platform, pick
from parapipe import map as map_model
from parapipe.cli.figure_cells import plain_cells
from parapipe.cli.pick import certainty_text
from parapipe.digits import plain


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("front")
    map_model("zoo:alexnet", "amlogic-a311d", cache=False, interleave="none").write(out)
    return out


def test_it_names_the_configuration_that_keeps_the_demands_and_its_plan(parapipe, folder):
    asked = ("--min-fps", "4", "--max-latency", "900ms", "--max-power", "6W")
    shown = parapipe("pick", folder, *asked, "--minimise", "energy", "--json").out
    picked = json.loads(shown)
    row = picked["configuration"]
    assert row["throughput_fps"] >= 4
    assert row["latency_s"] <= 0.9
    assert row["energy_j"] / row["period_s"] <= 6
    assert picked["plan"] == str(folder / "plans" / f"{row['id']}.json")
    predicted = load_plan(picked["plan"]).predicted
    assert float(f"{predicted.latency_s:.12g}") == row["latency_s"]
    text = parapipe("pick", folder, *asked, "--minimise", "energy").out
    assert row["id"] in text
    assert picked["plan"] in text


@pytest.mark.parametrize(
    ("mean", "most", "told"),
    [
        (0.018, 0.063, "1.8 % worse on average, at most 6.3 %"),
        (0.74, 2.1, "74 %.*210 %"),
        (0.0, 0.0, "in 40%: no loss in any draw$"),
    ],
)
def test_a_regret_is_written_without_an_exponent(mean, most, told) -> None:
    sure = {"keeps": 0.9, "best": 0.4, "regret_mean": mean, "regret_most": most}
    assert re.search(told, certainty_text(sure, "latency"))


@pytest.fixture(scope="module")
def rough(tmp_path_factory):
    """Return a folder whose costs are all nominal: draws lie far from the stated figures."""
    made = tmp_path_factory.mktemp("rough")
    (made / "board.yaml").write_text(new_platform(chip="rk3588").text, encoding="utf-8")
    front = map_model("zoo:squeezenet", made / "board.yaml", cache=False, interleave="none")
    front.write(made / "front")
    return made / "front"


def test_what_meets_a_demand_is_shown_with_what_draws_say_of_it(parapipe, rough):
    rows = json.loads((rough / "front.json").read_text())["configurations"]
    fastest = max(rows, key=lambda row: row["throughput_fps"])
    fps, median = fastest["throughput_fps"], 1 / fastest["medians"]["period_s"]
    assert fps > 1 / fastest["intervals"]["period_s"][0]  # else nothing is tested
    asked = ("--min-fps", f"{fps * 0.999}")
    ended = parapipe("pick", rough, *asked)
    line = (
        f"throughput {plain_cells([fps])[0]} frames/s by the stated costs; in draws of the costs "
    )
    assert re.search(
        rf"{re.escape(line)}[0-9.–]+, median {plain_cells([median])[0]}$", ended.out, re.M
    )
    assert "~" not in ended.out
    told = ended.out[ended.out.index("warning: ") :]
    assert re.match(r"warning: the demands are met by the stated costs, but missed in \d+%", told)
    assert "--confidence 0.9" in told
    assert "warning" not in parapipe("pick", rough).out
    sure = parapipe("pick", rough, "--min-fps", f"{median / 2}", "--confidence", "0.5").out
    assert "warning" not in sure
    best = load_front(rough).best(min_fps=float(asked[1]))
    assert f"{fps:.2f} fps (by the stated costs; median {plain(median)})" in repr(best)
    assert re.search(r"demands met in \d+% of draws>$", repr(pick(rough, min_fps=float(asked[1]))))


def test_map_warns_of_what_it_picks_as_pick_does(parapipe, rough, tmp_path):
    rows = json.loads((rough / "front.json").read_text())["configurations"]
    asked = ("--min-fps", f"{max(row['throughput_fps'] for row in rows) * 0.999}")
    board = rough.parent / "board.yaml"
    mapped = ("map", "zoo:squeezenet", "--platform", board, "--interleave", "none", *asked)
    picked = parapipe("pick", rough, *asked).out.splitlines()
    ended = parapipe(*mapped, "--out", tmp_path / "out")
    assert {line for line in picked if "draws" in line} <= {*ended.out.splitlines()}
    ended = parapipe(*mapped, "--json")
    (warning,) = [line for line in picked if line.startswith("warning")]
    assert f"parapipe: note: {warning}" in ended.err


@pytest.mark.parametrize("written", [True, False])
def test_map_says_where_the_front_is_before_what_it_misses(
    parapipe, small_model, tmp_path, written
) -> None:
    out = tmp_path / "out"
    ended = parapipe(
        "map", small_model(), "--platform", "amlogic-a311d", "--max-latency", "0.001us",
        *(["--out", out] if written else ["--json"]),
    )  # fmt: skip
    (line,) = [each for each in ended.err.splitlines() if "no configuration meets" in each]
    first = f"parapipe: the front is in {out}, but " if written else "parapipe: "
    assert ended.code == 1
    assert line.startswith(f"{first}no configuration meets all demands")
    assert (out / "front.json").exists() == written
    assert ended.out


def test_a_throughput_that_is_only_sustained_is_asked_for_with_sustained(parapipe, folder):
    rows = json.loads((folder / "front.json").read_text())["configurations"]
    fastest = min(rows, key=lambda row: row["sustained_period_s"])
    fps = 1 / fastest["sustained_period_s"]
    least_s = min(row["period_s"] for row in rows)
    assert fps > 1.005 / least_s
    asked = ("--min-fps", f"{(fps + 1 / least_s) / 2}")
    complaint = parapipe("pick", folder, *asked).complaint
    assert complaint.endswith(f"; {fastest['id']} sustains {fps:.4g} frames/s: --sustained")
    picked = json.loads(parapipe("pick", folder, *asked, "--sustained", "--json").out)
    row, figures = picked["configuration"], picked["figures"]
    assert figures["throughput_fps"] == 1 / row["sustained_period_s"] >= float(asked[1])
    used = [processor for stage in row["stages"] for processor in stage["processors"]]
    dynamic_j = sum(processor["dynamic_energy_j"] for processor in used)
    static_w = sum(processor["static_power_w"] for processor in used)
    power_w = dynamic_j * figures["throughput_fps"] + static_w
    assert figures["power_w"] == pytest.approx(power_w, rel=1e-9)
    shown = parapipe("pick", folder, *asked, "--sustained").out
    assert f"sustained: {plain_cells([figures['throughput_fps']])[0]} frames/s" in shown


def test_what_stands_in_the_way_is_one_line(parapipe, folder):
    complaint = parapipe("pick", folder, "--min-fps", "5000").complaint
    assert "frames/s instead of 5000 frames/s" in complaint


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--max-latency", "150", "'150' has no unit: give one, as in 150s or 150ms"),
        ("--max-latency", "fast", "is not a number in s or ms or us or µs, as in 150ms"),
        ("--max-latency", "0ms", "is not positive and finite"),
        ("--max-power", "1.2.3W", "is not positive and finite"),
        ("--max-power", "4 kg", "is not a number in W or mW, as in 4W"),
        ("--min-tokens-per-second", "fast", "'fast' is not a number, as in 8"),
        ("--min-fps", "-1", "'-1' is not positive and finite, as 8 is"),
        ("--max-latency", "-1ms", "'-1ms' is not positive and finite, as 150ms is"),
        ("--minimise", "cost", "'latency', 'period', 'throughput', 'energy', 'power'"),
    ],
)
def test_figures_want_a_unit(parapipe, folder, option, value, words):
    ended = parapipe("pick", folder, option, value)
    assert ended.code == 2
    assert words in ended.err


def test_front_json_stands_for_its_folder(parapipe, folder):
    picked = json.loads(parapipe("pick", folder / "front.json", "--json").out)
    assert picked == json.loads(parapipe("pick", folder, "--json").out)


def test_a_folder_that_map_did_not_write_is_told(parapipe, tmp_path):
    assert "front.json" in parapipe("pick", tmp_path).complaint


def test_map_picks_in_the_end(parapipe, small_model, tmp_path):
    mapped = ("map", small_model(), "--platform", "amlogic-a311d", "--out", tmp_path / "out")
    ended = parapipe(*mapped, "--minimise", "energy", "--max-power", "100W")
    front = json.loads((tmp_path / "out/front.json").read_text())
    least = min(front["configurations"], key=lambda row: row["energy_j"])
    assert f"picked from those that meet all demands: {least['id']}" in ended.out
    ended = parapipe(*mapped, "--max-power", "1mW")
    assert ended.code == 1
    assert "W instead of 0.001 W" in ended.err
    assert (tmp_path / "out/front.json").exists()
