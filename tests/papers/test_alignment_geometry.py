"""Claims about boundaries in the plane and about segments between students, on networks built by hand."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.networks import Deep
from understudy.papers.alignment import connected, plane

RNG = np.random.default_rng(3)
X = jnp.asarray(1.5 * RNG.normal(size=(400, 2)))
TEACHER = Deep((jnp.asarray([[1.0, 0.3], [-0.4, 1.0]]), jnp.asarray([[1.0, 0.5], [0.2, -1.0]])), (jnp.asarray([0.2, -0.1]), jnp.zeros(2)))  # fmt: skip


def student(fan_out, facing=1.0):
    """Both teachers' nodes, a node alone, and two nodes on one boundary that face one way or opposite ways."""
    w = np.array([[1.0, 0.3], [-0.4, 1.0], [0.7, -0.9], [0.5, 0.8], [facing * 1.0, facing * 1.6]])
    b = np.array([0.2, -0.1, 0.05, 0.1, facing * 0.2])
    out = np.concatenate([np.asarray(TEACHER.weights[1]), np.asarray(fan_out, float)], axis=1)
    return Deep((jnp.asarray(w), jnp.asarray(out)), (jnp.asarray(b), jnp.zeros(2)))


def test_a_group_on_one_boundary_sums_to_zero_and_a_node_alone_does_not():
    found = plane._seed(student([[0.0, 2.0, -1.0], [0.0, 0.6, -0.3]]), TEACHER, X)
    assert found["cosine"] == pytest.approx(1.0)
    assert max(found["missing"]) < 1e-12
    assert found["alone"] == [0.0]
    ((total, largest),) = found["shared"]
    assert total < 1e-12 < 0.1 < largest
    lonely = plane._seed(student([[0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]), TEACHER, X)
    assert lonely["alone"][0] > 0.1


def test_nodes_that_face_away_count_with_their_boundary():
    """σ(u) and σ(-u) bend the function alike, so their fan-outs of opposite sign cancel."""
    ((total, largest),) = plane._seed(student([[0.0, 2.0, -1.0], [0.0, 0.6, -0.3]], facing=-1.0), TEACHER, X)["shared"]
    assert total < 1e-12 < 0.1 < largest


def test_segments_between_exact_students_keep_the_loss_at_zero():
    """Students that split the teachers' nodes in different places are joined exactly; the straight line is not."""
    width, ends = 6, []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        w, b = rng.normal(size=(width, 2)), rng.normal(size=width)
        out = np.zeros((2, width))
        for node, places in enumerate(rng.permutation(width)[:4].reshape(2, 2)):
            for place, share in zip(places, (0.3, 0.7), strict=True):
                w[place], b[place] = np.asarray(TEACHER.weights[0])[node], np.asarray(TEACHER.biases[0])[node]
                out[:, place] = share * np.asarray(TEACHER.weights[1])[:, node]
        ends.append(Deep((jnp.asarray(w), jnp.asarray(out)), (jnp.asarray(b), jnp.zeros(2))))
    y = TEACHER(X, "relu")
    path = connected.corners(*ends, TEACHER, X, y)
    assert max(connected._losses(a, c, X, y).max() for a, c in itertools.pairwise(path)) < 1e-20
    assert connected._losses(*ends, X, y).max() > 1e-3
    narrow = Deep((ends[0].weights[0][:3], ends[0].weights[1][:, :3]), (ends[0].biases[0][:3], jnp.zeros(2)))
    with pytest.raises(ValueError, match="three times as many nodes"):
        connected.corners(narrow, narrow, TEACHER, X, y)
