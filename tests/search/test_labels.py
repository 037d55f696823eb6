"""Labels as columns of arrays."""

import numpy as np
import pytest

from parapipe.search.stages.labels import Labels, least_of_each


def drawn(seed: int, count: int) -> Labels:
    draw = np.random.default_rng(seed)
    return Labels(*(draw.integers(0, 8, count) for _ in Labels._fields))


@pytest.mark.parametrize("seed", range(5))
def test_the_least_of_each_set_of_processors_is_that_of_its_labels(seed):
    labels = drawn(seed, 40)
    found = least_of_each(labels)
    assert found.used.tolist() == sorted(set(labels.used.tolist()))
    for column in ("latency_ns", "period_ns", "energy_nj"):
        for used, least in zip(found.used, getattr(found, column), strict=True):
            assert least == getattr(labels, column)[labels.used == used].min()


def test_of_no_labels_there_is_no_least():
    assert not len(least_of_each(drawn(0, 0)).used)
