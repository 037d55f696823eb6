"""Wrong platform files: every mistake, each with its line."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.errors import PlatformError
from parapipe.files.yaml_file import MAX_BYTES, MAX_NODES
from parapipe.platform.catalogue import shipped
from parapipe.platform.load import find_platform, load_platform, read_platform
from tests.cases.soc_texts import SOC, line_of, mistakes, spoil

TO_GPU = "to: gpu, latency_s: 1e-3"


def test_the_toy_platform_is_right():
    assert read_platform(SOC, "soc.yaml").names == ("cpu", "gpu")


def test_a_file_with_five_different_mistakes_reports_all_five_with_their_lines(tmp_path):
    text = spoil(
        ("idle_power_w: 2", "idle_power_w: -2"),
        ("kind: cpu", "kind: cqu"),
        ("alpha_w_per_v2_hz", "alpha_w_per_v2"),
        ("to: gpu,", "to: npu,"),
        ("title: ", "titel: "),
    )
    file = tmp_path / "soc.yaml"
    file.write_text(text)
    with pytest.raises(PlatformError) as caught:
        load_platform(str(file))
    found = [re.fullmatch(rf"{file}:(\d+): ([^ ]+): (.+)", m) for m in caught.value.mistakes]
    assert [(int(m[1]), m[2]) for m in found if m] == [
        (line_of("board"), "board.idle_power_w"),
        (line_of("kind: cpu"), "processors[0].kind"),
        (line_of("alpha"), "processors[0].power.alpha_w_per_v2"),
        (line_of("from: cpu"), "links[0].to"),
        (line_of("title"), "sources.guess.titel"),
    ]
    assert str(caught.value) == (
        f"platform file '{file}' has 5 mistakes; correct what is listed and try again"
    )


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("schema: parapipe/platform/1", "schema: parapipe/platform/2",
         ("schema: 'parapipe/platform/2' is not one of 'parapipe/platform/1'; "
         "did you mean 'parapipe/platform/1'?")),
        ("description: Two processors", "descripton: x",
         "descripton: is no known key; did you mean 'description'?"),
        ("description: Two processors", "zzz: 1",
         ("zzz: is no known key; known: schema, name, description, profile, precision, board, "
         "memory, memories, processors, evaluation, co_run, state, power_budget, block_runs, "
         "spread, links, sources, chip, base")),
        ("description: Two processors", "description: 5",
         "description: must be text; put it in quotes if it looks like a number"),
        ("name: toy", "name: to/y",
         "name: 'to/y' is not of the form ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
        ("idle_power_w: 2", "idle_power_w: much", "board.idle_power_w: must be a number"),
        ("idle_power_w: 2", "idle_power_w: true", "board.idle_power_w: must be a number"),
        ("idle_power_w: 2", "idle_power_w: .inf",
         "board.idle_power_w: must be finite; .inf and .nan say nothing"),
        ("idle_power_w: 2", "idle_power_w: .nan",
         "board.idle_power_w: must be finite; .inf and .nan say nothing"),
        ("idle_power_w: 2", "idle_power_w: 1e999",
         "board.idle_power_w: must be finite; .inf and .nan say nothing"),
        ("idle_power_w: 2", "idle_power_w: 1" + 40 * "0",
         "board.idle_power_w: has more than 40 digits; round it"),
        ("idle_power_w: 2", "idle_power_w: !!python/name:os.system x",
         ("board.idle_power_w: the tag 'tag:yaml.org,2002:python/name:os.system' is not allowed; "
         "leave it out")),
        ("idle_power_w: 2", "idle_power_w: !!int two", "board.idle_power_w: 'two' is no int"),
        ("board: {idle_power_w: 2, source: guess}", "board: 2",
         "board: must be a mapping of keys to values"),
        ("cores: [0, 1]", "cores: 0", "processors[0].cores: must be a list"),
        ("cores: [0, 1]", "cores: [0, 1.5]", "processors[0].cores[1]: must be a whole number"),
        ("cores: [0, 1]", "cores: [0, 0]",
         "processors[0].cores[1]: core 0 is already listed in processors[0]; list it once"),
        ("host: cpu", "host: cpu\n    cores: [1]",
         "processors[1].cores[0]: core 1 is already listed in processors[0]; list it once"),
        ("host: cpu", "host: npu",
         "processors[1].host: 'npu' is no CPU of this platform; known: cpu"),
        ("cores: [0, 1]", "host: gpu",
         "processors[0].host: a CPU needs no host; delete the key"),
        ("data_types: [float32]", "data_types: []",
         "processors[0].data_types: must hold at least 1; add one"),
        ("data_types: [float32]", "data_types: [float32, float32]",
         "processors[0].data_types[1]: 'float32' is listed twice; keep one"),
        ("{float32: 16e9}", "{}",
         "processors[0].peak.macs_per_s: has no peak for data type 'float32'; add it"),
        ("{float32: 16e9}", "{float32: 16e9, int8: 32e9}",
         ("processors[0].peak.macs_per_s.int8: is not among the data_types of the processor; add "
         "it there or delete it here")),
        ("default_frequency_hz: 2e9", "default_frequency_hz: 3e9",
         ("processors[0].clock.default_frequency_hz: 3000000000.0 Hz is not among the points; add "
         "it or choose one of them")),
        ("{frequency_hz: 1e9, voltage_v: 0.8}", "{frequency_hz: 2e9, voltage_v: 0.8}",
         "processors[0].clock.points[1].frequency_hz: 2000000000.0 Hz is listed twice; keep one"),
        ("voltage_v: 0.8", "voltage_v: 800",
         ("processors[0].clock.points[0].voltage_v: is 800, must be at most 20; mind the unit at "
         "the end of the key")),
        ("overhead_s: 10e-6, ", "", "processors[0].launch.overhead_s: is missing; add it"),
        ("default: 0.5}", "pool: 0.5}",
         ("processors[0].power.utilisation: says nothing of conv1x1, conv3x3, conv-other, "
         "depthwise, matmul, norm, elementwise, softmax, concat, move, view, other; add them or a "
         "default")),
        ("{gemm: 1,", "{gemm: 1.01,",
         "processors[0].power.utilisation.gemm: is 1.01, must be at most 1"),
        ("min: 2", "min: two", "processors[1].operators.deny[0].where.group.min: must be a number"),
        ("min: 2", "equals: {}",
         ("processors[1].operators.deny[0].where.group.equals: must be a number, a text or a list "
         "of them")),
        ("reason: it", "why: it",
         "processors[1].operators.deny[0].reason: is missing; add it"),
        ("name: gpu", "name: cpu",
         "processors[1].name: 'cpu' is also the name of processors[0]; rename one"),
        (TO_GPU, "to: gpo, latency_s: 1e-3",
         "links[0].to: no processor is named 'gpo'; known: cpu, gpu; did you mean 'gpu'?"),
        (TO_GPU, "to: cpu, latency_s: 1e-3",
         "links[0]: joins 'cpu' with itself, which costs nothing; delete it"),
        ("idle_power_w: 2, source: guess", "idle_power_w: 2, source: guest",
         "board.source: 'guest' is not among the sources; add it there; did you mean 'guess'?"),
        ("provenance: nominal", "provenance: believed",
         ("sources.guess.provenance: 'believed' is not one of 'measured', 'stated', 'fitted' or "
         "'nominal'")),
        ("name: toy", "name: toy\nname: toy2", "name: stands twice (first on line 2); keep one"),
        ("name: toy", "name: toy\n[a]: b",
         "has a list or a mapping as a key; a key must be a word"),
    ],
    ids=lambda text: text[:24],
)  # fmt: skip
def test_each_kind_of_mistake_is_told_in_one_sentence_with_its_line(old, new, sentence):
    line = line_of(old) + new.count("\n")
    assert f"soc.yaml:{line}: {sentence}" in mistakes(spoil((old, new)))


def test_a_pair_that_no_link_covers_is_reported_where_the_links_begin():
    text = spoil(("  - {from: gpu, to: cpu, latency_s: 5e-4, source: guess}\n", ""))
    assert mistakes(text) == (
        f"soc.yaml:{line_of('links:')}: links: nothing is said of gpu to cpu; add a link for each",
    )


def test_a_pair_that_two_links_cover_is_reported_at_the_second():
    text = spoil(("from: cpu, to: gpu", "both_ways: true, from: cpu, to: gpu"))
    (mistake,) = mistakes(text)
    assert mistake == (
        f"soc.yaml:{line_of('from: gpu')}: links[1]: gpu to cpu is already covered by links[0]; "
        "delete one"
    )


@pytest.mark.parametrize(
    ("value", "right", "wrong"),
    [
        ("idle_power_w: 2", ("0", "10000"), ("-1e-9", "10000.1")),
        ("voltage_v: 0.8", ("0.1", "20"), ("0.09", "20.1")),
        ("overhead_s: 10e-6", ("0", "60"), ("-1e-9", "60.1")),
        ("float32: 16e9", ("1e6", "1e18"), ("999999", "1.1e18")),
        ("bandwidth_bytes_per_s: 10e9", ("1e4", "1e15"), ("9999", "1.1e15")),
        ("alpha_w_per_v2_hz: 1e-9", ("0", "1e-5"), ("-1e-12", "1.1e-5")),
        ("beta_w_per_v: 0.5", ("0", "10000"), ("-0.1", "10001")),
        ("gemm: 1", ("0", "1"), ("-0.01", "1.01")),
    ],
)
def test_both_sides_of_every_bound(value, right, wrong):
    key = value.partition(":")[0]
    for number in right:
        read_platform(spoil((value, f"{key}: {number}")), "soc.yaml")
    for number in wrong:
        (mistake,) = mistakes(spoil((value, f"{key}: {number}")))
        assert f"{key}: is {float(number)}".rstrip("0").rstrip(".") in mistake


def test_a_frequency_is_between_one_megahertz_and_one_terahertz():
    for hertz, right in (("1e6", True), ("999999", False), ("1e12", True), ("1.1e12", False)):
        text = SOC.replace("8e8", hertz)
        if right:
            assert read_platform(text, "soc.yaml").processors[1].point.frequency_hz == float(hertz)
        else:
            assert all("mind the unit" in each for each in mistakes(text))


def test_a_missing_key_is_reported_on_the_line_of_its_parent():
    text = spoil(("      default_frequency_hz: 2e9\n", ""))
    (mistake,) = mistakes(text)
    assert mistake == (
        f"soc.yaml:{line_of('clock', text)}: processors[0].clock.default_frequency_hz: "
        "is missing; add it"
    )


def test_a_misspelt_key_is_one_mistake_and_not_also_a_missing_one():
    assert len(mistakes(spoil(("overhead_s", "overheads")))) == 1


def test_a_misspelt_processor_in_a_link_is_one_mistake_and_not_also_an_open_pair():
    assert len(mistakes(spoil((TO_GPU, "to: npu, latency_s: 1e-3")))) == 1


def test_an_unknown_source_that_many_sections_name_is_one_mistake():
    (mistake,) = mistakes(spoil(("  guess:", "  gauss:")))
    assert mistake == (
        "soc.yaml:4: board.source: 'guess' is not among the sources (nor for 19 more sections); "
        "add it there; did you mean 'gauss'?"
    )


def test_broken_yaml_is_reported_with_its_line():
    (mistake,) = mistakes(spoil(("cores: [0, 1]", "cores: [0, 1")))
    assert mistake.startswith(f"soc.yaml:{line_of('cores') + 1}: is no valid YAML: ")


def test_a_second_document_in_the_file_is_no_valid_yaml():
    (mistake,) = mistakes(SOC + "---\n{}\n")
    assert mistake.startswith(f"soc.yaml:{len(SOC.splitlines()) + 1}: is no valid YAML: ")


@pytest.mark.parametrize("text", ["", "# only a comment\n"])
def test_an_empty_file_is_a_mistake(text):
    assert mistakes(text) == ("soc.yaml:1: is empty; describe a platform in it",)


@pytest.mark.parametrize("text", ["just words", "[1, 2]", "7", "null"])
def test_a_file_that_is_no_mapping_is_a_mistake(text):
    assert mistakes(text) == ("soc.yaml:1: must be a mapping of keys to values",)


def test_an_alias_is_refused_so_that_no_small_file_stands_for_a_huge_one():
    bomb = "a: &a [x, x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in ("ab", "bc", "cd"))
    assert mistakes(bomb) == (
        "soc.yaml:2: is no valid YAML: an alias (*) is not allowed; write its value out",
    )


def test_bottomless_nesting_is_refused():
    (mistake,) = mistakes("a: " + "[" * 100_000)
    assert mistake == "soc.yaml:1: is no valid YAML: it is nested deeper than 24 levels"


def test_a_tree_of_fifty_thousand_nodes_is_read_and_a_larger_one_is_refused():
    # The mapping, its key and the list are three nodes.
    assert "is no known key" in mistakes("a: [" + "x," * (MAX_NODES - 3) + "]")[0]
    assert mistakes("a: [" + "x," * (MAX_NODES - 2) + "]") == (
        "soc.yaml:1: is no valid YAML: it holds more than 50000 keys and values",
    )


def test_a_forbidden_character_is_reported_with_its_line():
    assert mistakes("name: toy\nx: \x07\n") == (
        "soc.yaml:2: holds a character that YAML forbids; delete it",
    )


def test_numbers_and_words_are_those_of_yaml_1_2():
    text = spoil(("description: Two processors", "description: no"), ("name: toy", "name: 12:30"))
    assert "name: '12:30' is not of the form" in mistakes(text)[0]
    text = spoil(("description: Two processors", "description: no"), ("cores: [0", "cores: [010"))
    platform = read_platform(text, "soc.yaml")
    assert (platform.description, platform.processors[0].cores) == ("no", (10, 1))


def test_thirty_two_processors_are_allowed_and_thirty_three_are_not():
    head, _, rest = SOC.partition("processors:\n")
    cpu = rest[: rest.index("  - name: gpu")].replace("    cores: [0, 1]\n", "")
    sources = rest[rest.index("sources:") :]
    for count, right in ((32, True), (33, False)):
        names = [f"p{i}" for i in range(count)]
        links = "".join(
            f"  - {{from: {a}, to: {b}, both_ways: true, latency_s: 0, source: guess}}\n"
            for i, a in enumerate(names)
            for b in names[:i]
        )
        processors = "".join(cpu.replace("name: cpu", f"name: {name}") for name in names)
        text = f"{head}processors:\n{processors}links:\n{links}{sources}"
        if right:
            assert len(read_platform(text, "soc.yaml").processors) == 32
        else:
            assert mistakes(text) == ("soc.yaml:6: processors: holds more than 32; leave some out",)


def test_a_text_that_is_not_utf_8_is_reported_with_its_line(tmp_path):
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"name: toy\ndescription: \xe9t\xe9\n")
    with pytest.raises(PlatformError) as caught:
        load_platform(str(file))
    assert caught.value.mistakes == (f"{file}:2: is no UTF-8 text; save it as UTF-8",)


def test_a_file_of_a_mebibyte_is_read_and_a_larger_one_is_not(tmp_path):
    file = tmp_path / "big.yaml"
    room = MAX_BYTES - len(SOC.encode())
    file.write_text(SOC + "#" * room)
    assert load_platform(str(file)).name == "toy"
    file.write_text(SOC + "#" * (room + 1))
    with pytest.raises(PlatformError, match="is larger than 1048576 bytes"):
        load_platform(str(file))


@pytest.mark.parametrize("name", ["missing.yaml", "folder.yaml", "a\0b.yaml", "x" * 5000 + ".yml"])
def test_a_file_that_cannot_be_read_is_one_clear_sentence(tmp_path, name):
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(PlatformError, match=r"^cannot read platform file .*shipped names: .*a311d"):
        load_platform(f"{tmp_path}/{name}")


def test_an_unknown_name_lists_the_shipped_ones_and_the_nearest():
    with pytest.raises(PlatformError) as caught:
        load_platform("amlogic-a311")
    assert "no platform 'amlogic-a311' is shipped and no such file exists" in str(caught.value)
    assert str(caught.value).endswith("did you mean 'amlogic-a311d'?")


def test_a_file_without_suffix_is_found_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "toy").write_text(SOC)
    monkeypatch.chdir(tmp_path)
    assert load_platform("toy").name == load_platform("./toy").name == "toy"


def test_a_shipped_name_wins_over_a_file_of_that_name(tmp_path, monkeypatch):
    (tmp_path / "amlogic-a311d").write_text(SOC)
    monkeypatch.chdir(tmp_path)
    assert load_platform("amlogic-a311d").name == "amlogic-a311d"
    assert load_platform("./amlogic-a311d").name == "toy"


def test_the_amlogic_a311d_is_shipped():
    assert "amlogic-a311d" in shipped()
    assert find_platform("amlogic-a311d").name == "amlogic-a311d.yaml"


def test_shipped_names_are_sorted():
    assert list(shipped()) == sorted(shipped())


@pytest.mark.parametrize("name", ["", "..", "../amlogic-a311d", "amlogic-a311d.yaml", "*"])
def test_only_a_shipped_name_is_found(name):
    with pytest.raises(PlatformError, match=r"shipped: .*amlogic-a311d"):
        find_platform(name)


SHORT = """\
schema: parapipe/platform/1
name: toy
chip: rk3588
memory: lpddr4x-32bit
processors:
  - {name: big, part: Cortex-A76, cores: [4, 5], frequency_hz: 2e9}
  - {name: npu, count: 2, launch: {overhead_s: 3e-6, source: guess}}
links:
  - {between: [npu, cpu], latency_s: 1e-5, source: guess}
  - {from: npu, to: npu, latency_s: 0, source: guess}
sources: {guess: {provenance: nominal, title: Made up for the tests}}
"""
SNIPPETS = st.sampled_from(
    ["{", "}", "[", "]", ":", "- ", "\n", "  ", "&a ", "*a", "!!int ", "'", '"', "|", ">", "---\n",
     "null", "true", ".nan", "-1", "1e400", "0x1F", "source", "from", "cpu", "\t", "\u2028", "é",
     "\0", "{input}", "#", "%", "@", "`", "? "]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_mutated_file_gives_a_platform_or_a_platform_error_and_nothing_else(data):
    text = data.draw(st.sampled_from([SOC, SHORT]))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 40)))
        text = text[:start] + data.draw(SNIPPETS | st.text(max_size=4)) + text[end:]
    try:
        platform = read_platform(text, "soc.yaml")
    except PlatformError as error:
        found = error.mistakes
    else:
        found = ()
        assert platform.transfer_s(1000, 0, 0) == 0
    lines = len(text.splitlines()) + 2  # to YAML, U+2028 ends a line too
    for each in found:
        place = re.match(r"soc\.yaml:(\d+): ", each)
        assert place
        assert 1 <= int(place[1]) <= lines


def test_a_backend_that_is_no_execution_provider_and_options_for_none_are_told():
    text = spoil(("backend: nominal", "backend: onnxruntime-openvno"))
    (mistake,) = mistakes(text)
    assert mistake == (
        "soc.yaml:9: processors[0].backend: 'onnxruntime-openvno' is no execution provider that is "
        "known; docs/backends.md lists them; did you mean 'onnxruntime-openvino'?"
    )
    text = spoil(("backend: nominal", "backend: nominal\n    options: {device_type: CPU}"))
    (mistake,) = mistakes(text)
    assert mistake == (
        "soc.yaml:10: processors[0].options: only ONNX Runtime's backends take options, and "
        "'nominal' is none; delete the key"
    )
    text = spoil(("backend: nominal", "backend: onnxruntime-openvino\n    options: {threads: 2}"))
    (mistake,) = mistakes(text)
    assert mistake.startswith("soc.yaml:10: processors[0].options.threads: must be text; ")
