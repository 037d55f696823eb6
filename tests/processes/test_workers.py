"""Worker processes: they answer, they pass errors on, and they never stay behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from pickle import PicklingError

import pytest

from parapipe.errors import MappingError, VerificationError
from parapipe.processes.deadline import Deadline
from parapipe.processes.shared_work import distribute
from parapipe.processes.workers import (
    SharedProcesses,
    WorkerProcesses,
    current_processes,
    shared_processes,
)
from tests.cases.refusals import no_more_files

SLEEPER = "__import__('subprocess').Popen(['sleep', '1000']).pid"


def runs(pid: int) -> bool:
    """Whether a process is there, and not only its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ended(pid: int) -> bool:
    """Whether a process ends; waits for it as long as the test may take."""
    return comes_true(lambda: not runs(pid))


def comes_true(what: Callable[[], bool]) -> bool:
    """Whether something is so in the end."""
    for _ in range(3000):
        if what():
            return True
        time.sleep(0.01)
    return False


def test_calls_are_answered_in_other_processes() -> None:
    with WorkerProcesses(2) as workers:
        futures = [workers.submit(divmod, i, 7) for i in range(50)]
        assert [future.result() for future in futures] == [divmod(i, 7) for i in range(50)]
        pids = {workers.submit(os.getpid).result() for _ in range(10)}
    assert os.getpid() not in pids
    assert all(ended(pid) for pid in pids)


def test_map_of_the_executor_interface_keeps_the_order() -> None:
    with WorkerProcesses(2) as workers:
        assert list(workers.map(abs, [-3, 2, -1])) == [3, 2, 1]


def test_errors_cross_with_all_they_hold() -> None:
    with WorkerProcesses(1) as workers:
        error = workers.submit(int, "x").exception()
        assert isinstance(error, ValueError)
        assert "in a worker process" in error.__notes__[0]
        errors = "__import__('parapipe.errors').errors"
        call = f"(_ for _ in ()).throw({errors}.VerificationError('m', ['v'])).__next__()"
        error = workers.submit(eval, call).exception()
        assert isinstance(error, VerificationError)
        assert (str(error), error.violations) == ("m", ("v",))


def test_what_cannot_cross_is_told_and_the_worker_goes_on() -> None:
    with WorkerProcesses(1) as workers:
        with pytest.raises(PicklingError, match="lambda"):
            workers.submit(eval, "lambda: 0").result()
        local = "(_ for _ in ()).throw(type('Odd', (Exception,), {})('so odd')).__next__()"
        with pytest.raises(RuntimeError, match="Odd: so odd"):
            workers.submit(eval, local).result()
        with pytest.raises(Exception, match=r"pickle|local"):
            workers.submit(lambda: 0)
        assert workers.submit(abs, -1).result() == 1


def test_what_is_printed_in_a_worker_is_no_answer_and_is_not_shown(capfd) -> None:
    with WorkerProcesses(1) as workers:
        assert workers.submit(print, "hello", flush=True).result() is None
        assert workers.submit(os.system, "echo from a child").result() == 0
    assert capfd.readouterr() == ("", "")


def test_a_worker_that_dies_is_told_with_its_last_words_and_the_rest_fails_too() -> None:
    with WorkerProcesses(1) as workers:
        last = "(__import__('os').write(2, b'out of luck\\n'), __import__('os').abort())"
        futures = [workers.submit(eval, last), workers.submit(abs, -1)]
        for future in as_completed(futures):
            with pytest.raises(BrokenExecutor, match="by signal 6: out of luck"):
                future.result()


def test_calls_that_were_cancelled_are_not_made(tmp_path) -> None:
    with WorkerProcesses(1) as workers:
        first = workers.submit(time.sleep, 0.2)
        second = workers.submit(os.mkdir, str(tmp_path / "made"))
        assert second.cancel()
        first.result()
    assert not (tmp_path / "made").exists()


def test_after_shutdown_no_call_is_taken_and_open_ones_are_answered_or_cancelled() -> None:
    workers = WorkerProcesses(1)
    begun = workers.submit(time.sleep, 0.1)
    while not begun.running():
        time.sleep(0.001)
    waiting = workers.submit(abs, -1)
    workers.shutdown(cancel_futures=True)
    assert begun.result() is None
    assert waiting.cancelled()
    with pytest.raises(RuntimeError, match="after shutdown"):
        workers.submit(abs, -1)
    workers.shutdown()


def test_an_error_ends_workers_at_once_and_what_they_have_started() -> None:
    pids = []

    def fail(workers):
        pids.append(workers.submit(os.getpid).result())
        pids.append(workers.submit(eval, SLEEPER).result())
        busy = workers.submit(time.sleep, 1000)
        assert all(map(runs, pids))
        raise MappingError(busy)

    with pytest.raises(MappingError) as caught, WorkerProcesses(1) as workers:
        fail(workers)
    assert all(map(ended, pids))
    with pytest.raises(BrokenExecutor):
        caught.value.args[0].result()


def test_workers_end_with_a_parent_that_is_killed_and_so_does_what_they_have_started() -> None:
    script = (
        "import os, time; from parapipe.processes.workers import WorkerProcesses\n"
        "workers = WorkerProcesses(2)\n"
        "children = open('/proc/self/task/%d/children' % os.getpid()).read()\n"
        f"print(children, workers.submit(eval, {SLEEPER!r}).result(), flush=True)\n"
        "for _ in range(4): workers.submit(time.sleep, 1000)\n"
        "time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        pids = list(map(int, parent.stdout.readline().split()))
        assert all(map(runs, pids))
        parent.send_signal(signal.SIGKILL)
    assert len(pids) == 3
    assert all(map(ended, pids))


@pytest.mark.parametrize("sudden", [False, True])
def test_temporary_files_of_workers_end_with_them(sudden) -> None:
    with suppress(MappingError), WorkerProcesses(1) as workers:
        made = workers.submit(tempfile.mkdtemp).result()
        assert Path(made).is_dir()
        if sudden:
            raise MappingError
    assert not Path(made).exists()


def test_a_script_without_a_main_guard_runs_once(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "print('begin')\nfrom parapipe.processes.workers import WorkerProcesses\n"
        "with WorkerProcesses(2) as workers: print(workers.submit(abs, -1).result())\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("begin\n1\n", "")


def process_of(_task: str) -> int:
    return os.getpid()


def calls(tasks, record, deadline=None) -> None:
    """Make calls that are too large for this process."""
    distribute(process_of, tasks, record, size=lambda _: 99, jobs=2, deadline=deadline)


def test_kept_processes_answer_call_after_call_and_end_with_their_context() -> None:
    rounds = []
    with shared_processes():
        for _ in range(5):
            pids = {}
            calls(["a", "b", "c"], pids.__setitem__)
            rounds.append(set(pids.values()))
            assert all(map(runs, rounds[-1]))
    used = set().union(*rounds)
    assert os.getpid() not in used
    assert len(used) <= 2
    assert all(map(ended, used))


def test_without_any_to_keep_processes_end_with_their_call() -> None:
    pids = {}
    calls(["a"], pids.__setitem__)
    assert pids
    assert all(map(ended, pids.values()))


def test_the_outermost_context_keeps_processes_for_those_within_in_its_thread_alone() -> None:
    assert current_processes() is None
    with shared_processes() as outer:
        with shared_processes() as inner:
            assert inner is current_processes() is outer
            pid = outer.running(1).submit(os.getpid).result()
        assert outer.count == 1
        assert outer.running(1).submit(os.getpid).result() == pid
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(current_processes).result() is None
    assert current_processes() is None
    assert outer.count == 0
    assert ended(pid)


def test_processes_of_which_one_has_ended_are_replaced() -> None:
    with shared_processes() as processes:
        before = processes.running(1)
        pid = before.submit(os.getpid).result()
        os.kill(pid, signal.SIGKILL)
        assert comes_true(lambda: not before.usable)
        assert processes.running(1) is not before
        assert processes.running(1).submit(abs, -1).result() == 1


def imported(name: str) -> bool:
    return name in sys.modules


def test_a_process_that_is_started_ahead_has_imported_what_it_will_need() -> None:
    with SharedProcesses("colorsys") as processes:
        assert not processes.running(1).submit(imported, "colorsys").result()
        processes.end()
        processes.start_ahead()
        assert processes.count == 1
        assert processes.running(1).submit(imported, "colorsys").result()


def test_no_process_starts_ahead_where_nothing_is_known_to_need_it() -> None:
    with SharedProcesses() as processes:
        processes.start_ahead()
        assert processes.count == 0


def test_where_no_process_can_be_started_ahead_nothing_happens() -> None:
    with SharedProcesses("colorsys") as processes:
        with no_more_files():
            processes.start_ahead()
        assert processes.count == 0


def test_a_process_collects_garbage_as_often_as_its_parent() -> None:
    known = gc.get_threshold()
    gc.set_threshold(12_345, 6, 7)
    try:
        with WorkerProcesses(1) as workers:
            assert workers.submit(gc.get_threshold).result() == (12_345, 6, 7)
    finally:
        gc.set_threshold(*known)


def test_more_processes_replace_fewer() -> None:
    with SharedProcesses() as processes:
        one = processes.running(1)
        assert processes.running(1) is one
        two = processes.running(2)
        assert two is not one
        assert processes.running(1) is two


def test_kept_processes_are_replaced_where_work_was_left() -> None:
    with shared_processes() as processes:
        deadline = Deadline()

        def first_alone(_task, _pid) -> None:
            deadline.interrupted = True

        before = processes.running(2)
        calls(["a", "b", "c"], first_alone, deadline)
        assert processes.running(2) is not before
        pids = {}
        calls(["a"], pids.__setitem__)
        assert pids


def test_a_process_that_cannot_be_started_is_an_os_error() -> None:
    with no_more_files(), pytest.raises(OSError, match="Too many open files"):
        WorkerProcesses(1)
