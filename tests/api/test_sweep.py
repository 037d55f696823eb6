"""Sweeps: models on platforms, by processes of this machine or by Dask, begun again or not."""

import os
import random
import signal
import socket
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

import numpy as np
import onnx
import pytest
from distributed import LocalCluster

import parapipe
from parapipe.errors import SweepError
from parapipe.sweeps import tasks
from tests.cases import dying_mappers

TABLES = ("sweep.json", "sweep.csv", "sweep.parquet", "index.html")
QUICK = {"objectives": "latency-throughput", "draws": 0, "cache": False}


def convolutions(path, channels):
    """Write a chain of 1×1 convolutions with these numbers of channels."""
    names = "abcdefgh"[: len(channels)]
    body = " ".join(f"{to} = Conv({at}, w{to})" for at, to in pairwise(names))
    ends = f"(float[1,{channels[0]},16,16] a) => (float[1,{channels[-1]},16,16] {names[-1]})"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> chain {ends} {{ {body} }}'
    )
    for to, read, made in zip(names[1:], channels, channels[1:], strict=False):
        kernel = np.full((made, read, 1, 1), 0.5, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(kernel, f"w{to}"))
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    chains = ((3, 8, 8), (3, 16, 4, 4), (3, 4, 32, 8, 4))
    return [convolutions(folder / f"m{i}.onnx", each) for i, each in enumerate(chains)]


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as made:
        yield made


@pytest.fixture(scope="module")
def swept(models, tmp_path_factory):
    """Three models on two platforms, by two processes of this machine."""
    out = tmp_path_factory.mktemp("swept")
    boards = ["amlogic-a311d", "bst-a1000"]
    notes = []
    parapipe.sweep(out=out, models=models, platforms=boards, jobs=2, note=notes.append, **QUICK)
    assert any("m0-bst-a1000: energy of npu" in note for note in notes)
    return out


def tables(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


def test_each_front_is_that_of_map(models, swept):
    found = parapipe.load_sweep(swept)
    assert [row.name for row, _ in found] == [
        f"m{i}-{board}" for i in range(3) for board in ("amlogic-a311d", "bst-a1000")
    ]
    alone = parapipe.map(models[1], "amlogic-a311d", jobs=1, **QUICK)
    assert found["m1-amlogic-a311d"].document.to_json() == alone.to_json()
    row = found.document.results[2]
    assert (row.latency_s, row.throughput_fps) == (
        min(each.latency_s for each in alone.document.configurations),
        max(each.throughput_fps for each in alone.document.configurations),
    )
    table = found.to_pandas()
    of_it = table[table.result == "m1-amlogic-a311d"]
    assert list(of_it.latency_s) == list(alone.to_pandas().latency_s)


@pytest.mark.nightly
def test_a_dask_cluster_gives_the_same_tables_byte_by_byte(models, swept, cluster, tmp_path):
    parapipe.sweep(
        out=tmp_path, models=models, platforms=["amlogic-a311d", "bst-a1000"],
        scheduler=cluster.scheduler_address, note=lambda _: None, **QUICK,
    )  # fmt: skip
    assert tables(tmp_path) == tables(swept)


def test_what_is_there_is_not_done_again(models, tmp_path):
    told = []
    given = {"out": tmp_path, "platforms": ["amlogic-a311d"], "jobs": 1, **QUICK}
    parapipe.sweep(models=models[:1], progress=told.append, **given)
    parapipe.sweep(models=models[:2], progress=told.append, **given)
    before = tables(tmp_path)
    parapipe.sweep(models=models[:2], progress=told.append, **given)
    assert [(each.done, each.total, each.cached) for each in told] == [(1, 1, 0), (2, 2, 1)]
    assert tables(tmp_path) == before


@pytest.mark.nightly
def test_a_changed_model_or_option_is_done_again(models, tmp_path):
    told = []
    model = tmp_path / "m.onnx"
    model.write_bytes(models[0].read_bytes())
    given = {"out": tmp_path / "out", "models": [model], "platforms": ["amlogic-a311d"]}
    parapipe.sweep(**given, jobs=1, **QUICK)
    model.write_bytes(models[1].read_bytes())
    parapipe.sweep(**given, jobs=1, progress=told.append, **QUICK)
    parapipe.sweep(**given, jobs=1, progress=told.append, **QUICK, interleave="none")
    assert [(each.done, each.cached) for each in told] == [(1, 0), (1, 0)]


def test_a_model_that_cannot_be_mapped_does_not_end_the_others(models, tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    found = parapipe.sweep(
        out=tmp_path / "out", models=[broken, models[0]], platforms=["amlogic-a311d"], jobs=1,
        **QUICK,
    )  # fmt: skip
    first, second = found.document.results
    assert "broken.onnx" in first.error
    assert second.error is None
    assert [row.name for row, _ in found] == ["m0-amlogic-a311d"]


@pytest.mark.nightly
def test_a_task_whose_process_ended_is_done_again(models, tmp_path, monkeypatch):
    monkeypatch.setenv(dying_mappers.MARK, str(tmp_path / "seen"))
    found = parapipe.sweep(
        out=tmp_path, models=models[:2], platforms=["amlogic-a311d"], jobs=2,
        mapper=f"{dying_mappers.__name__}:once", **QUICK,
    )  # fmt: skip
    assert (tmp_path / "seen").exists()
    assert [row.error for row in found.document.results] == [None] * 2


@pytest.mark.nightly
def test_a_task_that_ends_every_process_is_given_up(models, tmp_path):
    found = parapipe.sweep(
        out=tmp_path, models=models[:1], platforms=["amlogic-a311d"], jobs=1,
        mapper=f"{dying_mappers.__name__}:always", **QUICK,
    )  # fmt: skip
    assert "has ended 5 times, the last time so: a worker process ended by signal 9" in (
        found.document.results[0].error
    )


@pytest.mark.nightly
def test_workers_killed_at_random_moments_lose_nothing(models, swept, tmp_path):
    """Ten times, a worker of a Dask cluster is killed while it works."""
    rng, over, killed = np.random.default_rng(0), Event(), []
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as made:

        def kill():
            while len(killed) < 10 and not over.wait(rng.uniform(0.3, 2.0)):
                workers = [each for each in made.workers.values() if each.pid]
                if workers:
                    os.kill(rng.choice([each.pid for each in workers]), signal.SIGKILL)
                    killed.append(True)

        given = {
            "models": models, "platforms": ["amlogic-a311d", "bst-a1000"],
            "scheduler": made.scheduler_address, "note": lambda _: None, **QUICK,
        }  # fmt: skip
        thread = Thread(target=kill)
        thread.start()
        while len(killed) < 10:
            parapipe.sweep(out=tmp_path / f"{len(killed)}", **given)
        thread.join()
        over.set()
        parapipe.sweep(out=tmp_path / "last", **given)
    for each in tmp_path.iterdir():
        assert tables(each) == tables(swept)


def test_the_best_platform_for_demands_comes_first(swept):
    found = parapipe.load_sweep(swept).pick("energy", min_fps=1000)
    first, second = (each for each in found if Path(each.row.model).stem == "m0")
    assert first.picked.figures["energy_j"] <= second.picked.figures["energy_j"]
    assert all(each.picked.figures["throughput_fps"] >= 1000 for each in found if each.picked)
    none = parapipe.load_sweep(swept).pick("latency", max_latency_s=1e-9)
    assert all(each.picked is None and "instead of" in each.missed for each in none)


@contextmanager
def answering(answer):
    """Yield the port of a program that answers whoever connects with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with suppress(OSError):
                while True:
                    client, _ = server.accept()
                    with client, suppress(OSError):
                        client.sendall(answer)

        Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def eight(number):
    return number.to_bytes(8, "little")


NOBODY = None
ANSWERS = {
    "nobody": NOBODY,
    "closes": b"",
    "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "zeros": bytes(64),
    "short": eight(3) + eight(1) + b"abc",
    "huge": eight(1 << 40) + bytes(100),
    "unpacked": eight(32) + eight(2) + eight(3) + eight(5) + b"abcdefgh",
    "random": random.Random(3).randbytes(200),
}


@pytest.mark.parametrize(
    ("scheme", "answer"),
    [
        *(("tcp", answer) for answer in ANSWERS),
        *((scheme, "http") for scheme in ("tls", "ucx", "ws", "foo")),
    ],
)
def test_what_is_no_scheduler_is_named_in_one_line(models, tmp_path, monkeypatch, scheme, answer):
    monkeypatch.setattr(tasks, "CONNECT_S", 0.5)
    spoken = ANSWERS[answer]
    with nullcontext(9) if spoken is NOBODY else answering(spoken) as port:
        address = f"{scheme}://127.0.0.1:{port}"
        with pytest.raises(SweepError, match=rf"^the Dask scheduler at '{address}' cannot") as told:
            parapipe.sweep(
                out=tmp_path, models=models[:1], platforms=["amlogic-a311d"],
                scheduler=address, **QUICK,
            )  # fmt: skip
    assert "\n" not in str(told.value)


def test_two_results_of_one_name_are_refused(models, tmp_path):
    with pytest.raises(SweepError, match="would be called m0-amlogic-a311d"):
        parapipe.sweep(out=tmp_path, models=models[:1] * 2, platforms=["amlogic-a311d"])
