"""The regularised loss against a plain loop, its derivatives, reduction, widening, and bad input."""

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.tasks.regularised import Regularised

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))


def plain_loss(task, vector, x, y, cost):
    """The loss one sample at a time, with NumPy."""
    total = 0.0
    weights = [np.asarray(w) for w in task.unflatten(vector)]
    bias = [task.bias] if task.bias else []
    for row, target in zip(x, y, strict=True):
        active = np.concatenate([row, bias])
        for i, w in enumerate(weights):
            z = w @ active
            active = np.concatenate([np.maximum(z, 0), bias]) if i < len(weights) - 1 else z
        if cost == "squared":
            total += np.sum((active - target) ** 2)
        else:
            total += np.log(np.sum(np.exp(active))) - active @ target
    return total / len(x) + task.penalty * float(np.sum(np.asarray(vector) ** 2))


@pytest.mark.few(3)
@pytest.mark.parametrize("cost", ["squared", "cross-entropy"])
@pytest.mark.parametrize("bias", [0.0, 0.7])
@pytest.mark.parametrize("hidden", [(4,), (3, 4)])
def test_loss_is_the_plain_one_and_the_network_the_same_function(cost, bias, hidden):
    targets = Y if cost == "squared" else np.eye(2)[[0, 1, 1, 0, 1]]
    task = Regularised(X, targets, hidden, penalty=0.1, bias=bias, cost=cost)
    vector = task.starts([3])[0]
    assert float(task.loss(vector)) == pytest.approx(plain_loss(task, vector, X, targets, cost), rel=1e-14)
    outputs = task.network(vector)(jnp.asarray(X), "relu")
    np.testing.assert_allclose(outputs.T, task.representations(vector)[-1], atol=1e-14)


@pytest.mark.thorough
def test_derivatives_by_differences():
    task = Regularised(X, Y, (3, 3), penalty=0.1, activation="tanh")
    vector = np.asarray(task.starts([1])[0])
    direction = np.random.default_rng(2).normal(size=task.size)
    h = 1e-5  # differences of order h² ≈ 1e-10, rounding eps/h ≈ 2e-11
    slope = (float(task.loss(vector + h * direction)) - float(task.loss(vector - h * direction))) / (2 * h)
    assert float(task.gradient(vector) @ direction) == pytest.approx(slope, abs=1e-8)
    bend = (task.gradient(vector + h * direction) - task.gradient(vector - h * direction)) / (2 * h)
    np.testing.assert_allclose(task.hessian(vector) @ direction, bend, atol=1e-7)


def test_gates_offsets_and_smoothing():
    task = Regularised(X, Y, (3, 3), penalty=0.1)
    vector = task.starts([1])[0]
    hidden = task.hidden_values(vector)
    zero = jnp.zeros_like(hidden)
    loss = float(task.loss(vector))
    assert float(task.gated_value(vector, jnp.sign(hidden), zero)) == pytest.approx(loss, rel=1e-14)
    np.testing.assert_allclose(task.gated_hidden(vector, jnp.sign(hidden)), hidden, atol=1e-14)
    assert float(task.smoothed_value(vector, 1e-9)) == pytest.approx(loss, rel=1e-12)
    assert abs(float(task.smoothed_value(vector, 1e-1)) - loss) > 1e-5


def test_reduction_keeps_losses_and_wide_inputs_lift():
    x = np.random.default_rng(1).normal(size=(4, 9))
    full = Regularised(x, Y[:4], (3,), penalty=0.2)
    task, lift = full.reduced()
    assert task.entry.shape == (4, 4)
    vector = task.starts([0])[0]
    assert float(full.loss(lift(vector))) == pytest.approx(float(task.loss(vector)), rel=1e-13)
    with pytest.raises(ValueError, match="lift its parameters"):
        task.network(vector)


def test_widening_keeps_function_and_norm():
    task = Regularised(X, Y, (2, 3), penalty=0.2)
    vector = task.starts([0])[0]
    wide, bigger = task.widened(vector, (4, 5))
    assert float(wide.loss(bigger)) == pytest.approx(float(task.loss(vector)), rel=1e-14)
    parameters, hidden = wide.dead(bigger)
    assert hidden.sum() == (2 + 2) * 5
    assert parameters.sum() == wide.size - task.size
    with pytest.raises(ValueError, match="can only grow"):
        task.widened(vector, (1, 3))


def test_a_dead_neuron_on_its_kink_is_a_saddle_where_the_loss_falls_beside_it():
    """With w = v = t the mean squared error falls like -t² and the penalty grows like 0.2 t²."""
    task = Regularised([[1.0], [-1.0]], [[1.0], [1.0]], (1,), penalty=0.1, bias=0.0)
    assert float(task.loss(jnp.full(2, 0.1))) < float(task.loss(jnp.zeros(2)))
    assert us.certify(task, jnp.zeros(2)).kind == "strict saddle"
    firm = Regularised([[1.0], [-1.0]], [[1.0], [1.0]], (1,), penalty=2.0, bias=0.0)
    assert us.certify(firm, jnp.zeros(2)).kind == "minimum"


def test_certificates_look_no_further_than_the_next_kink():
    """Prop. 19 of attraction-repulsion: an arc of minima; near its end lower points lie beyond the kink."""
    task = Regularised([[1.0], [-1.0]], [[1.0], [-1.0]], (2,), penalty=0.8, bias=0.0, weights=[1.0, 1.0])
    a = np.sqrt(0.2) * np.array([np.cos(1.5), np.sin(1.5)])
    assert us.certify(task, (a[:, None], a[None, :])).kind == "minimum"


@pytest.mark.parametrize("angle", [0.0, np.pi / 2])
def test_the_ends_of_an_arc_of_minima_are_saddles(angle):
    """Prop. 19: the second neuron is zero there, and the loss falls by (2 - 2λ) ε² as it grows across the kink."""
    task = Regularised([[1.0], [-1.0]], [[1.0], [-1.0]], (2,), penalty=0.8, bias=0.0, weights=[1.0, 1.0])
    a = np.sqrt(0.2) * np.array([np.cos(angle), np.sin(angle)])
    found = us.certify(task, (a[:, None], a[None, :]))
    assert found.kind == "strict saddle"
    step = task.flatten((a[:, None], a[None, :])) + 1e-3 * found.directions[0]
    assert float(task.loss(step)) - found.loss == pytest.approx(-(2 - 2 * 0.8) * 1e-6 / 2, rel=1e-3)


@pytest.mark.parametrize(
    "labels", [[], [0, 1, 10**9], [0.5, 1, 1], ["a", "b", "a"], [np.nan, 0, 1], [-1, 0, 1]], ids=str
)
def test_class_labels_that_are_not_numbers_of_classes_are_refused(labels):
    """Identifiers as large as 10⁹ are refused too, before any memory is asked for."""
    with pytest.raises(ValueError, match="Class labels are whole numbers 0, 1"):
        Regularised(np.zeros((len(labels), 2)), labels, (2,), penalty=0.1, cost="cross-entropy")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"penalty": 0.0}, "penalty λ must be positive; received 0.0"),
        ({"bias": -1.0}, "bias β must be zero or positive"),
        ({"hidden": ()}, "At least one hidden layer"),
        ({"cost": "hinge"}, "cost is 'squared', 'cross-entropy', 'logistic' or a function; received 'hinge'"),
        ({"targets": Y[:3]}, "received shapes"),
        ({"weights": [1.0]}, "5 samples need 5 weights"),
    ],
)
def test_bad_input(changes, message):
    options = {"inputs": X, "targets": Y, "hidden": (2,), "penalty": 0.1} | changes
    with pytest.raises(ValueError, match=message):
        Regularised(options.pop("inputs"), options.pop("targets"), options.pop("hidden"), **options)
    with pytest.raises(ValueError, match="shapes"):
        Regularised(X, Y, (2,), penalty=0.1).flatten((np.zeros((2, 2)), np.zeros((2, 3))))
