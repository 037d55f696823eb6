"""The report page as a file: whole by itself, safe, and about what the plans say."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

import parapipe
from parapipe.documents.front_folder import load_folder
from parapipe.figures.page import SCRIPTS, WEB, embedded_json, page, page_data
from parapipe.sweeps.document import SCRIPTS as SWEEP_SCRIPTS

WEIRD = "</script><!-- <script> & \u2028 \u2029 \" ' ${x} $title \\u003c"


class Parts(HTMLParser):
    """Elements of a page: their names, attributes, and the text in scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.elements[-1][0] if self.elements else "", []).append(data)


@pytest.fixture(scope="module")
def text(branchy_folder: Path) -> str:
    return page(load_folder(branchy_folder)).decode()


@pytest.fixture(scope="module")
def data(text: str):
    return json.loads(re.search(r'id="data">(.*)</script>\n<script>', text)[1])


def test_the_policy_allows_the_pages_own_style_and_script_by_digest_and_nothing_else(text) -> None:
    parts = Parts(text)
    policy = next(
        attributes["content"]
        for tag, attributes in parts.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    digests = {
        kind: "'sha256-" + b64encode(sha256(found.encode()).digest()).decode() + "'"
        for kind, found in (
            ("style", re.search("<style>(.*)</style>", text, re.DOTALL)[1]),
            ("script", re.search("</script>\n<script>(.*)</script>", text, re.DOTALL)[1]),
        )
    }
    assert rules == {
        "default-src": "'none'", "style-src": digests["style"], "script-src": digests["script"],
        "img-src": "data:", "base-uri": "'none'", "form-action": "'none'",
    }  # fmt: skip


def test_the_page_refers_to_nothing_outside_itself(text) -> None:
    parts = Parts(text)
    links = [
        value
        for _, attributes in parts.elements
        for name, value in attributes.items()
        if name in ("src", "href", "action", "data", "srcset")
    ]
    assert links == ["data:,"]
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", "".join(parts.texts["style"]))


def test_all_scripts_of_the_folder_are_in_the_page_and_none_makes_elements_of_markup() -> None:
    assert sorted({*SCRIPTS, *SWEEP_SCRIPTS}) == sorted(path.name for path in WEB.glob("*.js"))
    for name in {*SCRIPTS, *SWEEP_SCRIPTS}:
        code = (WEB / name).read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", code), (
            name
        )
        assert len(code.splitlines()) <= 400, name


def test_any_text_comes_back_from_the_embedded_json_and_ends_no_element() -> None:
    embedded = embedded_json({WEIRD: [WEIRD]})
    assert json.loads(embedded) == {WEIRD: [WEIRD]}
    assert not set("<>&\u2028\u2029") & set(embedded)


def test_the_data_hold_every_operator_at_the_time_of_its_plan(branchy_front, data) -> None:
    names = [operator["name"] for operator in data["network"]["operators"]]
    processors = [processor["name"] for processor in data["front"]["processors"]]
    for made in branchy_front:
        by_id = {operator.id: operator.name for operator in made.plan().operators}
        planned = {
            (by_id[at.operator], stage.index, each.name, round(at.start_s * 1e6, 3))
            for stage in made.plan().stages
            for each in stage.processors
            for at in each.operators
        }
        bars = data["schedules"][made.id]["bars"]
        assert {
            (names[v], stage, processors[p], start) for v, stage, p, start, _ in bars
        } == planned


def test_the_data_hold_every_transfer(branchy_front, data) -> None:
    processors = [processor["name"] for processor in data["front"]["processors"]]
    tensors = data["network"]["tensors"]
    total = 0
    for made in branchy_front:
        passages = data["schedules"][made.id]["passages"]
        for passage, transfer in zip(passages, made.plan().transfers, strict=True):
            tensor, _, source, target, _, within, _, start, end, size_bytes, cast = passage
            assert (size_bytes, cast) == (transfer.size_bytes, None)
            assert tensors[tensor] == [transfer.tensor, transfer.size_bytes]
            assert (processors[source], processors[target]) == (transfer.source, transfer.target)
            assert bool(within) == (transfer.kind == "within-stage")
            assert end - start == pytest.approx(transfer.time_s * 1e6, abs=2e-3)
            total += 1
    assert total > 0


def test_operators_side_by_side_have_places_of_their_own(data) -> None:
    places = [
        (operator["subgraph"], *operator["place"]) for operator in data["network"]["operators"]
    ]
    assert len(set(places)) == len(places)


def test_the_solvers_are_summed_up(branchy_front, data) -> None:
    log = branchy_front.solve_log()
    count = sum(entry["problems"] for entry in log)
    assert data["solver"]["problems"] == count > len(log)
    assert data["solver"]["proven"] == sum(entry["problems"] for entry in log if entry["proven"])
    assert sum(each["problems"] for each in data["solver"]["solvers"]) == count


def test_each_entry_of_an_earlier_versions_log_stands_for_one_problem(branchy_folder) -> None:
    front = load_folder(branchy_folder)
    log = [{n: v for n, v in entry.items() if n != "problems"} for entry in front.solve_log]
    assert page_data(replace(front, solve_log=log))["solver"]["problems"] == len(log)


def test_a_front_writes_its_report_without_a_folder(
    branchy_front, branchy_folder, tmp_path
) -> None:
    branchy_front.write_report(tmp_path / "one.html")
    written = parapipe.report(branchy_folder, tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == written.read_bytes()


def test_the_report_of_inception_v3_is_below_5_mb(tmp_path) -> None:
    front = parapipe.map(
        "zoo:inception-v3", "amlogic-a311d", mapper="heft", cache=False, interleave="none"
    )
    front.write_report(tmp_path / "report.html")
    assert len(front) > 50
    assert (tmp_path / "report.html").stat().st_size < 5e6


def test_memory_over_a_period_comes_from_the_plan_and_has_the_peak_of_the_front(
    data, branchy_front
) -> None:
    for made in branchy_front:
        (drawn,), (stated,) = data["schedules"][made.id]["memory"], made.memories
        assert (drawn["peak"], drawn["weights"]) == (stated.peak_bytes, stated.weights_bytes)
        assert max(size_bytes for _, size_bytes in drawn["usage"]) <= drawn["peak"]
        assert all(0 <= at_us <= made.period_s * 1e6 for at_us, _ in drawn["usage"])
