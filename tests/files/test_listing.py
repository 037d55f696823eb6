"""Texts about several things of which each says the same."""

from parapipe.files.mistakes import together, with_article


def test_texts_that_differ_in_a_name_alone_become_one_in_the_plural():
    texts = {
        name: f"{name} cannot run 2 operators: {name} computes in int8; Gelu cannot run on {name}"
        for name in ("npu0", "npu1", "npu10")
    }
    assert together({"gpu": "gpu runs 3 of 4", **texts, "npu": "npu runs 1 of 4"}) == {
        ("gpu",): "gpu runs 3 of 4",
        ("npu0", "npu1", "npu10"): "npu0, npu1 and npu10 cannot run 2 operators: they compute in "
        "int8; Gelu cannot run on them",
        ("npu",): "npu runs 1 of 4",
    }
    assert together({"a": "a runs 1", "b": "b runs 1"}) == {("a", "b"): "a and b run 1"}


def test_a_noun_that_begins_with_a_vowel_has_another_article():
    assert with_article("assignment file") == "an assignment file"
    assert with_article("platform") == "a platform"
