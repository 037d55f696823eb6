"""What a platform file says of co-runs, heat and power, and what it cannot say."""

from math import inf, log

import pytest

from parapipe.platform.load import read_platform
from tests.cases.soc_texts import SOC, line_of, mistakes, spoil

TABLE = """co_run:
  slowdowns:
    - {processor: cpu, busy: [gpu], class: memory, factor: 1.5, spread: 0.1}
    - {processor: gpu, busy: [cpu], factor: 1.2}
  source: guess
links:
"""


def text(*changes, law=TABLE):
    return spoil(("links:\n", law), *changes)


def test_a_file_that_says_nothing_has_no_law_and_is_planned_cold():
    platform = read_platform(SOC, "soc.yaml")
    assert (platform.co_run, platform.power_budget, platform.state) == (None, None, "cold")
    assert platform.processors[0].memory.most_bytes_per_s == 8e9


def test_a_table_is_read_row_by_row():
    law = read_platform(text(), "soc.yaml").co_run
    first, second = law.slowdowns
    assert (first.processor, first.busy, first.operator_class) == ("cpu", ("gpu",), "memory")
    assert (first.busy_class, first.factor, first.spread) == (None, 1.5, 0.1)
    assert (second.operator_class, second.spread, law.memory_share) == (None, None, None)


def test_a_draw_takes_the_place_of_the_bandwidth():
    draw = "bandwidth_bytes_per_s: 8e9, draw_bytes_per_s: 6e9, cache_bytes: 1e6"
    platform = read_platform(spoil(("bandwidth_bytes_per_s: 8e9", draw)), "soc.yaml")
    assert platform.processors[0].memory.most_bytes_per_s == 6e9


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("factor: 1.5", "factor: 0.9",
         "co_run.slowdowns[0].factor: is 0.9, must be at least 1"),
        ("busy: [gpu]", "busy: [gpa]",
         ("co_run.slowdowns[0].busy[0]: no processor is named 'gpa'; known: cpu, gpu; did you "
          "mean 'gpu'?")),
        ("processor: cpu, busy", "processor: cup, busy",
         ("co_run.slowdowns[0].processor: no processor is named 'cup'; known: cpu, gpu; did you "
          "mean 'cpu'?")),
        ("busy: [gpu]", "busy: [gpu, cpu]",
         "co_run.slowdowns[0].busy[1]: 'cpu' is the processor itself; list others only"),
        ("busy: [gpu]", "busy: [gpu, gpu]",
         "co_run.slowdowns[0].busy[1]: 'gpu' is listed twice; list it once"),
        ("class: memory", "class: memmory",
         ("co_run.slowdowns[0].class: 'memmory' is not one of 'compute' or 'memory'; did you mean "
          "'memory'?")),
        ("- {processor: gpu, busy: [cpu], factor: 1.2",
         "- {busy: [gpu], processor: cpu, class: memory, factor: 1.6",
         "co_run.slowdowns[1]: slowdowns[0] says it already; delete one"),
        ("  source: guess\nlinks", "  bandwidth: shared\n  source: guess\nlinks",
         "co_run.bandwidth: there is one law at a time; delete this key or slowdowns"),
    ],
)  # fmt: skip
def test_each_mistake_of_a_table_is_told_in_one_sentence_with_its_line(old, new, sentence):
    spoiled = text((old, new))
    (mistake,) = mistakes(spoiled)
    assert mistake == f"soc.yaml:{line_of(new.strip().partition(chr(10))[0], spoiled)}: {sentence}"


def test_a_class_of_the_wrong_kind_is_one_mistake():
    (mistake,) = mistakes(text(("class: memory", "class: [memory]")))
    assert "co_run.slowdowns[0].class: '('memory',)' is not one of" in mistake


def test_more_that_is_busy_slows_down_no_less():
    three = text(
        ("factor: 1.5", "factor: 1.5}\n    - {processor: cpu, busy: [gpu], factor: 1.6"),
    )
    (mistake,) = mistakes(three)
    assert "co_run.slowdowns[0].factor: 1.5 is less than the 1.6 that slowdowns[1] says" in mistake
    equal = text(("factor: 1.5", "factor: 1.5}\n    - {processor: cpu, busy: [gpu], factor: 1.5"))
    assert len(read_platform(equal, "soc.yaml").co_run.slowdowns) == 3


@pytest.mark.parametrize(
    ("law", "change", "sentence"),
    [
        ("co_run: {source: guess}\nlinks:\n", (),
         "co_run: states no law; add slowdowns, or bandwidth: shared"),
        ("co_run: {bandwidth: shared, memory_share: 0.4, source: guess}\nlinks:\n", (),
         "co_run.memory_share: is only for slowdowns; delete this key"),
        ("co_run: {bandwidth: shared, source: guess}\nlinks:\n",
         (("bandwidth_bytes_per_s: 10e9", "bandwidth_bytes_per_s: 10e9, lower_bound: true"),),
         ("co_run.bandwidth: the law needs the bandwidth of the memory, and lower_bound says that "
          "it may give more; measure what all processors move together, or state slowdowns")),
        ("evaluation: {contention: 0.3, source: guess}\n" + TABLE, (),
         "evaluation.contention: there is one law at a time; delete this key or co_run"),
        ("power_budget: {sustained_w: 0, source: guess}\nlinks:\n", (),
         ("power_budget.sustained_w: is 0, must be at least 1e-06; mind the unit at the end of the "
          "key")),
        ("state: warm\nlinks:\n", (), "state: 'warm' is not one of 'cold' or 'sustained'"),
        ("links:\n", (("default_frequency_hz: 8e8,",
                       "default_frequency_hz: 8e8, sustained_frequency_hz: 7e8,"),),
         ("processors[1].clock.sustained_frequency_hz: 700000000.0 Hz is not among the points; "
          "add it or choose one of them")),
    ],
)  # fmt: skip
def test_what_laws_and_states_contradict_is_told(law, change, sentence):
    (mistake,) = mistakes(text(*change, law=law))
    assert sentence in mistake


def test_a_power_above_the_budget_lasts_until_the_chip_is_warm():
    law = "power_budget: {sustained_w: 3, time_constant_s: 100, source: guess}\nlinks:\n"
    budget = read_platform(text(law=law), "soc.yaml").power_budget
    assert budget.lasts_s(3.0) == inf
    # At twice the budget, half of the final heat is reached after ln 2 time constants.
    assert budget.lasts_s(6.0) == pytest.approx(100 * log(2))
    unknown = "power_budget: {sustained_w: 3, source: guess}\nlinks:\n"
    assert read_platform(text(law=unknown), "soc.yaml").power_budget.lasts_s(6.0) is None
