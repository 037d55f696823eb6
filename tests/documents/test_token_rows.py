"""Tokens of language models: figures, the bound by bytes, and what is asked of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.digits import plain
from parapipe.documents.token_rows import token_figures, tokens_of
from parapipe.errors import DemandError
from parapipe.front.token_bound import token_texts
from parapipe.platform.load import read_platform
from tests.cases.recurrent import HEADS, WIDTH, WORDS, write_decoder, write_recurrent

RK3588 = read_platform("schema: parapipe/platform/1\nname: board\nchip: rk3588\n", "board.yaml")
PAST, LAYERS, FLOAT = 8, 2, 4
OPTIONS = {
    "objectives": "latency-throughput-energy", "draws": 0, "cache": False, "jobs": 1,
    "interleave": "none", "mapper": "heft_cpop", "note": lambda _: None,
}  # fmt: skip


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return write_decoder(tmp_path_factory.mktemp("decoder") / "decoder.onnx", past=PAST)


def test_the_bound_is_the_bytes_of_weights_and_cache_over_the_bandwidth(decoder):
    graph = parapipe.load_model(decoder, note=lambda _: None)
    costs = build_cost_table(graph, RK3588)
    tokens = tokens_of(graph, costs)
    # query, key, value and output of each layer, the head, and one row of the table of words
    weights = LAYERS * 4 * WIDTH * WIDTH + WIDTH * WORDS + WIDTH
    shapes_bytes = tokens.weights_bytes - FLOAT * weights  # lists of sizes that Reshape reads
    assert 0 <= shapes_bytes < 200
    assert tokens.cache_bytes == LAYERS * 2 * HEADS * PAST * (WIDTH // HEADS) * FLOAT
    assert (tokens.input, tokens.per_step) == ("input_ids", 1)
    read_bytes = tokens.weights_bytes + tokens.cache_bytes
    assert tokens.bound_per_second == pytest.approx(costs.bandwidth_bytes_per_s / read_bytes)
    assert tokens.int4_bound_per_second > tokens.bound_per_second


def test_a_recurrent_model_has_no_tokens(tmp_path):
    graph = parapipe.load_model(write_recurrent(tmp_path / "a.onnx"), note=lambda _: None)
    assert tokens_of(graph, build_cost_table(graph, RK3588)) is None
    figures = token_figures(None, latency_with_io_s=1, period_s=1, energy_j=1)
    assert not any(figures.values())


def test_figures_are_of_tokens_where_a_step_reads_several(decoder):
    graph = parapipe.load_model(decoder, note=lambda _: None)
    tokens = tokens_of(graph, build_cost_table(graph, RK3588))
    prompt = tokens.model_copy(update={"per_step": 4})
    figures = token_figures(prompt, latency_with_io_s=0.5, period_s=0.2, energy_j=2.0)
    assert figures == {
        "token_s": 0.05, "tokens_per_second": 20.0, "energy_per_token_j": 0.5,
        "first_token_s": 0.5,
    }  # fmt: skip
    one = token_figures(tokens, latency_with_io_s=0.5, period_s=0.2, energy_j=2.0)
    assert one["first_token_s"] is None


def test_pick_keeps_tokens_a_second_and_explain_says_what_binds(decoder, tmp_path):
    front = parapipe.map(decoder, "amlogic-a311d", **OPTIONS)
    rows = front.document.configurations
    assert all(row.tokens_per_second == pytest.approx(row.throughput_fps) for row in rows)
    most = max(row.tokens_per_second for row in rows)
    kept = front.best("energy", min_tokens_per_second=most * 0.999)
    assert kept.tokens_per_second == most
    with pytest.raises(DemandError, match=r"tokens/s instead of .* tokens/s"):
        front.best("energy", min_tokens_per_second=most * 2)
    least_j = min(row.energy_per_token_j for row in rows)
    kept = front.best("throughput", max_energy_per_token_j=least_j * 1.001)
    assert kept.energy_per_token_j <= least_j * 1.001
    with pytest.raises(DemandError, match=r"mJ per token instead of .* mJ per token"):
        front.best("energy", max_energy_per_token_j=least_j / 2)
    with pytest.raises(DemandError, match=r"mJ per token instead of"):  # idle power counts, too
        front.best("energy", max_energy_per_token_j=least_j * 1.001, board=True)
    front.write(tmp_path / "out")
    texts = [each.text for each in parapipe.explain(tmp_path / "out", kept.id).reasons]
    assert any("A step reads" in text and "MB of weights" in text for text in texts)
    wanted = f"A token takes {plain(kept.energy_per_token_j * 1e3)} mJ of the processors used."
    assert wanted in texts
    assert any("another division into stages may be better" in text for text in texts)


def costs_of(graph, bandwidth):
    return replace(build_cost_table(graph, RK3588), bandwidth_bytes_per_s=bandwidth)


def bound_text(front, row, graph, costs):
    tokens = tokens_of(graph, costs)
    document = front.document.model_copy(update={"tokens": tokens})
    return [*token_texts(document, row, front[row.id].plan(), graph, costs)][-1]


def test_what_binds_is_the_bandwidth_or_the_arithmetic_of_products_with_weights(decoder):
    graph = parapipe.load_model(decoder, note=lambda _: None)
    front = parapipe.map(decoder, "amlogic-a311d", **OPTIONS)
    row = front.document.configurations[0]
    plan = front[row.id].plan()
    spans = {
        each.operator: each.end_s - each.start_s
        for stage in plan.stages for on in stage.processors for each in on.operators
    }  # fmt: skip
    products = [each for each in graph.operators if each.type in {"MatMul", "Gemm"}
                and {*each.inputs} & {*graph.constants}]  # fmt: skip
    products_s = sum(spans[each.id] for each in products)
    share = 100 * products_s / sum(spans.values())
    rate = FLOAT * WIDTH * (LAYERS * 4 * WIDTH + WORDS) / products_s
    taken = f"products with weights take {plain(share, 2)} % of the operators' time and read "
    taken += f"{plain(rate / 1e9, 3)} GB of weights a second"

    costs = costs_of(graph, 1e15)
    text = bound_text(front, row, graph, costs)
    assert taken in text
    assert ("arithmetic binds, not the bandwidth" in text) == (share >= 50)
    assert ("the other operators and hand-overs bind" in text) == (share < 50)
    read_bytes = (tokens := tokens_of(graph, costs)).weights_bytes + tokens.cache_bytes
    slow = costs_of(graph, 0.95 * read_bytes * row.tokens_per_second)
    assert "the bandwidth of the memory binds" in bound_text(front, row, graph, slow)
