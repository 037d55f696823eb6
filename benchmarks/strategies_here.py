"""`python -m benchmarks.strategies_here`: strategies on this machine, as ratios in one run.

The machine is described as a platform of processors of one core each. Five questions; what is
compared runs in turn, round after round, and medians are taken.

*Pool.* Every operator of a network is cut into parts. What parts of one number do before they need
others is a session, which `ready-pool` runs on two cores and on one, and `barriers` on two. With
the speedup psi and N = 2 cores, the parallel fraction by Karp and Flatt is
p_e = 1 - (1/psi - 1/N) / (1 - 1/N).
Published by ASPEN (Park et al., NeurIPS 2023): 0.97 to 0.99, on 64 cores. Two programs beside each
other, each with one core, say what cores lose that share memory. With each part of an operator a
session, `barriers` is compared with `ready-pool` once more.

*Overhead.* A chain of segments of about a millisecond: all on one processor, half of it on each of
two, or alternating between two, with frames interleaved or one frame after the other, so that at
any time one of the two waits. What the threads of the processors take, less what sessions take, by
segments. Asked for: at most 2.3 % of a millisecond (PPD).

*Batches.* Batches of 1 to 16 with `micro-batches`, always split in halves, and never. Asked for:
always splitting loses somewhere, deciding nowhere by more than 3 %.

*Merging.* Odd tasks run on halves and even ones on both together: with buffers of the whole batch
that every piece writes its slice of, and with copies of what is merged and split.

*Disturbed.* Beside a program that takes the second core half of the time, at random, the same turns
for all: the throughput that `plan`, `steal` and `ready-pool` keep, as shares of theirs undisturbed,
with a segment for each core, with four stretches of about equal time each, and operator by
operator. Queues have four slots: with two, no processor can get far ahead of a late one.

Other programs spoil the figures: run this on a machine at rest, with two cores or more. Tables that
are in the folder of `--work` are not measured again, but for those that `--table` names: the page
says when each was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from benchmarks.machine import description
from benchmarks.run_cases import detected
from benchmarks.strategy_batches import BATCHES, batch_rows, merging_rows
from benchmarks.strategy_disturbed import disturbed_rows
from benchmarks.strategy_overhead import overhead_rows
from benchmarks.strategy_pool import PARTS, barrier_rows, pool_rows
from benchmarks.tables import markdown_table

ROUNDS = 3
TABLES = ("pool", "barriers", "overhead", "batches", "merging", "disturbed")
PAGE = Path(__file__).parent / "results" / "strategies_here.md"


def page(tables: Mapping[str, Sequence[Sequence[object]]], about: Mapping[str, str]) -> str:
    """Return the page of results."""

    def table(name: str) -> str:
        head, *rows = tables[name]
        return markdown_table([str(cell) for cell in head], rows)

    return f"""# Strategies on this machine

Written by `python -m benchmarks.strategies_here`; `benchmarks/strategies_here.py` says how.

## One pool of parts

Milliseconds of a frame, alone (*latency*) and saturated (*period*), every operator in so many
parts; what parts of one number do before they need others is a session. Chains of operators that
are not cut are sessions, too. *session*: the whole network in one session on one core.
p_e: the parallel fraction by Karp and Flatt of the gain over the same parts on one core, each at
its best. *of two programs*: the same of two programs that know nothing of each other, each with all
parts on a core of its own; what is missing there, the machine takes. *with barriers*: how much
longer a frame alone takes if each level waits for the one before.

{table("pool")}

With barriers after every operator, each part of an operator being a session: milliseconds of a
frame alone.

{table("barriers")}

## What the engine takes

Microseconds of processor time for a segment: of the processors' threads, besides what sessions take
(*engine*), and as a share of a millisecond; and of the threads that admit frames of 16 segments and
take their results. `executor` is what runs a plan without a strategy.

{table("overhead")}

## Batches

Milliseconds of a batch, over ten batches or more in a row: medians. *loss*: over the better of
never and always in the same turn, the median of all turns.

{table("batches")}

## Merging

Milliseconds of a batch of which every second task runs on both halves together.

{table("merging")}

## One core disturbed half of the time

Frames per second, saturated, and what is left of them beside a program that takes the second core
half of the time, at random. Queues have four slots. *stretches*: the work of each core on a frame
in four of about equal time; one more begins where the other core is waited for.

{table("disturbed")}

{markdown_table(("measured on", ""), list(about.items()))}
"""


@click.command()
@click.option("--rounds", default=ROUNDS, show_default=True)
@click.option("--work", type=click.Path(path_type=Path), help="Keeps platform, profile and tables.")
@click.option(
    "--table", "again", multiple=True, type=click.Choice(TABLES), help="Measure it again."
)
@click.option("--smallest", is_flag=True, help="One small network and one round, as a trial.")
@click.option("--out", type=click.Path(path_type=Path), default=PAGE, help="The page.")
def main(
    *, rounds: int, work: Path | None, again: Sequence[str], smallest: bool, out: Path
) -> None:
    """Answer the five questions and write the page."""
    about = description()
    now = f"{about.pop('date')}, {rounds} rounds, load when begun {about.pop('load when begun')}"
    networks = ("squeezenet",) if smallest else ("resnet-50", "bert-base")
    batched = ("squeezenet",) if smallest else ("squeezenet", "mobilenet-v2", "alexnet")
    rounds = 1 if smallest else rounds
    with TemporaryDirectory() as scratch:
        folder, place = work or Path(scratch), Path(scratch) / "plans"
        platform = detected(folder)
        place.mkdir()
        parts = PARTS[:2] if smallest else PARTS
        sizes = BATCHES[:2] if smallest else BATCHES
        rows = {
            "pool": lambda: pool_rows(networks, parts, platform, place, rounds),
            "barriers": lambda: barrier_rows(networks, parts, platform, place, rounds),
            "overhead": lambda: overhead_rows(place, rounds),
            "batches": lambda: batch_rows(batched, sizes, platform, place, rounds),
            "merging": lambda: merging_rows(batched, sizes[-1], platform, place, rounds),
            "disturbed": lambda: disturbed_rows(networks[0], platform, folder, place, rounds),
        }
        tables = {}
        for name in TABLES:
            kept = folder / f"{name}.json"
            if name in again or not kept.exists():
                made = {"measured": now, "rows": list(rows[name]())}
                kept.write_text(json.dumps(made), encoding="utf-8")
            found = json.loads(kept.read_text(encoding="utf-8"))
            about[f"*{name}*"], tables[name] = found["measured"], found["rows"]
    text = page(tables, about)
    out.write_text(text, encoding="utf-8")
    click.echo(text)


if __name__ == "__main__":
    main()
