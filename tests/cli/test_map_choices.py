"""`parapipe map` with what the user decides beforehand: taken, and said in the command again."""

from __future__ import annotations

import json
import shlex

import pytest

MAP = ("map", "zoo:squeezenet", "--platform", "amlogic-a311d", "--draws", "0", "--quiet")
CHOICES = ("--exclude", "little", "--pin", "fire2/*=gpu", "--max-stages", "2", "--rate", "20")


@pytest.mark.nightly
def test_the_command_of_a_front_makes_it_again_with_the_same_choices(parapipe) -> None:
    first = json.loads(parapipe(*MAP, *CHOICES, "--json").out)
    words = shlex.split(first["command"])[1:]
    for option in CHOICES[::2]:
        assert option in words
    again = json.loads(parapipe(*words, "--json", "--quiet").out)
    assert again["configurations"] == first["configurations"]
    assert first["options"]["pins"] == {"fire2/*": "gpu"}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("--pin", "conv1"), "'conv1' is not OPERATOR=PROCESSOR, as in conv1=npu"),
        (("--pin", "conv1="), "'conv1=' is not OPERATOR=PROCESSOR"),
        (("--pin", "a=big", "--pin", "a=gpu"), "'a' is given twice, as big and as gpu: say which"),
        (("--rate", "0"), "'0' is not positive and finite, as 30 is"),
        (("--rate", "10", "--rate", "20"), "the rate of a single model is given twice"),
        (("--max-stages", "0"), "0 is not in the range x>=1"),
    ],
)
def test_a_choice_in_a_wrong_form_is_a_usage_error(parapipe, wrong, told) -> None:
    ended = parapipe(*MAP, *wrong)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())
