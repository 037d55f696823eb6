"""A first front before all else, by a budget: pipelines of single processors are found at once."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.choices import Choice
from parapipe.pipeline.deadline import Deadline, OverError
from parapipe.pipeline.list_schedules import ListSchedules
from parapipe.pipeline.problems import Request
from parapipe.pipeline.question import Question
from parapipe.pipeline.relaxed import Relaxed
from parapipe.pipeline.searches import Searches
from parapipe.pipeline.table_requests import all_requests, of_pipelines, on_one_processor


def first_front(
    graph: OperatorGraph, relaxed: Relaxed, searches: Searches, lists: ListSchedules
) -> tuple[tuple[Request, ...], bool]:
    """Search some pipelines, then build all requests and search the pipelines of these.

    To build all requests may take longer than the budget, so a few come first. If there are no
    pipelines of these, the budget does not count until there is a front.

    Returns
    -------
    All requests, or some if time runs out, and whether they are all.
    """
    asked, whole = of_pipelines(relaxed), False
    _find_pipelines(asked, searches, lists)
    with searches.deadline.ending(), suppress(OverError):
        until = searches.deadline if searches.kept else Deadline()
        asked = all_requests(graph, searches.partition, searches.tables[0], until)
        whole = True
        _find_pipelines(on_one_processor(until.each(asked)), searches, lists)
    return asked, whole


def _find_pipelines(asked: Iterable[Request], searches: Searches, lists: ListSchedules) -> None:
    """Search pipelines of what needs no solving; of list schedules if there are none.

    OverError at the deadline, once there is a front.
    """
    until = searches.deadline if searches.kept else Deadline()
    alone, method = list(until.each(asked)), lists.solver.method
    found = ((each, Question(each.problem).without_choice(method)) for each in until.each(alone))
    choices = [Choice(each, schedule) for each, schedule in found if schedule]
    with searches.deadline.look():
        if searches.first(choices, pipes=True):
            return
    until.check()
    lists.add((Question(each.problem) for each in alone), until)
    choices = lists.shortest(alone, {})
    with searches.deadline.look():
        searches.first(choices, pipes=True)
