"""Shows that a change of structure changes no result: hashes of all that `parapipe map` writes.

Before the change, and after it:

    python tools/result_hashes.py --write hashes.json
    python tools/result_hashes.py --check hashes.json

Both run the parapipe that Python imports. For that of another checkout, put the checkout first:

    PYTHONPATH=/path/to/checkout python tools/result_hashes.py --check hashes.json

The cases are small, and together they use every option of `map` and every word that one takes, but
for `LEFT_OUT`. Each runs in a process of its own, with paths relative to its folder, so that no
path of this machine gets into a result. Hashed are the bytes of each file in the folder of results
(front.json, front.csv, draws.json, all plans), of the picture and of what is printed. Nothing is
left out of them. Only solve_log.json is not hashed: it contains the wall times of solvers, the one
thing that differs between two runs.

Results depend on versions of solvers too: compare on one machine, in one environment. The file of
hashes says which versions made it, and `--check` says which of them are others here.
`benchmarks.same_fronts` compares figures instead of bytes, on large models.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import click

THIRD_PARTY = Path(__file__).parents[1] / "tests" / "cases" / "third_party"
PROFILE = Path(__file__).parents[1] / "profiles" / "amlogic-a311d" / "armcl-f32.csv"
COMMON = ("--deterministic", "--no-cache", "--jobs", "1", "--quiet")
WITHOUT_DRAWS = ("--draws", "0")
LEFT_OUT = {
    "--budget": "looks at a clock, and contradicts --deterministic",
    "--cache": "changes no result, and contradicts --no-cache",
    "--compiler": "needs the compiler of a vendor",
    "--help": "maps nothing",
    "--search": "needs another package",
}
"""Options that no case can use, and why."""

NOT_HASHED = "solve_log.json"
PRINTED = "standard output"
PACKAGES = ("click", "matplotlib", "numpy", "onnx", "ortools", "pandas", "pulp", "rich")
RULES = """schema: parapipe/rules/1
rules:
  - type: Attend
    domain: com.example
    macs: 8 * prod(outputs[0])
    processors: [little, big, gpu]
    source: made up for this case
"""
WARM = """schema: parapipe/platform/1
name: warm
base: rockchip-rk3399pro
processors:
  - name: big
    clock:
      default_frequency_hz: 1.8e9
      sustained_frequency_hz: 1.2e9
      points: [{frequency_hz: 1.2e9, voltage_v: 0.95}, {frequency_hz: 1.8e9, voltage_v: 1.2}]
      scaling: {compute_share: {default: 0.9}, source: guess}
      source: guess
sources:
  guess: {provenance: nominal, title: Made up for this case}
"""
NETWORKS = {
    "forks": """
        forks (float[1, 8, 96, 96] data) => (float[1, 8, 96, 96] y) {
          a = Conv <pads = [1, 1, 1, 1]> (data, w)
          b = Conv <pads = [1, 1, 1, 1]> (data, w)
          c = Add (a, b)
          d = Conv <pads = [1, 1, 1, 1]> (c, w)
          e = Relu (d)
          f = Conv <pads = [1, 1, 1, 1]> (c, w)
          y = Add (e, f)
        }""",
    "unknown": """
        unknown (float[batch, 8, 56, 56] data) => (float[batch, 8, 56, 56] y) {
          a = Conv <pads = [1, 1, 1, 1]> (data, w)
          b = com.example.Attend (a)
          c = Conv <pads = [1, 1, 1, 1]> (a, w)
          y = Add (b, c)
        }""",
    "found": """
        found (float[1, 8, 56, 56] data) => (int64[4, n] y) {
          a = Conv <pads = [1, 1, 1, 1]> (data, w)
          b = Relu (a)
          y = NonZero (b)
        }""",
    "steps": """
        steps (float[1, 8, rows, 16] data, float[1, 8, past, 16] past_0)
          => (float[1, 8, rows, 16] y, float[1, 8, total, 16] present_0) {
          a = Conv <pads = [1, 1, 1, 1]> (data, w)
          present_0 = Concat <axis = 2> (past_0, a)
          b = ReduceMax <axes = [2]> (present_0)
          y = Add (a, b)
        }""",
}
"""Small networks in ONNX's textual form; `w` is the weight of all their convolutions."""

Hashes = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Case:
    """One run of `parapipe map`: its models, its platform and the options that it is there for."""

    name: str
    models: str
    platform: str
    options: str = ""

    @property
    def words(self) -> list[str]:
        """What stands behind `parapipe` on the command line."""
        own = self.options.split()
        draws = () if "--draws" in own else WITHOUT_DRAWS
        return [
            *("map", *self.models.split(), "--platform", self.platform, "--out", self.name),
            *(*own, *COMMON, *draws),
        ]


STAGES = "--objectives latency-throughput --interleave none"
A311D, A1000, RK3399PRO, SIX = "amlogic-a311d", "bst-a1000", "rockchip-rk3399pro", "board.yaml"
LONG_RUNS = "warm.yaml"
CASES = (
    Case("heft", "forks.onnx", A1000, f"--mapper heft {STAGES} --minimise latency"),
    Case("cpop", "forks.onnx", A311D, f"--mapper cpop {STAGES} --minimise period"),
    Case("heft_cpop", "forks.onnx", A311D, f"--mapper heft_cpop {STAGES} --minimise throughput"),
    Case("peft", "forks.onnx", A311D, f"--mapper peft {STAGES} --minimise energy"),
    Case("layers", "forks.onnx", A311D, f"--mapper layer_switched {STAGES} --minimise power"),
    Case("streams", "forks.onnx", A311D, f"--mapper streams {STAGES} --minimise memory"),
    Case("coarse", "forks.onnx", A311D, f"--mapper coarse {STAGES}"),
    Case("fine", "forks.onnx", A311D, "--mapper fine --energy-resolution 0.2"),
    Case("fine_milp", "forks.onnx", A311D, f"--mapper fine_milp {STAGES}"),
    Case("squeezenet", "zoo:squeezenet", A311D, "--all"),
    Case("operators", "zoo:squeezenet", A1000, f"--granularity onnx --resolution 0 {STAGES}"),
    Case("time-limit", "zoo:mobilenet-v1", RK3399PRO, f"--time-limit 2 --seed 1 {STAGES}"),
    Case("six-processors", "convnext.onnx", SIX, f"--precision int8 {STAGES}"),
    Case("float16", "swin.onnx", SIX, f"--precision float16 {STAGES}"),
    Case("tokens", "whisper.onnx", SIX, STAGES),
    Case("in-turns", "forks.onnx", SIX, "--precision model"),
    Case("split", "forks.onnx", A311D, "--split auto --json"),
    Case(
        "choices", "zoo:squeezenet", A311D,
        "--exclude little --pin conv1=big --max-stages 2 --rate 20",
    ),
    Case(
        "memory-limit", "forks.onnx", A311D,
        "--max-memory 3MB --recompute --objectives latency-throughput-energy-memory",
    ),
    Case("own-memory", "forks.onnx", A311D, f"--memory-limit 64GB {STAGES}"),
    Case("segment-limit", "forks.onnx", A311D, "--max-segments big=2 --max-segments gpu=1"),
    Case("memory", "zoo:squeezenet", A1000, "--objectives latency-throughput-memory"),
    Case("dvfs", "forks.onnx", RK3399PRO, "--dvfs --dvfs-points 2"),
    Case(
        "draws", "forks.onnx", A311D,
        "--draws 20 --seed 2 --robust 0.9 --scenarios 2 --figure draws/front.png --confidence 0.8 "
        "--min-fps 50 --max-latency 100ms --max-energy 1J --max-power 9W --board",
    ),
    Case("sustained", "forks.onnx", A311D, "--sustained --min-fps 100"),
    Case(
        "costs", "unknown.onnx", A311D,
        "--dim batch=1 --shape b=float32:1x8x56x56 --rules rules.yaml --profile profile.csv",
    ),
    Case(
        "states", "zoo:llama-step:1", A311D,
        "--state input_ids=none --sequences 2 --min-tokens-per-second 1 "
        f"--max-energy-per-token 100J {STAGES}",
    ),
    Case("cold", "forks.onnx", LONG_RUNS, f"--thermal-state cold {STAGES}"),
    Case("warm", "forks.onnx", LONG_RUNS, f"--thermal-state sustained {STAGES}"),
    Case("both-states", "forks.onnx", LONG_RUNS, f"--both-states {STAGES}"),
    Case(
        "shapes", "steps.onnx", A311D,
        "--shape-set prompt:rows=48,past=0 --shape-set step:rows=1,past=48 "
        f"--mix prompt=1,step=20 {STAGES}",
    ),
    Case("lengths", "found.onnx", SIX, f"--at-most 300 {STAGES}"),
    Case(
        "several", "forks=forks.onnx squeezenet=zoo:squeezenet", A311D,
        "--rate forks=20 --rate squeezenet=10 --deadline forks=50ms --priority squeezenet=2",
    ),
)  # fmt: skip


def unused(cases: Iterable[Case]) -> Iterator[str]:
    """Yield each option of `map`, alone or with a word that it takes, that no case uses."""
    from parapipe.cli.command_line import SETTINGS
    from parapipe.cli.map import command
    from parapipe.search.options import MapOptions, flag

    lines = [case.words for case in cases]
    words = {word for line in lines for word in line}
    pairs = {pair for line in lines for pair in pairwise(line)}
    with click.Context(command, **SETTINGS) as context:
        listed = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    names = {name: None for each in listed for name in each.opts if name.startswith("--")}
    names |= dict.fromkeys(flag(field.name) for field in fields(MapOptions))
    yield from (name for name in names if name not in words and name not in LEFT_OUT)
    for option in listed:
        for word in _words_of(option):
            if word != option.default and (option.opts[0], word) not in pairs:
                yield f"{option.opts[0]} {word}"


def _words_of(option: click.Option) -> Iterable[str]:
    """Return the words of which an option takes one; none if it takes anything else."""
    kind: Any = option.type
    if hasattr(kind, "module"):  # names that a module of the API lists
        found: Iterable[str] = getattr(import_module(kind.module), kind.names)()
        return found
    return map(str, kind.choices) if isinstance(kind, click.Choice) else ()


def prepare(folder: Path) -> None:
    """Write what the cases read: models, boards, a profile and rules."""
    import onnx
    from onnx import helper

    weight = helper.make_tensor("w", onnx.TensorProto.FLOAT, (8, 8, 3, 3), [0.01] * 576)
    for name, text in NETWORKS.items():
        head = '<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>'
        model = onnx.parser.parse_model(head + text)
        model.graph.initializer.append(weight)
        onnx.save(model, folder / f"{name}.onnx")
    for path in THIRD_PARTY.glob("*.onnx"):
        shutil.copyfile(path, folder / path.name)
    shutil.copyfile(PROFILE, folder / "profile.csv")
    (folder / "rules.yaml").write_text(RULES, encoding="utf-8")
    (folder / LONG_RUNS).write_text(WARM, encoding="utf-8")
    _parapipe(["platforms", "new", "--chip", "rk3588", "--out", SIX], folder)


def hashes_of(case: Case, folder: Path) -> dict[str, str]:
    """Run a case in a folder that `prepare` has filled; return the SHA-256 of each document."""
    printed = _parapipe(case.words, folder)
    results = folder / case.name
    paths = (path for path in results.rglob("*") if path.is_file() and path.name != NOT_HASHED)
    found = {path.relative_to(results).as_posix(): path.read_bytes() for path in paths}
    hashes = {name: sha256(found[name]).hexdigest() for name in sorted(found)}
    return {**hashes, PRINTED: sha256(printed).hexdigest()}


def _parapipe(words: Iterable[str], folder: Path) -> bytes:
    """Run the parapipe that this process would import; return what it prints."""
    path = os.pathsep.join(filter(None, [str(checkout()), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "parapipe.cli.main", *words]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise click.ClickException(f"parapipe {' '.join(words)}: {said}")
    return done.stdout


def checkout() -> Path:
    """Return the folder that the parapipe which this process would import lies in."""
    spec = find_spec("parapipe")
    if spec is None or spec.origin is None:
        raise click.ClickException("there is no parapipe: put its checkout into PYTHONPATH")
    return Path(spec.origin).resolve().parents[1]


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    from parapipe.version import __version__

    here = {"parapipe": __version__, "python": platform.python_version()}
    return here | {name: version(name) for name in PACKAGES}


def differences(before: Hashes, after: Hashes) -> Iterator[str]:
    """Yield the documents of a case that are not the same."""
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"{name} is no longer there"
        elif name not in before:
            yield f"{name} is new"
        elif before[name] != after[name]:
            yield f"{name} differs"


def compare(stored: Mapping[str, Any], made: Mapping[str, Any]) -> list[str]:
    """Return what differs between stored hashes and those of cases run now."""
    told = []
    for name, hashes in made.items():
        if name not in stored:
            told.append(f"{name}: not in the file")
        else:
            told += [f"{name}: {each}" for each in differences(stored[name], hashes)]
    return told


@click.command()
@click.option("--write", type=click.Path(path_type=Path), help="Write the hashes to this file.")
@click.option(
    "--check",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Compare with this file; exit with 1 if a document differs.",
)
@click.option(
    "--only", multiple=True, type=click.Choice([case.name for case in CASES]), metavar="CASE",
    help="Run this case. May be repeated.",
)  # fmt: skip
@click.option(
    "--keep", type=click.Path(file_okay=False, path_type=Path),
    help="Keep the documents in this new folder, to see what differs in them.",
)  # fmt: skip
def main(write: Path | None, check: Path | None, only: tuple[str, ...], keep: Path | None) -> None:
    """Hash what `parapipe map` writes in small cases, and keep or compare the hashes."""
    if (write is None) == (check is None):
        raise click.UsageError("give either --write or --check")
    if keep and keep.exists() and any(keep.iterdir()):
        raise click.UsageError(f"{keep} is not empty: --keep needs a new folder")
    cases = [case for case in CASES if not only or case.name in only]
    stored = json.loads(check.read_text(encoding="utf-8")) if check else None
    click.echo(f"parapipe of {checkout()}", err=True)
    with TemporaryDirectory() as scratch:
        made = run(cases, keep or Path(scratch))
    if write:
        document = {"versions": versions(), "cases": made}
        write.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if stored:
        missing = (
            [] if only else [f"{n}: is no case here" for n in stored["cases"] if n not in made]
        )
        told = compare(stored["cases"], made) + missing
        for line in [*_other_versions(stored["versions"]), *told]:
            click.echo(line)
        click.echo(f"{_count(len(made), 'case')}, {_count(len(told), 'difference')}")
        sys.exit(bool(told))


def run(cases: Iterable[Case], folder: Path) -> dict[str, dict[str, str]]:
    """Run cases one after the other; return the hashes of each."""
    folder.mkdir(parents=True, exist_ok=True)
    prepare(folder)
    made = {}
    for case in cases:
        start = perf_counter()
        made[case.name] = hashes_of(case, folder)
        click.echo(f"{case.name}: {perf_counter() - start:.1f} s", err=True)
    return made


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _other_versions(stored: Mapping[str, str]) -> Iterator[str]:
    here = versions()
    for name in sorted(stored.keys() | here.keys()):
        if (was := stored.get(name)) != (now := here.get(name)):
            yield f"note: {name} was {was}, is {now}: results may differ for that"


if __name__ == "__main__":
    main()
