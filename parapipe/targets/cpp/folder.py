"""The target `cpp`: a C++ program of one plan, with the library that it stands on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from parapipe.errors import ExportError
from parapipe.export.constants import Constants
from parapipe.export.exported import Exported, export_folder, readme, refuse_converted
from parapipe.files.shipped import data_folder
from parapipe.files.titles import model_title
from parapipe.plan.schema import Plan
from parapipe.targets.cpp.arena import pool_of
from parapipe.targets.cpp.clusters import clusters_of
from parapipe.targets.cpp.source import (
    Source,
    header_text,
    identifier,
    network_text,
    one_line,
)
from parapipe.targets.native.backends import (
    BACKENDS,
    BackendName,
    backends_of,
    library_notes,
)
from parapipe.targets.native.build import library_plan_of, lower_plan
from parapipe.targets.native.folder import WEIGHTS, weight_offsets, write_weights
from parapipe.targets.native.library_plan import LibraryPlan, WeightsFile
from parapipe.targets.native.runner import BACKEND_OPTIONS, DEBIAN_PACKAGES, ONEDNN

SCHEMA = "parapipe/cpp/1"
DOCUMENT = "program.json"
RUNTIME = "runtime"
_BUILD = "build"
_FRAMES = ("input.bin", "expected.bin")
FILES = {
    "network.hpp, network.cpp": "a class with `load` and `run`, and the plan as its source",
    "main.cpp": "a program that runs and checks it; yours to change, or to leave out",
    WEIGHTS: "the constants, little-endian float32, in ONNX's layout",
    RUNTIME: "the library: the sources of parapipe's native runner",
    DOCUMENT: "what has written this folder",
}
_INSTALL = {
    "onednn": f"""On Debian: `sudo apt-get install --yes {DEBIAN_PACKAGES}`, and oneDNN of a package
of Python's registry:

    python3 -m venv onednn && onednn/bin/python -m pip install {ONEDNN}
    export CMAKE_PREFIX_PATH=$PWD/onednn
""",
    "neon": f"""On Debian: `sudo apt-get install --yes {DEBIAN_PACKAGES} libarm-compute-dev`.
""",
    "opencl": """For the GPU, its driver (`libOpenCL.so`).
""",
    "xnnpack": f"""On Debian: `sudo apt-get install --yes {DEBIAN_PACKAGES} libxnnpack-dev
libpthreadpool-dev`.
""",
    "plain": f"""On Debian: `sudo apt-get install --yes {DEBIAN_PACKAGES}`.
""",
}


@dataclass(frozen=True, slots=True)
class Form:
    """What programs for one kind of machine have in common.

    Parameters
    ----------
    target
        Name of the target.
    schema
        That of `program.json`.
    languages, library
        What CMake has to know, and links.
    options
        What is switched on in the library, by the names that `BACKEND_OPTIONS` has, and others.
    use
        Markdown that says what to install.
    """

    target: str
    schema: str
    languages: str
    library: str
    options: Mapping[str, bool]
    use: str


def export(plan: Plan, model: Path, destination: Path | None) -> Exported:
    """Write the folder; an earlier export that stands there is replaced.

    Raises
    ------
    ExportError
        If no folder is named, if operators or processors have no form in the library, of which it
        names all, or if processors take turns on frames.
    ModelError
        If a constant cannot be read or computed.
    OutputError
        If the folder holds anything else, or cannot be written.
    """
    backends = backends_of(plan)
    used = set(backends.values())
    options = {option: name in used for name, option in BACKEND_OPTIONS.items()}
    use = "\n".join(text for backend, text in _INSTALL.items() if backend in used)
    form = Form("cpp", SCHEMA, "CXX", "parapipe_program", options, use)
    return export_program(plan, model, destination, form, backends)


def export_program(
    plan: Plan,
    model: Path,
    destination: Path | None,
    form: Form,
    backends: Mapping[str, BackendName],
    *,
    kind: str | None = None,
) -> Exported:
    """Write the folder of a program.

    Parameters
    ----------
    backends
        What lowers the operators of each processor.
    kind
        What runs all streams, in the source's words, if that is another one; images are then in
        ONNX's order.

    Raises
    ------
    ExportError, ModelError, OutputError
        See `export`.
    """
    if any(p.replicas for stage in plan.stages for p in stage.processors):
        raise ExportError(
            f"{plan.model.name}: a program has one stream for each operator, and the plan has "
            "processors that take turns on frames: choose a configuration without replicas"
        )
    name = identifier(model_title(plan.model.name).removeprefix("zoo:"))

    def write(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        source = _write_network(plan, model, folder, name, form, backends=backends, kind=kind)
        _write_frame(folder, source.document, name, form)
        document = source.document
        shares = ", ".join(f"{len(order)} on {at}" for at, order in source.orders.items())
        places = len(document.arena.places) if document.arena else 0
        return (
            f"operators   {len(document.operators)} in {len(source.clusters)} clusters: {shares}",
            f"pool        {places} tensors at the plan's offsets",
        ), library_notes(plan) if kind is None else ()

    return export_folder(
        form.target, destination, form.schema,
        lambda _: ("network.hpp", "network.cpp", "main.cpp", "CMakeLists.txt", WEIGHTS, RUNTIME,
                   _BUILD, *_FRAMES),
        write, document=DOCUMENT, readme=readme(plan, form.target, _use(form, name), FILES),
    )  # fmt: skip


def _write_network(
    plan: Plan,
    model: Path,
    folder: Path,
    name: str,
    form: Form,
    *,
    backends: Mapping[str, BackendName],
    kind: str | None,
) -> Source:
    refuse_converted(plan, form.target)
    title = f"{one_line(model_title(plan.model.name))} on {one_line(plan.platform)}"
    channels_last = kind is None and any(BACKENDS[each].channels_last for each in backends.values())
    with Constants(plan, model) as constants:
        into = lower_plan(plan, constants, backends)
        offsets, size_bytes = weight_offsets(into.weights)
        weights = WeightsFile(file=WEIGHTS, size_bytes=size_bytes)
        document = library_plan_of(plan, into, weights, offsets, backends)
        document = document.model_copy(
            update={"arena": pool_of(plan, into, channels_last=channels_last)}
        )
        write_weights(folder / WEIGHTS, into.weights, offsets)
    clusters, orders = clusters_of(plan, document.operators)
    title = f"{title}, written by `parapipe export --to {form.target}`"
    source = Source(name, title, document, clusters, orders, kind)
    (folder / "network.hpp").write_text(header_text(source))
    (folder / "network.cpp").write_text(network_text(source))
    return source


def _write_frame(folder: Path, document: LibraryPlan, name: str, form: Form) -> None:
    """Write what is the same for all networks, but for the name: main.cpp, CMake, the library."""
    runner = data_folder("runtimes") / "native"
    words = {
        "@NAME@": name,
        "@NAMESPACE@": name,
        "@LANGUAGES@": form.languages,
        "@LIBRARY@": form.library,
        "@OPTIONS@": "\n".join(
            f'set({option} {"ON" if on else "OFF"} CACHE BOOL "" FORCE)'
            for option, on in form.options.items()
        ),
    }
    for file in ("main.cpp", "CMakeLists.txt"):
        text = (runner / "program" / file).read_text()
        for word, stands_for in words.items():
            text = text.replace(word, stands_for)
        (folder / file).write_text(text)
    sources = (each for each in sorted((runner / "src").rglob("*")) if each.is_file())
    for source in (runner / "CMakeLists.txt", *sources):
        copied = folder / RUNTIME / source.relative_to(runner)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copied)
    about = {
        "schema": form.schema,
        "model": document.model.model_dump(),
        "platform": document.platform,
    }
    (folder / DOCUMENT).write_text(json.dumps(about, indent=2) + "\n")


def _use(form: Form, name: str) -> str:
    return f"""{form.use}
Then two commands build and run it:

    cmake -S . -B build && cmake --build build --parallel 4
    build/{name} --frames 100

`build/{name} --help` lists its options. In a program of your own, add this folder by
`add_subdirectory`, link `{name}_network`, and include `network.hpp`:

    {name}::Network network;
    network.load("weights.bin");
    network.run(inputs, outputs);
"""
