"""From seeds to certified, explained points: the acceptance list of the project, and tasks on finite data."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from cases import thorough_but
from understudy.dynamics import FlowOptions
from understudy.theory import one_neuron


def erf_task(k, n, dim=None):
    return us.Population(us.Teacher.orthonormal(k, dim=dim or k + 1), width=n)


def labels(runs):
    return Counter(run.structure.label for run in runs)


def all_certified(runs):
    assert {run.certificate.kind for run in runs} == {"minimum"}
    assert max(run.certificate.gradient_norm for run in runs) <= 1e-12


@pytest.fixture(scope="module")
def default_case():
    return us.fit(erf_task(8, 4), seeds=20)


@pytest.mark.thorough
def test_eight_teachers_four_students(default_case):
    all_certified(default_case)
    assert labels(default_case) == {"3-copy-1-average": 20}
    best = one_neuron("erf", teachers=5).loss
    assert best == pytest.approx(0.072452645204, abs=1e-12)
    for run in default_case:
        assert run.loss == pytest.approx(best, abs=1e-12)
        assert run.certificate.loss == pytest.approx(run.loss, abs=1e-14)
        assert run.flow_time > 0
    groups = default_case.groups()
    assert [(g.count, g.kind, g.label) for g in groups] == [(20, "minimum", "3-copy-1-average")]


def test_runs_are_a_sequence_in_the_order_of_seeds(default_case):
    assert [run.seed for run in default_case] == list(range(20))
    assert len(default_case[3:5]) == 2
    assert default_case[3:5][1].seed == 4
    assert default_case[-1].seed == 19


def test_three_teachers_two_students():
    runs = us.fit(erf_task(3, 2), seeds=20)
    all_certified(runs)
    assert labels(runs) == {"1-copy-1-average": 20}
    assert max(abs(run.loss - one_neuron("erf", teachers=2).loss) for run in runs) < 1e-12


@pytest.mark.parametrize(("teachers", "least", "most"), thorough_but([(9, 20, 20), (11, 19, 20), (13, 1, 19)], []))
def test_eight_students_change_from_perturbed_copies_to_copies_and_an_average(teachers, least, most):
    runs = us.fit(erf_task(teachers, 8), seeds=20)
    all_certified(runs)
    found = labels(runs)
    assert least <= found["perturbed-8-copy"] <= most
    assert found["perturbed-8-copy"] + found["7-copy-1-average"] == 20


@pytest.mark.thorough
def test_a_hundred_thousand_dimensions_change_nothing():
    dim = 100_000
    task = erf_task(8, 4, dim)
    runs = us.fit(task, seeds=4, init_std=0.3 / np.sqrt(dim))
    all_certified(runs)
    assert labels(runs) == {"3-copy-1-average": 4}
    for run in runs:
        assert run.parameters.incoming.shape == (4, dim)
        assert run.certificate.index + run.certificate.zeros + run.certificate.positives == task.size
        assert float(jnp.linalg.norm(task.gradient(run.parameters))) < 1e-11


@pytest.mark.parametrize("activation", thorough_but(["softplus", "sigmoid", "tanh"], []))
def test_activations_without_closed_form(activation):
    runs = us.fit(us.Population(us.Teacher.orthonormal(8, dim=9, activation=activation), width=4), seeds=2)
    all_certified(runs)
    assert all(label for label in labels(runs))


def test_given_starts_are_followed(default_case):
    task = erf_task(8, 4)
    begin = us.TwoLayer(
        np.stack([r.parameters.incoming for r in default_case[:2]]) + 1e-3,
        np.stack([r.parameters.outgoing for r in default_case[:2]]),
    )
    runs = us.fit(task, seeds=[5, 9], init=begin)
    assert [run.seed for run in runs] == [5, 9]
    assert labels(runs) == {"3-copy-1-average": 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"init": "uniform"}, "received 'uniform'"),
        ({"init": np.zeros((3, 40))}, "2 seeds need as many starts"),
        ({"init_std": -1.0}, "standard deviation"),
        ({"seeds": 0}, "At least one seed"),
    ],
)
def test_bad_input_is_told(arguments, message):
    with pytest.raises(ValueError, match=message):
        us.fit(erf_task(8, 4), **{"seeds": 2, **arguments})


# -- finite data ---------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(7)
INPUTS = RNG.normal(size=(60, 2))


def fit_empirical(task, networks, **options):
    batch = np.stack([np.asarray(task.flatten(n)) for n in networks])
    return us.fit(task, range(len(batch)), init=batch, options=FlowOptions(**options))


@pytest.mark.thorough
def test_biases_and_several_outputs_converge():
    """More noisy data than parameters: isolated minima, reached to rounding."""
    targets = np.stack([np.sin(INPUTS[:, 0]), INPUTS[:, 1] ** 2], axis=1) + 0.3 * RNG.normal(size=(60, 2))
    networks = [us.Deep.glorot([2, 2, 2], seed=s, bias=0.5) for s in range(3)]
    task = us.Empirical(networks[0], INPUTS, targets, activation="tanh")
    for run in fit_empirical(task, networks, max_time=1e8, max_steps=3000):
        judged = run.certificate.kind
        assert judged in ("minimum", "diverging")
        assert judged == "diverging" or run.certificate.gradient_norm < 1e-12
        assert isinstance(run.parameters, us.Deep)
        assert run.structure.label == ""


@pytest.mark.thorough
def test_a_deep_net_with_a_log_cosh_cost():
    targets = np.sin(2 * INPUTS[:, :1]) + 0.3 * RNG.normal(size=(60, 1))
    networks = [us.Deep.glorot([2, 2, 2, 1], seed=s, bias=0.3) for s in range(2)]
    task = us.Empirical(
        networks[0], INPUTS, targets, activation="tanh", cost=lambda f, y: jnp.sum(jnp.log(jnp.cosh(f - y)))
    )
    for run in fit_empirical(task, networks, max_time=1e8, max_steps=3000):
        kind = run.certificate.kind
        assert kind in ("minimum", "diverging", "unconverged")
        assert kind != "minimum" or run.certificate.gradient_norm < 1e-12
        assert run.trajectory.ending != "polished" or kind == "minimum"


@pytest.mark.thorough
def test_softmax_cross_entropy_of_noisy_classes_is_strictly_convex_up_to_a_shift():
    """A linear softmax classifier of classes that overlap: one minimum, flat along the common shift of all scores."""
    classes = (INPUTS[:, 0] + RNG.normal(size=60) > 0).astype(int) + (INPUTS[:, 1] > 0.5)
    targets = np.eye(3)[classes]
    networks = [us.Deep.glorot([2, 3], seed=s) for s in range(2)]
    task = us.Empirical(
        networks[0], INPUTS, targets, activation="linear", cost=lambda f, y: -jnp.sum(y * jax.nn.log_softmax(f))
    )
    runs = fit_empirical(task, networks)
    assert [r.certificate.kind for r in runs] == ["minimum"] * 2
    assert [r.certificate.flat_dimension for r in runs] == [3, 3]
    assert runs[0].loss == pytest.approx(runs[1].loss, abs=1e-12)
    assert max(r.certificate.gradient_norm for r in runs) < 1e-12


def test_a_batch_of_networks_is_flattened_row_by_row():
    networks = [us.Deep.glorot([2, 3, 1], seed=s) for s in range(4)]
    task = us.Empirical(networks[0], INPUTS, INPUTS[:, :1], activation="tanh")
    batch = jax.tree.map(lambda *x: jnp.stack(x), *networks)
    flat = task.flatten(batch)
    assert flat.shape == (4, task.size)
    np.testing.assert_array_equal(flat[2], task.flatten(networks[2]))
    np.testing.assert_array_equal(task.unflatten(flat).weights[0][3], networks[3].weights[0])


def assert_same_bits(first, second):
    assert first.seeds == second.seeds
    for a, b in zip(first, second, strict=True):
        assert a.summary() == b.summary()
        assert a.structure == b.structure
        for x, y in (
            (a.parameters.incoming, b.parameters.incoming),
            (a.parameters.outgoing, b.parameters.outgoing),
            (a.trajectory.snapshots, b.trajectory.snapshots),
            (a.certificate.eigenvalues, b.certificate.eigenvalues),
        ):
            np.testing.assert_array_equal(x, y)


def test_results_do_not_depend_on_the_number_of_processes():
    """66 seeds of ten parameters are two shares; this process and a helper take one each."""
    progress = []
    task = erf_task(3, 2)
    assert_same_bits(us.fit(task, seeds=66, jobs=1), us.fit(task, seeds=66, jobs=2, watch=progress.append))
    assert progress[-1].total == 66
    assert max(p.finished for p in progress) >= 33


@pytest.mark.thorough
@pytest.mark.parametrize(("activation", "k", "n", "seeds"), [("softplus", 13, 12, 3), ("erf", 24, 20, 3)])
def test_results_do_not_depend_on_the_number_of_processes_at_other_sizes(activation, k, n, seeds):
    """Quadrature that adapts to the largest norm, and problems that are followed one by one."""
    task = us.Population(us.Teacher.orthonormal(k, dim=k + 1, activation=activation), width=n)
    options = FlowOptions(max_steps=40)
    one, three = (us.fit(task, seeds=seeds, options=options, jobs=jobs) for jobs in (1, 3))
    assert_same_bits(one, three)


def test_bad_numbers_of_processes_are_refused():
    with pytest.raises(ValueError, match="jobs is a number of processes, at least 1; received 0"):
        us.fit(erf_task(2, 1), seeds=1, jobs=0)
