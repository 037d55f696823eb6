"""Progress goes to standard error, and only where somebody wants to see it."""

from dataclasses import dataclass

from parapipe.cli.progress import progress_shown


@dataclass
class Told:
    done: int
    elapsed_s: float
    largest_gap: float = 0.0
    cached: int = 0
    total: int = 66
    phase: str = "mapping"
    best_latency_s: float = 0.0
    best_period_s: float = 0.0


def test_quiet_work_tells_nothing() -> None:
    with progress_shown(quiet=True) as show:
        assert show is None


def test_short_work_prints_no_line_where_there_is_no_terminal(capsys) -> None:
    with progress_shown(quiet=False) as show:
        for done in range(66):
            show(Told(done, done * 0.1))
    assert capsys.readouterr() == ("", "")


def test_long_work_prints_a_line_now_and_then_on_standard_error(capsys) -> None:
    with progress_shown(quiet=False) as show:
        for done in range(66):
            show(Told(done, float(done), largest_gap=0.01))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == (
        "mapping subgraphs: 10 of 66 solved, largest gap 1.0 %, 10 s, about 56 s left"
    )
    assert len(err.splitlines()) == 6


def test_searching_and_writing_are_told_too_each_by_a_clock_of_its_own(capsys) -> None:
    with progress_shown(quiet=False) as show:
        for phase in ("mapping", "searching", "trading", "writing"):
            for done in range(15):
                show(Told(done, float(done), phase=phase))
    assert capsys.readouterr().err.splitlines() == [
        "mapping subgraphs: 10 of 66 solved, 10 s, about 56 s left",
        "searching stages: 10 of 66 places to cut, 10 s, about 56 s left",
        "trading time for energy: 10 of 66 subgraphs, 10 s, about 56 s left",
        "writing plans: 10 of 66, 10 s, about 56 s left",
    ]


def test_the_best_so_far_is_told_once_there_is_a_front(capsys) -> None:
    with progress_shown(quiet=False) as show:
        show(Told(33, 10.0, best_latency_s=0.0125, best_period_s=0.004))
    told = "mapping subgraphs: 33 of 66 solved, 10 s, about 10 s left; best so far 12.5 ms, "
    assert capsys.readouterr().err == f"{told}250 frames/s\n"
