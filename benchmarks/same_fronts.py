"""Are the fronts of two versions of parapipe the same? Maps the zoo with each, then compares.

A change of structure must change no result: on every zoo model and both calibrated platforms, the
best latency, throughput and energy and every figure of every named configuration are the same to
1e-9, or better. Run it with the version before and with the version after:

    python -m benchmarks.same_fronts map BEFORE --command '/path/to/before/.venv/bin/parapipe'
    python -m benchmarks.same_fronts map AFTER
    python -m benchmarks.same_fronts compare BEFORE AFTER

`map` keeps one `front.json` per model, platform and objectives in the folder and takes those that
are there already. Solvers stop by counted work (`--deterministic`), so a busy machine changes
nothing.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

PLATFORMS = ("amlogic-a311d", "bst-a1000")
BOTH = "latency-throughput"
ALL_THREE = "latency-throughput-energy"
MODELS = (
    "alexnet", "squeezenet", "mobilenet-v1", "googlenet", "inception-v3", "resnet-50",
    "inception-v4", "bert-base", "vit-b16", "gpt:12", "bevformer", "inception-resnet-v2",
    "densenet-121", "mobilenet-v2", "unet", "petr", "yolo-pan",
)  # fmt: skip
WITH_ENERGY = ("alexnet", "squeezenet", "mobilenet-v1", "googlenet", "resnet-50", "inception-v3")
FIGURES = ("latency_s", "period_s", "energy_j")
TOLERANCE = 1e-9

Front = Mapping[str, Any]


def cases() -> Iterator[tuple[str, str, str]]:
    """Yield model, platform and objectives of each front; the quick ones come first."""
    for objectives, models in ((BOTH, MODELS), (ALL_THREE, WITH_ENERGY)):
        for model in models:
            for platform in PLATFORMS:
                yield model, platform, objectives


def path_of(folder: Path, case: tuple[str, str, str]) -> Path:
    """Return where the front of a case is kept."""
    model, platform, objectives = case
    return folder / objectives / platform / f"{model.replace(':', '-')}.json"


def differences(before: Front, after: Front) -> Iterator[str]:
    """Yield what is worse, and what is better, by more than the tolerance."""
    old, new = _bests(before), _bests(after)
    for name in sorted(old.keys() | new.keys()):
        if name not in new or name not in old:
            yield f"{name}: only {'before' if name in old else 'after'}"
            continue
        # Which figure decides is known by name only, so all figures of a name count.
        for figure in old[name].keys() & new[name].keys():
            was, now = old[name][figure], new[name][figure]
            share = (now - was) / was
            if abs(share) > TOLERANCE:
                yield f"{name} {figure}: {was:.9g} -> {now:.9g} ({share:+.2e})"


def _bests(front: Front) -> dict[str, dict[str, float]]:
    """Return the figures of the named configurations, and the best figure of each objective."""
    found = front["configurations"]
    with_energy = "energy" in front["options"]["objectives"]
    figures = FIGURES if with_energy else FIGURES[:2]
    bests = {f"least {figure}": {figure: min(c[figure] for c in found)} for figure in figures}
    # what no objective looks at may differ between equally good configurations
    named = {name: c for c in found for name in c["names"]}
    return bests | {name: {f: c[f] for f in figures} for name, c in named.items()}


@click.group()
def main() -> None:
    """Map the zoo with two versions of parapipe and compare the fronts."""


@main.command("map")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--command", default=f"{sys.executable} -m parapipe.cli.main", show_default=False)
@click.option("--jobs", type=int, default=2, show_default=True)
def map_all(folder: Path, command: str, jobs: int) -> None:
    """Map all cases that FOLDER does not hold yet."""
    for case in cases():
        model, platform, objectives = case
        path = path_of(folder, case)
        if path.exists():
            continue
        click.echo(" ".join(case))
        out = folder / "out"
        subprocess.run(
            [*shlex.split(command), "map", f"zoo:{model}", "--platform", platform,
             "--objectives", objectives, "--deterministic", "--quiet", "--jobs", str(jobs),
             "--cache", str(folder / "cache"), "--out", str(out)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        (out / "front.json").replace(path)


@main.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
def compare(before: Path, after: Path) -> None:
    """Compare the fronts in two folders; fails if any figure differs."""
    compared = different = 0
    for case in cases():
        paths = [path_of(folder, case) for folder in (before, after)]
        if not all(path.exists() for path in paths):
            click.echo(f"not in both folders: {' '.join(case)}")
            continue
        old, new = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
        found = list(differences(old, new))
        compared += 1
        different += bool(found)
        for line in found:
            click.echo(f"{' '.join(case)}: {line}")
    click.echo(f"{compared} fronts compared, {different} differ in a figure")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
