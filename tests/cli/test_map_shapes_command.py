"""`parapipe map` with several shapes of a model, and `verify` of what it wrote."""

import json
import re
from io import StringIO

import pytest
from rich.console import Console

from parapipe.cli.shapes_table import shapes_lines
from tests.cases.recurrent import write_any_shape

QUICK = ("--platform", "amlogic-a311d", "--exclude", "gpu", "--exclude", "little", "--quiet")
PREFILL = ("--shape-set", "prefill:sequence=16,past=0")
DECODE = ("--shape-set", "decode:input_ids=1x1,past=16")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_any_shape(tmp_path_factory.mktemp("shapes") / "any.onnx")


def test_a_table_has_a_line_for_each_shape_and_verify_checks_all_together(
    parapipe, model, tmp_path
):
    out = tmp_path / "out"
    both = (*PREFILL, *DECODE, "--mix", "prefill=1,decode=20")
    picture = tmp_path / "front.svg"
    ended = parapipe("map", model, *QUICK, *both, "--out", out, "--figure", picture)
    assert ended.code == 0, ended.err
    assert f"picture: {picture}\nto view it: parapipe report {out}\n" in ended.out
    assert picture.is_file()
    assert ended.out.startswith(f"wrote prefill, decode and shapes.json to {out}")
    assert "a request has these steps: 1 of prefill, 20 of decode" in ended.out
    assert "one-processor" in ended.out
    for place in (out, out / "shapes.json"):
        ended = parapipe("verify", place)
        assert (ended.code, ended.err) == (0, "")
        assert "shapes      prefill, decode" in ended.out
    document = json.loads(parapipe("verify", out, "--json").out)
    assert document["shapes"][1]["sizes"] == {"input_ids": [1, 1], "past": 16}
    command = document["command"]
    assert "--shape-set decode:input_ids=1x1,past=16 --mix prefill=1,decode=20" in command
    row = document["configurations"][0]
    assert parapipe("verify", out / "decode", row["placements"]["decode"]["id"]).code == 0
    ended = parapipe("pick", out, "--min-tokens-per-second", 1, "--minimise", "energy",
                     "--max-energy-per-token", "10J")  # fmt: skip
    assert ended.code == 0, ended.err
    assert f"plan of decode: {out / 'decode' / 'plans'}" in ended.out
    assert re.search(r"mJ per\s", ended.out)
    ended = parapipe("pick", out, "--max-energy-per-token", "0.001mJ")
    assert ended.code == 1
    assert "energy per token of 0.001 mJ is asked, and s" in ended.err
    ended = parapipe("explain", out, "s01")
    assert ended.code == 0, ended.err
    figures, draws, _, placement, *_ = ended.out.splitlines()
    assert draws.startswith("in nine of ten draws of the costs: a request ")
    assert re.fullmatch(
        r"s01: first token after \S+ ms, then \S+ tokens/s, \S+ mJ per token", figures
    )
    assert placement.startswith("prefill: c")
    ended = parapipe("report", out)
    assert ended.out.startswith(f"report: {out / 'report.html'}")
    for words, told in (
        (("explain", out, "--sources"), "are for one shape: name its folder"),
        (("export", out, "--to", "genai"), "name a configuration of the shapes"),
        (("export", out, "s01", "x", "--to", "genai", "--check"), "--check: of one plan"),
    ):
        ended = parapipe(*words)
        assert ended.code == 2
        assert told in ended.err


def test_only_placements_with_names_are_listed_but_for_all(parapipe, model):
    document = json.loads(parapipe("map", model, *QUICK, *PREFILL, *DECODE, "--json").out)
    (first,) = document["configurations"]
    rows = document["configurations"] = [first, {**first, "id": "s02", "names": []}]
    named = [first]
    for show_all, listed in ((False, named), (True, rows)):
        console = Console(width=100, file=StringIO())
        for each in shapes_lines(document, show_all=show_all):
            console.print(each)
        lines = console.file.getvalue().splitlines()
        starts = [i for i, line in enumerate(lines) if re.match(r"s\d+ ", line)]
        assert [lines[i].split()[0] for i in starts] == [row["id"] for row in listed]
        for i, row in zip(starts, listed, strict=True):
            for line, (shape, each) in zip(lines[i:], row["placements"].items(), strict=False):
                assert f" {shape} " in line
                assert f" {each['drawing']} " in line
            assert all(name in "\n".join(lines[i : i + 8]).split() for name in row["names"])
        left = f"{len(named)} of {len(rows)} placements; --all lists them all"
        assert (left in lines) is not show_all


def test_a_dimension_with_several_values_makes_buckets(parapipe, model, tmp_path):
    lengths = ("--dim", "sequence=8,16", "--dim", "past=0", "--mix", "5=1,12=3")
    ended = parapipe("map", model, *QUICK, *lengths, "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert "sequence-8 serves sequence 1 to 8: 1 request of the mix, 38% of it" in ended.out
    assert "sequence-16 serves sequence 9 to 16: 3 requests of the mix, 25% of it" in ended.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--shape-set", "prefill"), "is not NAME:SIZE=VALUE,SIZE=VALUE"),
        (("--shape-set", "prefill:past=x"), "is not NAME:SIZE=VALUE,SIZE=VALUE"),
        ((*PREFILL, *PREFILL), "is given twice"),
        ((*PREFILL, "--dim", "past=1,2"), "one --dim alone may have several values"),
        (("--dim", "past=1,2", "--dim", "sequence=1,2"), "one --dim alone"),
        ((*PREFILL, "--mix", "prefill=1.5"), "is not NAME=NUMBER"),
        ((*PREFILL, "--both-states"), "--both-states is for one shape"),
        (("--both-states", "--thermal-state", "cold"), "several fronts; leave out --thermal-state"),
        ((*PREFILL, "--min-fps", "3"), "several fronts; leave out --min-fps"),
    ],
)
def test_what_is_wrong_is_a_usage_error(parapipe, model, words, told):
    ended = parapipe("map", model, *QUICK, *words)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())


def test_a_mix_without_shapes_is_refused(parapipe, model):
    ended = parapipe("map", model, *QUICK, "--mix", "prefill=1", "--dim", "past=0")
    assert ended.code == 1
    assert "no shape is given" in ended.err
    assert "--dim sequence_length=128,512" in ended.err
