"""Groups of aligned rows, and regularised networks with one neuron a ray."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.surgery import aligned_groups, condense
from understudy.tasks.regularised import Regularised


def test_groups_have_no_chains_and_know_signs_and_silence():
    angles = np.array([0.0, 0.08, 0.16, np.pi])
    rows = np.array([2.0, 1.0, 1.5, 1.0])[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert aligned_groups(rows, tolerance=0.1) == [(0, 1), (2,), (3,)]
    assert aligned_groups(rows, tolerance=0.1, signed=True) == [(0, 1, 3), (2,)]
    assert aligned_groups(rows, tolerance=0.1, strength=np.array([0.1, 1.0, 0.1, 1e-9]), silent=1e-6) == [(0, 1, 2)]
    assert aligned_groups(np.zeros((2, 2)), tolerance=0.1) == []


@pytest.mark.few(1)
@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_condensed_networks_compute_the_same(bias):
    rng = np.random.default_rng(1)
    task = Regularised(rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), (3, 4), penalty=0.02, bias=bias)
    weights = [np.array(w) for w in task.unflatten(task.starts([2])[0])]
    weights[0] = np.abs(weights[0])  # so that no neuron is silent on the data
    weights[1][2], weights[1][3] = 2 * weights[1][0], 3 * weights[1][1]
    small, vector = condense(task, tuple(weights), tolerance=1e-6)
    assert small.widths[2] <= 2 < task.widths[2]
    big = task.flatten(tuple(weights))
    np.testing.assert_allclose(small.representations(vector)[-1], task.representations(big)[-1], atol=1e-13)
    assert float(jnp.sum(vector**2)) <= float(jnp.sum(big**2)) + 1e-12
    smooth = Regularised([[1.0]], [[1.0]], (2,), penalty=0.1, activation="tanh")
    with pytest.raises(ValueError, match="tanh"):
        condense(smooth, smooth.starts([0])[0], tolerance=0.1)


@pytest.mark.parametrize("signed", [False, True])
def test_comparing_along_random_directions_first_changes_no_group(signed, monkeypatch):
    """Singles found along random directions are singles of the full comparison; copies, near copies and opposites
    stay."""
    from understudy import rays

    draw = np.random.default_rng(3)
    rows = draw.standard_normal((60, 7))
    rows = np.concatenate([rows, 3 * rows[:20], -rows[20:30], rows[30:40] + 1e-4 * draw.standard_normal((10, 7))])
    for tolerance in (1e-6, 1e-3, 0.3):
        found = aligned_groups(rows, tolerance=tolerance, signed=signed)
        with monkeypatch.context() as patch:
            patch.setattr(rays, "_with_neighbours", lambda unit, *_: list(range(len(unit))))
            assert found == aligned_groups(rows, tolerance=tolerance, signed=signed)
        assert sum(len(group) > 1 for group in found) >= 20
