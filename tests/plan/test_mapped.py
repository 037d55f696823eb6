"""A plan has one view as a mapping, and its copies have others."""

import copy
import gc
import pickle
import weakref

from parapipe.api.plan import Plan
from parapipe.plan.mapped import mapping_view
from tests.cases.interleaved import plan_of, wrapped


def test_a_plan_has_one_view():
    plan = plan_of(wrapped())
    assert mapping_view(plan) is mapping_view(plan)
    assert mapping_view(plan).plan == plan


def test_a_changed_copy_has_its_own_view():
    plan = plan_of(wrapped())
    assert mapping_view(plan).edges
    for deep in (False, True):
        changed = plan.model_copy(update={"transfers": ()}, deep=deep)
        assert mapping_view(changed).plan == changed != plan
        assert all(edge.transfer is None for edge in mapping_view(changed).edges)
    assert any(edge.transfer for edge in mapping_view(plan).edges)


def test_a_view_changes_nothing_else_of_a_plan():
    plan, other = plan_of(wrapped()), plan_of(wrapped())
    mapping_view(plan)
    assert plan == other
    assert Plan.of(plan) == Plan.of(other)
    assert plan.to_bytes() == other.to_bytes()
    assert repr(plan) == repr(other)
    for same in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        assert same == other
        assert mapping_view(same).plan == same


def test_a_plan_and_its_view_go_at_once():
    plan = plan_of(wrapped())
    assert mapping_view(plan).edges
    gone = weakref.ref(plan)
    gc.disable()
    try:
        del plan
        assert gone() is None
    finally:
        gc.enable()
