"""Pictures of a model's subgraphs: every subgraph and flow, whatever its operators are called."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

import parapipe
from parapipe.documents.inspection import SCHEMA, InspectionDocument, SubgraphFlow, SubgraphRow
from parapipe.figures.structure import plot_structure, printable, structure_dot, structure_svg

NAMES = ['a "quoted" \\N name', "$x_1$ & <b>", "line\nbreak\x00", "über/Größe", "n" * 200]


def row(number, operators, *, units=2, name, **others):
    return SubgraphRow(
        number=number, operators=operators, units=units, branches=units, parallelism=units,
        first_operator=name, last_operator=name, **others,
    )  # fmt: skip


def strange():
    """Return a fork and a skip whose operators have names that languages stumble over."""
    rows = tuple(
        row(number, 3, macs=10**6, boundary_bytes=8, boundary_tensors=("t",), name=name)
        for number, name in enumerate(NAMES, 1)
    )
    flows = [(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (1, 5)]
    return InspectionDocument(
        schema=SCHEMA, coverage=None, model='folder\\my "model".onnx', inputs={"x": (1, 3)},
        outputs={"y": (1,)}, operators=15,
        operators_fused=15, subgraphs=5, max_parallelism=2, macs=5 * 10**6, constant_bytes=0,
        peak_activation_bytes=8, peak_operator="n", least_peak_activation_bytes=8,
        least_peak_bound_bytes=8, operator_types={"Conv": 15}, unmodelled={},
        data_types={}, opaque={}, ruled={}, notes=(), subgraph_table=rows,
        subgraph_flows=tuple(
            SubgraphFlow(source=u, target=v, tensors=("t",), size_bytes=2 * 10**6)
            for u, v in flows
        ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def googlenet():
    return parapipe.inspect("zoo:googlenet")


def test_the_dot_text_has_a_box_per_subgraph_and_an_edge_per_flow(googlenet):
    text = structure_dot(googlenet)
    assert re.findall(r"^  s(\d+) \[", text, re.MULTILINE) == [str(n) for n in range(1, 12)]
    edges = re.findall(r"^  s(\d+) -> s(\d+) \[", text, re.MULTILINE)
    assert edges == [(str(n), str(n + 1)) for n in range(1, 11)]
    assert 's2 [label="2: 14 operators, 4 branches, 4 in parallel, 128.0 M MACs\\n' in text


def test_every_line_of_dot_keeps_to_the_grammar_whatever_the_names():
    text = structure_dot(strange())
    quoted = r'"(?:[^"\\]|\\.)*"'
    first, *middle, last, end = text.split("\n")
    assert re.fullmatch(rf"digraph {quoted} \{{", first)
    assert (last, end) == ("}", "")
    assert all(re.fullmatch(rf"  \w+(?: -> \w+)? \[.*{quoted}.*\];", line) for line in middle)
    assert 'a \\"quoted\\" \\\\N name' in text
    assert "line\\\\nbreak\\\\x00" in text


def test_the_svg_is_xml_that_says_what_the_boxes_say():
    root = ElementTree.fromstring(structure_svg(strange()))
    texts = {"".join(element.itertext()).strip() for element in root.iter()}
    said = " ".join(texts)
    assert "$x_1$ & <b>" in said
    assert "über/Größe" in said
    assert "line\\nbreak\\x00" in said
    assert "2.00 MB" in texts


@pytest.mark.parametrize("draw", [structure_dot, structure_svg])
def test_the_same_document_gives_the_same_bytes(draw):
    assert draw(strange()) == draw(strange())


def test_subgraphs_that_do_not_wait_for_each_other_stand_side_by_side():
    ax = Figure().add_subplot()
    plot_structure(strange(), ax)
    place = {
        text.get_text()[0]: text.get_position()
        for text in ax.texts
        if re.match(r"\d: ", text.get_text())
    }
    assert place["2"][1] == place["3"][1] == place["1"][1] + 1
    assert place["2"][0] < place["1"][0] < place["3"][0]
    assert place["5"][1] == 3


def test_what_can_be_printed_stays_as_it_is():
    assert printable("conv1/7x7_s2 – ü") == "conv1/7x7_s2 – ü"


def test_a_row_without_work_says_no_macs():
    document = strange()
    plain = row(1, 1, units=1, macs=0, boundary_bytes=0, boundary_tensors=(), name="only")
    alone = document.model_copy(update={"subgraph_table": (plain,), "subgraph_flows": ()})
    assert '[label="1: 1 operator\\nonly"]' in structure_dot(alone)
