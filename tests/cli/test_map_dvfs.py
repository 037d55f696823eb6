"""`parapipe map --dvfs`: the front trades the processors' frequencies, too."""

import json
import re
from pathlib import Path

A311D = Path(__file__).parents[2] / "platforms" / "amlogic-a311d.yaml"
FIGURES = ("latency_s", "period_s", "energy_j")


def test_the_front_betters_the_one_at_fixed_points_and_says_where_clocks_stand(
    parapipe, small_model, tmp_path
) -> None:
    # without static power to be paid for longer, a lower voltage always saves energy
    platform = tmp_path / "soc.yaml"
    platform.write_text(re.sub(r"beta_w_per_v: .*", "beta_w_per_v: 0", A311D.read_text()))
    asked = ("map", small_model(), "--platform", platform)
    out = tmp_path / "out"
    fixed = json.loads(parapipe(*asked, "--json").out)
    ended = parapipe(*asked, "--dvfs", "--quiet", "--out", out)
    assert (ended.code, ended.err) == (0, "")
    front = json.loads((out / "front.json").read_text())
    rows = front["configurations"]
    for one in fixed["configurations"]:
        assert any(all(row[f] <= one[f] * (1 + 1e-9) for f in FIGURES) for row in rows)
    assert fixed["dvfs"] is None
    assert list(front["dvfs"]) == ["big", "little", "gpu"]
    assert [len(row["operating_points"]) for row in front["dvfs"].values()] == [3, 3, 3]
    slow = next(row for row in rows if row["pareto"] and "@" in row["drawing"])
    plan = json.loads((out / "plans" / f"{slow['id']}.json").read_text())
    planned = {p["name"]: p["operating_point"] for p in plan["processors"]}
    shown = {p["name"]: p["operating_point"] for s in slow["stages"] for p in s["processors"]}
    assert planned == shown
    assert re.search(r"^big: 2\.21 GHz, big@\S+, big@\S+, 3 of 13 points$", ended.out, re.MULTILINE)


def test_a_platform_without_points_to_choose_from_is_refused_in_one_line(
    parapipe, small_model
) -> None:
    ended = parapipe("map", small_model(), "--platform", "bst-a1000", "--dvfs")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.count("\n") == 1
    assert "leaves no operating points to choose from" in ended.err
