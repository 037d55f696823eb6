"""`parapipe map --precision`: what it prints, and what later commands say of it."""

from __future__ import annotations

import json
import re

import pytest

import parapipe as package
from parapipe.errors import ArgumentError
from tests.cases.precisions import HALF_ONLY, branches, soc_file


def test_the_table_says_what_is_supposed_and_explain_names_types_and_casts(
    parapipe, tmp_path
) -> None:
    model = branches(tmp_path / "branches.onnx")
    platform = soc_file(tmp_path, *HALF_ONLY)
    out = tmp_path / "out"
    ended = parapipe(
        "map", model, "--platform", platform, "--precision", "float16", "--out", out, "--all"
    )
    said = "planned as after conversion to float16 (cpu in float32; gpu in float16): its accuracy"
    assert ended.code == 0
    assert said in ended.out
    front = json.loads((out / "front.json").read_bytes())
    assert front["options"]["precision"] == "float16"
    assert "--precision float16" in front["command"]
    crossing = next(
        row["id"]
        for row in front["configurations"]
        if len({p["name"] for stage in row["stages"] for p in stage["processors"]}) > 1
    )
    told = " ".join(parapipe("explain", out, crossing).out.split())
    assert "It is planned as after conversion to float16" in told
    assert " casts, " in parapipe("explain", out, crossing, "--figures").out
    assert "Cast from float" in parapipe("explain", out, crossing, "--sources").out
    operator = parapipe("explain", out, "gpu-alone", "--operator", "a").out
    assert operator.startswith("a (Abs) on gpu in float16, stage 1")


def test_without_a_precision_a_processor_without_float32_idles_and_a_note_says_so(
    parapipe, tmp_path
) -> None:
    model = branches(tmp_path / "branches.onnx")
    ended = parapipe("map", model, "--platform", soc_file(tmp_path, *HALF_ONLY), "--json")
    document = json.loads(ended.out)
    assert {p["name"] for r in document["configurations"] for s in r["stages"]
            for p in s["processors"]} == {"cpu"}  # fmt: skip
    assert document["conversion"] is None
    assert (
        "gpu computes in float16, not in float32: it could run 5 of 5 operators with --precision "
        "float16, if accuracy allows"
    ) in ended.err


@pytest.mark.parametrize(
    ("word", "meant"), [("fp16", "float16"), ("half", "float16"), ("i8", "int8"), ("fp32", "model")]
)
def test_a_type_by_another_name_is_answered_with_the_one_that_is_meant(
    parapipe, small_model, word, meant
) -> None:
    told = f"did you mean '{meant}'?"
    command = ("map", small_model(), "--platform", "amlogic-a311d", "--precision", word)
    ended = parapipe(*command)
    assert (ended.code, told in ended.err) == (2, True)
    with pytest.raises(ArgumentError, match=re.escape(told)):
        package.map(small_model(), "amlogic-a311d", precision=word)


def test_a_word_like_nothing_gets_no_hint(parapipe, small_model) -> None:
    ended = parapipe("map", small_model(), "--platform", "amlogic-a311d", "--precision", "zzz")
    assert "mean" not in ended.err
