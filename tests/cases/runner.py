"""A built runner, started as its users start it."""

import json
import os
import subprocess
from dataclasses import dataclass

import numpy as np

TOLERANCE = 1e-5  # of the largest number of the output


@dataclass(frozen=True)
class Runner:
    """A built runner, what it takes to start it here, and how long it may take."""

    command: tuple
    fuzz: tuple
    seconds: int = 300

    def run(self, folder, *options):
        """Run a folder; nothing is said of the exit code."""
        return subprocess.run(
            [*self.command, str(folder), *map(str, options)],
            capture_output=True,
            text=True,
            timeout=self.seconds,
            check=False,
        )

    def measured(self, folder, *options):
        """Run a folder that must succeed, and return what it reports."""
        done = self.run(folder, "--json", *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def outputs(self, folder, *options):
        """Run a folder on its frames; return what it reports, and what it and ONNX Runtime made."""
        made = folder / "made.bin"
        report = self.measured(folder, "--input", folder / "input.bin", "--output", made, *options)
        return report, np.fromfile(made, "<f4"), np.fromfile(folder / "expected.bin", "<f4")


def refused(done):
    """Assert that a run ended with exit code 1 and one line; return the line."""
    assert done.returncode == 1, (done.returncode, done.stderr)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("running ")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("parapipe-native: ")
    return lines[0]


def on_this_machine(plan):
    """Options that put a plan's CPU processors on cores that are here."""
    here = sorted(os.sched_getaffinity(0))
    cores = {"big": here[:2], "little": here[-1:], "middle": here[:1]}
    used = [p["name"] for p in json.loads((plan / "plan.json").read_text())["processors"]]
    return [
        word
        for name in used
        if name in cores
        for word in ("--cores", f"{name}={','.join(map(str, cores[name]))}")
    ]


def assert_near(made, wanted):
    assert made.size == wanted.size > 0
    assert np.abs(made - wanted).max() <= TOLERANCE * np.abs(wanted).max()


def on_one_core_each(folder):
    """Let processors run here: no more threads than one, on any core."""
    path = folder / "plan.json"
    document = json.loads(path.read_text())
    for each in document["processors"]:
        each.update(cores=[], threads=1)
    path.write_text(json.dumps(document))
    return document
