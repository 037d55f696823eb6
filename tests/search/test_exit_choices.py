"""Of very many choices for the exits of a unit, those with the fewest changes are looked at."""

from itertools import product
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from parapipe.problems.exit_choices import choices_of, count_changes

SETS = st.sets(st.integers(0, 5), min_size=1).map(lambda some: tuple(sorted(some)))


@given(support=st.lists(SETS, min_size=1, max_size=4))
def test_without_a_limit_there_are_all_choices_in_order(support):
    assert choices_of(support, inf) == list(product(*support))


@given(support=st.lists(SETS, min_size=1, max_size=4), most=st.integers(1, 300))
def test_choices_with_the_fewest_changes_stay_and_as_many_as_the_limit_allows(support, most):
    every, found = list(product(*support)), choices_of(support, most)
    assert found == sorted(set(found))
    assert set(found) <= set(every)
    groups = {able: [i for i, each in enumerate(support) if each == able] for able in support}

    def changes(choice):
        return max(count_changes([choice[i] for i in places]) for places in groups.values())

    few = max(map(changes, found))
    assert found == [each for each in every if changes(each) <= few]
    if few:
        assert len(found) <= most
    if len(found) < len(every):
        assert sum(changes(each) <= few + 1 for each in every) > most
    # one processor for all exits of equal support is always a choice
    for chosen in product(*groups):
        assert tuple(dict(zip(groups, chosen, strict=True))[able] for able in support) in found


def test_four_exits_on_six_processors_have_all_choices_and_five_have_not():
    six = tuple(range(6))
    assert len(choices_of([six] * 4, 1296)) == 1296
    assert len(choices_of([six] * 5, 1296)) == 6 * (1 + 4 * 5 + 6 * 25)
