"""`python -m benchmarks.decoder_here --work DIR`: a decoder of 98 million weights on this machine.

The decoder of `benchmarks.decoder`, weights in float32 and in 4 bits (MatMulNBits), is profiled for
prompts of 64 and 128 tokens and for a token behind a cache with room for prompt and answer, mapped
for both shapes together on all cores as one processor, with `--split` in float32 also on a
processor for each core, and run: a prompt, then 64 tokens. Each placement is run `REQUESTS` times
in each of `ROUNDS` rounds, all placements in turn; time to the first token and tokens a second are
medians, beside the predicted ones. Tokens are compared with those of a plain loop of the whole
model in ONNX Runtime behind a cache of as many slots; another loop, whose cache grows, says what
that gives.

What bounds decoding is measured between the requests, by `benchmarks.decoder_bounds`: reading
weights and cache once, and multiplying weights that are in cache. Watched because tokens a second
are what people buy hardware for, and many an estimate of them is wrong by factors.

Other programs spoil the figures: run this on a machine at rest. It takes about five minutes,
with `--split` some more.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import click
import numpy as np
import onnx
from numpy.typing import NDArray

import parapipe
from benchmarks.decoder import DecoderSizes, decoder
from benchmarks.decoder_bounds import CachedProducts, Reads, StepBounds
from benchmarks.machine import description, load
from benchmarks.tables import markdown_table
from parapipe.documents.request_schema import RequestDocument
from parapipe.documents.token_rows import TokensRow
from parapipe.profiling.measure import session

WEIGHTS = {"float32": False, "int4": True}
PROMPTS = (64, 128)
ANSWER = 64  # tokens
REQUESTS, ROUNDS = 5, 2
BUDGET_S = 10.0  # of each search
PLATFORMS = {"whole": 1, "split": None}
"""Processors per cluster: one, or one for each core."""
SPLIT = "float32", 64  # weights and prompt that are mapped on a processor for each core, too
PAGE = Path(__file__).parent / "results" / "decoder_here.md"
HEAD = (
    *("weights", "prompt", "processors", "placement", "prefill on", "decode on"),
    *("first token predicted, ms", "measured", "off %", "tokens/s predicted", "measured", "off %"),
    "equal tokens",
)
LOOPS = ("weights", "prompt", "first token, ms", "tokens/s")
BOUNDS = (
    *("weights", "prompt", "MB a step", "read, GB/s", "cached, GB/s"),
    *("by bandwidth, tokens/s", "by arithmetic", "measured", "less is", "less ÷ measured"),
    *("of a step: reading, ms", "multiplying", "others", "measured", "measured ÷ sum"),
)
PRODUCTS = {"MatMul", "Gemm", "MatMulNBits"}


@dataclass(slots=True)
class Case:
    """A placement that is run, and its requests."""

    weights: str
    prompt: int
    platform: str
    name: str
    folder: Path
    runs: list[RequestDocument] = field(default_factory=list)
    equal: int = 0
    bounds: StepBounds = field(default_factory=StepBounds)

    def run(self, prompt: Path, wanted: Sequence[int]) -> None:
        """Run some requests, and compare their tokens."""
        found = parapipe.run_shapes(self.folder, self.name, input=prompt, requests=REQUESTS)
        assert found.chosen is not None
        self.equal = sum(a == b for a, b in zip(found.chosen[0], wanted, strict=True))
        self.runs.append(found)

    @property
    def off(self) -> tuple[float, float]:
        """How far both predicted figures are from the measured ones, as shares."""
        pairs = (self.figures("first_token_s"), self.figures("tokens_per_second"))
        return pairs[0][0] / pairs[0][1] - 1, pairs[1][0] / pairs[1][1] - 1

    def figures(self, name: str) -> tuple[float, float]:
        """Return a figure as predicted, and the median of the measured ones."""
        rows = [getattr(each, name) for each in self.runs]
        return rows[0].predicted, median(each.observed for each in rows)

    def cells(self) -> list[object]:
        """Return its row."""
        first, tokens = self.figures("first_token_s"), self.figures("tokens_per_second")
        shapes = self.runs[0].shapes
        return [
            self.weights, self.prompt, self.platform, self.name,
            *(each.drawing.partition("[")[0] for each in shapes),
            *(f"{each * 1e3:.1f}" for each in first), f"{self.off[0]:.1%}".removesuffix("%"),
            *(f"{each:.1f}" for each in tokens), f"{self.off[1]:.1%}".removesuffix("%"),
            f"{self.equal} of {ANSWER}",
        ]  # fmt: skip


def shape_sets(prompt: int) -> dict[str, dict[str, int]]:
    """Return both shapes: the cache has room for all tokens of the request."""
    slots = prompt + ANSWER
    return {
        "prefill": {"sequence": prompt, "past": 0, "total": prompt},
        "decode": {"sequence": 1, "past": slots, "total": slots + 1},
    }


def model_in(work: Path, weights: str) -> Path:
    """Return the file of the model, made if it is not there."""
    path = work / f"{weights}.onnx"
    if not path.exists():
        onnx.save(decoder(DecoderSizes(), int4=WEIGHTS[weights]), path)
    return path


def platform_in(work: Path, name: str) -> Path:
    """Return this machine's description, made if it is not there."""
    path = work / f"{name}.yaml"
    if not path.exists():
        split = PLATFORMS[name] or len(os.sched_getaffinity(0))
        parapipe.detect_platform(name=name, split=split, watch_s=2.0).write(path)
    return path


def mapped(work: Path, weights: str, prompt: int, platform: str) -> Path:
    """Profile and map both shapes; return the folder."""
    model, described = model_in(work, weights), platform_in(work, platform)
    profiles = []
    for name, sizes in shape_sets(prompt).items():
        profiles.append(work / f"{weights}-{platform}-{prompt}-{name}.csv")
        if not profiles[-1].exists():
            parapipe.profile(model, described, dims=sizes, out=profiles[-1])
        say(f"{weights}, {platform}, {prompt}: {name} profiled")
    fronts = parapipe.map_shapes(
        model, described, shape_sets=shape_sets(prompt), profiles=profiles, budget_s=BUDGET_S,
        mix={"prefill": 1, "decode": ANSWER - 1}, interleave="none", mapper="heft",
        objectives="latency-throughput", note=lambda _: None, cache=False,
    )  # fmt: skip
    folder = work / f"{weights}-{platform}-{prompt}"
    fronts.write(folder)
    say(f"{weights}, {platform}, {prompt}: mapped")
    return folder


def cases_in(work: Path, *, split: bool) -> Iterator[Case]:
    """Yield the placements that are run: on separate cores the best, and the best single core."""
    for weights in WEIGHTS:
        for prompt in PROMPTS:
            folder = mapped(work, weights, prompt, "whole")
            yield Case(weights, prompt, "whole", "most-throughput", folder)
    if split:
        folder = mapped(work, *SPLIT, "split")
        for name in ("most-throughput", "one-processor"):
            yield Case(*SPLIT, "split", name, folder)


@dataclass(slots=True)
class Loop:
    """A plain loop of the whole model in ONNX Runtime, on all cores.

    Parameters
    ----------
    tokens
        Behind a cache of as many slots as the plans have.
    first_s, per_second
        Behind a cache that grows.
    """

    tokens: list[int]
    first_s: float
    per_second: float


def plain_loop(model: Path, prompt: Sequence[int]) -> Loop:
    """Write tokens by the whole model, some times; return medians."""
    opened = session(model, len(os.sched_getaffinity(0)), "CPUExecutionProvider")
    tokens, _ = written(opened, prompt, len(prompt) + ANSWER)
    firsts, rates = [], []
    for _ in range(ROUNDS):
        _, times_s = written(opened, prompt, None)
        firsts.append(times_s[0])
        rates.append((ANSWER - 1) / (times_s[-1] - times_s[0]))
    return Loop(tokens, median(firsts), median(rates))


def written(
    opened: Any,  # noqa: ANN401 - onnxruntime is untyped
    prompt: Sequence[int],
    slots: int | None,
) -> tuple[list[int], list[float]]:
    """Return greedy tokens, and when each one was there, in seconds.

    Parameters
    ----------
    slots
        Of the cache behind the prompt, the newest ones last; it grows if there is none.
    """
    names = [each.name for each in opened.get_outputs()]
    past = {
        each.name: np.zeros((1, each.shape[1], 0, each.shape[3]), np.float32)
        for each in opened.get_inputs()
        if "past" in each.name
    }
    ids, begin, tokens, times_s, begin_s = [*prompt], 0, list[int](), list[float](), perf_counter()
    for _ in range(ANSWER):
        end = begin + len(ids)
        mask = np.ones((1, end), np.int64)
        if begin and slots is not None:
            mask = np.pad(mask, ((0, 0), (slots + len(ids) - end, 0)))
        feed = {"input_ids": np.array([ids]), "attention_mask": mask,
                "position_ids": np.arange(begin, end)[None]}  # fmt: skip
        made = dict(zip(names, opened.run(None, {**feed, **past}), strict=True))
        past = {name: made[name.replace("past_key_values", "present")] for name in past}
        if slots is not None:
            past = {name: of_slots(each, slots) for name, each in past.items()}
        ids, begin = [int(made["logits"][0, -1].argmax())], end
        tokens += ids
        times_s.append(perf_counter() - begin_s)
    return tokens, times_s


def of_slots(cache: NDArray[np.float32], slots: int) -> NDArray[np.float32]:
    """Return the newest slots of a cache, empty ones before them where there are fewer."""
    lacking = max(0, slots - cache.shape[2])
    return np.pad(cache[:, :, -slots:], ((0, 0), (0, 0), (lacking, 0), (0, 0)))


def bound_cells(case: Case) -> list[object]:
    """Return what a step reads and multiplies, the tokens a second of each, and what is left."""
    decode = case.runs[0].shapes[-1]
    front = parapipe.load_front(case.folder / decode.name)
    told = front.document.tokens
    assert isinstance(told, TokensRow)
    plan = front[decode.id].plan()
    kinds = {each.id: each.type for each in plan.operators}
    reads = {each.id for each in plan.operators if each.constants}
    spans = [
        (each.operator, each.end_s - each.start_s)
        for stage in plan.stages for on in stage.processors for each in on.operators
    ]  # fmt: skip
    products = {name for name, _ in spans if kinds[name] in PRODUCTS and name in reads}
    others_s = sum(time_s for name, time_s in spans if name not in products)
    read_bytes = told.weights_bytes + told.cache_bytes
    reading_s = case.bounds.reading_s(read_bytes)
    multiplying_s = case.bounds.multiplying_s(len(products), told.weights_bytes)
    measured_s = 1 / case.figures("tokens_per_second")[1]
    least_s, sum_s = max(reading_s, multiplying_s), reading_s + multiplying_s + others_s
    return [
        case.weights, case.prompt, f"{read_bytes / 1e6:.0f}",
        f"{case.bounds.read_bytes_per_s / 1e9:.1f}",
        f"{case.bounds.cached_bytes_per_s / 1e9:.1f}",
        *(f"{1 / each:.1f}" for each in (reading_s, multiplying_s, measured_s)),
        "bandwidth" if reading_s >= multiplying_s else "arithmetic",
        f"{measured_s / least_s:.2f}",
        *(f"{1e3 * each:.2f}" for each in (reading_s, multiplying_s, others_s, measured_s)),
        f"{measured_s / sum_s:.2f}",
    ]  # fmt: skip


def page(
    cases: Sequence[Case], loops: Mapping[tuple[str, int], Loop], about: dict[str, str]
) -> str:
    """Return the page."""
    errors = [abs(each) for case in cases for each in case.off]
    loop_rows = [
        [weights, prompt, f"{each.first_s * 1e3:.1f}", f"{each.per_second:.1f}"]
        for (weights, prompt), each in loops.items()
    ]
    whole = [each for each in cases if each.platform == "whole"]
    return (
        "# A decoder of 98 million weights on this machine\n\n"
        "Written by `python -m benchmarks.decoder_here`; `benchmarks/decoder_here.py` says how. "
        f"A prompt, then {ANSWER} tokens; *whole*: all cores are one processor, *split*: each is "
        "one.\n\n"
        f"Predicted and measured, medians of {ROUNDS} rounds of {REQUESTS} requests. Median error "
        f"{median(errors):.1%}, largest {max(errors):.1%}. *Equal tokens*: to those of a plain "
        "loop in ONNX Runtime.\n\n"
        f"{markdown_table(HEAD, [each.cells() for each in cases])}\n\n"
        "The plain loop, on all cores, behind a cache that grows:\n\n"
        f"{markdown_table(LOOPS, loop_rows)}\n\n"
        "What decoding could reach if it did nothing but read weights and cache once (bandwidth), "
        "or multiply weights that are in cache already (arithmetic). *Read*: what all cores read "
        "together of arrays that no cache holds, the median of reads between the requests; "
        "*cached*: what the kernel for a single row multiplies of weights that are in cache, "
        "measured at the same moments.\n\n"
        f"{markdown_table(BOUNDS, [bound_cells(each) for each in whole])}\n\n"
        "Why they differ: a core hardly multiplies while it waits for weights, so the times of "
        "both add up, and so do those of the other operators, as the profile has them. The last "
        "column compares the step with that sum; what it leaves is what no operator takes: "
        "results are copied out of ONNX Runtime and caches into the next step's inputs, threads "
        "wait for each other, and products out of cache wait for pages of 4 KB, where the arrays "
        "of the reads have pages of 2 MB.\n\n"
        f"{markdown_table(['measured on', ''], list(about.items()))}\n"
    )


def say(sentence: str) -> None:
    """Tell how far it is."""
    click.echo(sentence, err=True)


@click.command()
@click.option("--work", type=click.Path(path_type=Path), required=True, help="Keeps profiles.")
@click.option("--out", type=click.Path(path_type=Path), default=PAGE, help="The page.")
@click.option("--split", is_flag=True, help="Map on a processor for each core, too.")
def main(*, work: Path, out: Path, split: bool) -> None:
    """Profile, map and run; write the page."""
    warnings.simplefilter("ignore")
    about = description() | {"ONNX Runtime": version("onnxruntime")}
    work = work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    cases = list(cases_in(work, split=split))
    rng = np.random.default_rng(3)
    prompts = {n: rng.integers(0, DecoderSizes().vocabulary, n).tolist() for n in PROMPTS}
    loops, files = {}, {}
    for prompt, ids in prompts.items():
        files[prompt] = work / f"prompt{prompt}.npz"
        np.savez(files[prompt], input_ids=np.array([ids]))
        for weights in WEIGHTS:
            loops[weights, prompt] = plain_loop(model_in(work, weights), ids)
    say("plain loops run")
    reads, products = Reads(), {weights: CachedProducts(weights) for weights in WEIGHTS}
    for number in range(ROUNDS):
        for each in cases:
            each.bounds.sample(reads, products[each.weights])
            each.run(files[each.prompt], loops[each.weights, each.prompt].tokens)
            each.bounds.sample(reads, products[each.weights])
        say(f"round {number + 1} of {ROUNDS} run, load {load()}")
    text = page(cases, loops, {**about, "load when ended": load()})
    out.write_text(text, encoding="utf-8")
    click.echo(text)


if __name__ == "__main__":
    main()
