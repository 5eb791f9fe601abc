"""Explorations against cases in which every critical point is known."""

import numpy as np
import pytest

import understudy as us
from understudy.papers.tight_balance.torus import search_torus
from understudy.theory.one_neuron import critical_points


@pytest.fixture(scope="module")
def toy():
    return us.explore(us.Sphere(np.eye(2), width=2, activation="hermite:6"), starts=192)


@pytest.mark.few(1)
@pytest.mark.parametrize("teachers", [2, 1, 3, 4])
def test_one_neuron_has_one_minimum_up_to_sign_and_the_set_where_it_is_off(teachers):
    """Theorem 5.1 of Simsek et al.: equal correlations. Where a = 0, Σ_j G(w, v_j) = 0 is a hypersurface of saddles."""
    task = us.Population(us.Teacher.orthonormal(teachers, dim=teachers + 1), width=1)
    known = critical_points("erf", teachers)
    graph = us.explore(task, starts=64)
    isolated = [p for p in graph.points if p.isolated]
    assert [p.kind for p in isolated] == ["minimum"]
    assert isolated[0].orbit == len(known) == 2
    assert isolated[0].loss == pytest.approx(known[0].loss, abs=1e-13)
    np.testing.assert_allclose(np.abs(isolated[0].parameters.outgoing), abs(known[0].outgoing), rtol=1e-9)
    (family,) = [p for p in graph.points if not p.isolated]
    assert (family.kind, family.index, family.family) == ("strict saddle", 1, teachers)  # dim - 1
    assert family.loss == pytest.approx(float(task.constant), abs=1e-12)
    assert [(c.ends, c.certified) for c in graph.connections] == [((0, 0), True)]
    assert graph.completeness.balanced is None
    assert "trained outgoing" in graph.completeness.reason


def test_the_toy_on_the_sphere_is_complete(toy):
    """Against the exhaustive search on the torus of two angles, which is proved complete."""
    search = search_torus(toy.task)
    assert search.complete
    known: dict = {}
    for point in search.points:
        key = (round(point.loss, 9), int(np.sum(np.array(point.eigenvalues) < 0)))
        known[key] = known.get(key, 0) + 1
    # The torus has ±w as one point: each of its points is four on the two circles.
    assert {(round(p.loss, 9) + 0.0, p.index): p.orbit for p in toy.points} == {k: 4 * v for k, v in known.items()}
    assert toy.completeness.balanced is True
    assert (toy.completeness.euler, toy.completeness.expected) == (0, 0)


def test_the_toy_joins_its_minima(toy):
    ways = {toy.points[c.saddle].label: sorted(toy.points[e].label for e in c.ends) for c in toy.connections}
    assert ways == {"1-leaning-pair": ["1-tight-pair", "2-copy"], "1-same-copy": ["1-tight-pair", "1-tight-pair"]}
    assert all(c.certified for c in toy.connections)
    (root,) = toy.tree()
    assert root.minima == (0, 1)
    assert root.height == toy.barrier(0, 1) == pytest.approx(0.875, abs=1e-12)


def test_a_missing_point_spoils_the_morse_count(toy):
    from understudy.landscape.graph import euler_count

    assert euler_count(toy.points)[0] == 0
    for gone in range(len(toy.points)):
        assert euler_count([p for p in toy.points if p.number != gone])[0] != 0


def test_a_graph_prints_saves_and_opens(toy, tmp_path):
    text = repr(toy)
    assert "6 critical points" in text
    assert "as it must be" in text
    assert toy._repr_html_().count("<tr>") == 7
    path = toy.save(tmp_path / "toy")
    again = us.open(path, toy.task)
    assert repr(again) == text
    assert again.to_dict() == toy.to_dict()
    np.testing.assert_array_equal(again.points[2].parameters.incoming, toy.points[2].parameters.incoming)
    np.testing.assert_array_equal(again.points[2].certificate.eigenvalues, toy.points[2].certificate.eigenvalues)
    assert us.open(path).points[1].parameters.shape == (4,)


def test_searches_are_the_same_whatever_the_others_are():
    from understudy.landscape.search import plan

    task = us.Population(us.Teacher.orthonormal(2), width=1)
    many, few = plan(task, 5, range(8), 0.5), plan(task, 5, [6], 0.5)
    np.testing.assert_array_equal(many.starts[6], few.starts[0])
    assert (many.descents[6], many.targets[6]) == (few.descents[0], few.targets[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"starts": 0}, "starts is a positive whole number; received 0"),
        ({"seed": -1}, "seed is a whole number"),
        ({"init_std": float("nan")}, "init_std is a positive number"),
    ],
)
def test_bad_arguments_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        us.explore(us.Population(us.Teacher.orthonormal(2), width=1), **options)


def test_kinked_losses_are_refused():
    inputs = np.random.default_rng(0).normal(size=(20, 2))
    network = us.TwoLayer(np.eye(2), np.ones(2))
    with pytest.raises(ValueError, match="smooth loss"):
        us.explore(us.Empirical(network, inputs, inputs[:, 0], activation="relu"))


def test_lattices_that_follow_the_norm_are_refused_before_they_fill_the_memory():
    from understudy.landscape.explore import check
    from understudy.tasks import on_grid

    teacher = us.Teacher.angular(np.pi * np.array([0.0, 0.5]), "softplus")
    with pytest.raises(ValueError, match=r"about \d+ GB. Give a fixed lattice"):
        us.explore(on_grid(teacher, 2))
    fixed = on_grid(teacher, 2, spacing=0.5)
    check(fixed, 4, 0, 0.5)
    assert fixed.nodes_at(1e6) == pytest.approx(len(fixed.inputs), rel=0.05)
    follows = on_grid(teacher, 2)
    steep = us.TwoLayer(np.array([[3.0, 0.0], [0.0, 1.0]]), np.ones(2))
    assert follows.nodes_at(3.0) == pytest.approx(len(follows.prepared(follows.flatten(steep)).inputs), rel=0.05)
    assert not follows.closed_form


def test_searches_between_minima_start_on_the_parameter_space(toy):
    from understudy.landscape.between import between

    minima = [np.asarray(toy.task.flatten(p.parameters)) for p in toy.minima]
    given = between(toy.task, minima, 5, seed=0)
    np.testing.assert_allclose(np.linalg.norm(given.starts.reshape(5, 2, 2), axis=-1), 1.0, atol=1e-12)
    again = between(toy.task, minima, 3, seed=0)
    np.testing.assert_array_equal(again.starts, given.starts[:3])
    assert between(toy.task, [], 5, seed=0) is None
    assert between(us.Loss(lambda x: x[0] ** 2, 1), [np.zeros(1)], 5, seed=0) is None


def test_both_pushes_must_agree_on_a_point_or_on_infinity():
    from types import SimpleNamespace

    from understudy.landscape.explore import _agree

    def runs(*kinds):
        return [SimpleNamespace(certificate=SimpleNamespace(kind=kind)) for kind in kinds]

    assert _agree([3, 3], runs("minimum", "minimum"))
    assert not _agree([3, 4], runs("minimum", "minimum"))
    assert _agree([None, None], runs("diverging", "diverging"))
    assert not _agree([None, None], runs("diverging", "unconverged"))
    assert not _agree([3, None], runs("minimum", "diverging"))


def test_a_family_has_its_minima_and_its_saddles_in_two_classes():
    """L = y²(x - 1) + y⁴/4 has the critical line y = 0: minima for x > 1, saddles for x < 1."""
    from understudy.landscape.classes import Classes

    catalogue = Classes(us.Loss(lambda p: p[1] ** 2 * (p[0] - 1.0) + p[1] ** 4 / 4 + 0 * p[0], 2))
    for x in (3.0, 2.0, 0.0, -1.0):
        assert catalogue.add(np.array([x, 0.0])) is not None
    assert sorted((c.certificate.kind, c.family, len(c.pieces)) for c in catalogue.classes) == [
        ("minimum", 1, 0),
        ("strict saddle", 1, 2),
    ]


def test_flows_add_minima_without_any_random_search():
    from understudy.landscape.explore import assemble
    from understudy.landscape.further import Further

    task = us.Population(us.Teacher.orthonormal(4), width=2)
    (only,) = assemble(task, [], Further(flows=4), descents=False).points
    assert (only.label, only.kind, only.found, only.reached) == ("1-copy-1-average", "minimum", 0, 4)
    assert not assemble(task, [], Further(flows=0), descents=False).points


def test_symmetric_starts_keep_a_symmetry_and_stay_on_the_parameter_space():
    from understudy.landscape.symmetric import symmetric_starts

    task = us.Sphere(np.eye(3), width=3, activation="hermite:6")
    symmetries = task.symmetries()
    given = symmetric_starts(task, 12, seed=0, init_std=0.5)
    np.testing.assert_allclose(np.linalg.norm(given.starts.reshape(12, 3, 3), axis=-1), 1.0, atol=1e-12)
    generic = symmetries.orbit(np.asarray(task.starts([0]))[0])
    assert sum(symmetries.orbit(start) < generic for start in given.starts) >= 6
    np.testing.assert_array_equal(symmetric_starts(task, 4, 0, 0.5).starts, given.starts[:4])
    assert symmetric_starts(us.Loss(lambda x: x[0] ** 2, 1), 4, 0, 0.5) is None


@pytest.mark.thorough
def test_sixty_parameters_have_a_graph_with_the_saddle_between_copies_and_average():
    """Six students of eight teachers in dimension 9, erf: two minima at least, joined by a saddle of index 1."""
    task = us.Population(us.Teacher.orthonormal(8, dim=9), width=6)
    graph = us.explore(task, starts=8, symmetric=0, bridges=48)
    assert task.size == 60
    assert {"perturbed-6-copy", "5-copy-1-average"} <= {p.label for p in graph.minima}
    joined = [{graph.points[e].label for e in c.ends if e is not None} for c in graph.connections if c.certified]
    assert {"perturbed-6-copy", "5-copy-1-average"} in joined


@pytest.mark.thorough
def test_a_neuron_that_is_off_is_one_class_and_the_origin_has_one_copy():
    """One teacher on a line: a ReLU student on the other half with a = 0 is a minimum at every length of w."""
    task = us.Population(us.Teacher.orthonormal(1, activation="relu"), width=1)
    off = us.explore(task, starts=32)
    assert [(p.label, p.kind, p.loss) for p in off.points] == [
        ("1-copy", "minimum", pytest.approx(0.0, abs=1e-14)), ("1-dead", "minimum", pytest.approx(0.5, abs=1e-14)),
    ]  # fmt: skip
    smooth = us.explore(us.Population(us.Teacher.orthonormal(1), width=1), starts=32)
    assert [(p.label, p.index, p.orbit) for p in smooth.points] == [("1-copy", 0, 2), ("1-dead", 1, 1)]


def test_neurons_that_are_off_have_the_length_of_teachers():
    task = us.Population(us.Teacher.orthonormal(2, activation="relu"), width=2)
    vector = task.flatten(us.TwoLayer([[3.0, 4.0], [2.0, 0.0]], [1e-16, 0.5]))
    network = task.unflatten(task.balanced(vector))
    np.testing.assert_allclose(np.linalg.norm(network.incoming, axis=1), [1.0, 1.0], rtol=1e-12)
    np.testing.assert_allclose(network.outgoing, [5e-16, 1.0], rtol=1e-12)
    assert float(task.loss(network)) == pytest.approx(float(task.loss(task.unflatten(vector))), abs=1e-15)
