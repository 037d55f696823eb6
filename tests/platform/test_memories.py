"""What a platform says of its memories, and every mistake in it."""

from __future__ import annotations

import pytest

from parapipe.platform.load import read_platform
from tests.cases.soc_texts import SOC, mistakes, spoil

SOURCE = "source: guess"
DRAM = f"{{name: dram, processors: [cpu], capacity_bytes: 4e9, free_bytes: 3e9, {SOURCE}}}"
LOCAL = f"{{name: local, processors: [gpu], alignment_bytes: 64, {SOURCE}}}"
BOTH = f"memories: [{DRAM}, {LOCAL}]"


def stating(memories, text=SOC):
    return spoil(("processors:\n", f"{memories}\nprocessors:\n"), text=text)


def test_without_memories_one_is_assumed_and_its_name_says_so():
    system = read_platform(SOC, "soc.yaml").memory_system
    assert system.assumed
    assert system.names == ("shared memory assumed",)
    assert system.memory_of == {"cpu": 0, "gpu": 0}
    assert system.usable_bytes == (None,)


def test_every_processor_stands_in_its_memory():
    system = read_platform(stating(BOTH), "soc.yaml").memory_system
    assert not system.assumed
    assert system.names == ("dram", "local")
    assert system.memory_of == {"cpu": 0, "gpu": 1}
    assert system.usable_bytes == (3e9, None)
    assert [system.size_bytes(m, 100) for m in (0, 1)] == [100, 128]


def test_links_that_convert_hand_over_copies():
    conversion = "to: cpu, latency_s: 5e-4, conversion: {latency_s: 1e-4}"
    text = spoil(("to: cpu, latency_s: 5e-4", conversion))
    assert read_platform(text, "soc.yaml").memory_system.copying == {("gpu", "cpu")}


@pytest.mark.parametrize(
    ("weights", "packing"),
    [("own_copy: true", {"gpu": 1.0}), ("packing: 1.5", {"gpu": 1.5}), ("packing: 1", {})],
)
def test_a_processor_may_keep_weights_of_its_own(weights, packing):
    text = spoil(("    host: cpu\n", f"    host: cpu\n    weights: {{{weights}, {SOURCE}}}\n"))
    assert read_platform(text, "soc.yaml").memory_system.packing == packing


def test_a_name_that_stands_for_several_processors_puts_them_all_there():
    text = stating(BOTH.replace("[gpu]", "[gpu, npu]"))
    npu = text[text.index("  - name: gpu") : text.index("links:")]
    npu = npu.replace("name: gpu", "name: npu\n    count: 2")
    pairs = ("cpu, gpu", "gpu, gpu")
    links = [f"  - {{between: [{pair}], latency_s: 1e-3, {SOURCE}}}\n" for pair in pairs]
    text = text.replace("links:\n", f"{npu}links:\n{''.join(links)}")
    platform = read_platform(text, "soc.yaml")
    assert platform.memory_system.memory_of == {"cpu": 0, "gpu": 1, "npu0": 1, "npu1": 1}


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("[gpu]", "[gpo]",
         ("memories[1].processors[0]: no processor is named 'gpo'; known: cpu, gpu; "
          "did you mean 'gpu'?")),
        ("[gpu]", "[cpu, gpu]",
         "memories[1].processors[0]: processor 'cpu' already stands in memories[0]; list it once"),
        (f", {LOCAL}", "", "memories: nothing is said of gpu; add them to a memory"),
        ("name: local", "name: dram",
         "memories[1].name: 'dram' is also the name of memories[0]; rename one"),
        ("free_bytes: 3e9", "free_bytes: 5e9",
         "memories[0].free_bytes: is more than capacity_bytes; correct one of them"),
        ("alignment_bytes: 64", "alignment_bytes: 0",
         "memories[1].alignment_bytes: is 0, must be at least 1"),
    ],
)  # fmt: skip
def test_a_mistake_is_told(old, new, mistake):
    (found,) = mistakes(spoil((old, new), text=stating(BOTH)))
    assert found.split(": ", 1)[1] == mistake


@pytest.mark.parametrize(
    "odd", ["3", "[3]", "[{}]", "[{processors: 3}]", "[{processors: [[a], {b: c}]}]", "{a: b}"]
)
def test_what_is_no_memory_at_all_is_a_mistake_like_any_other(odd):
    assert all("memories" in each for each in mistakes(stating(f"memories: {odd}")))
