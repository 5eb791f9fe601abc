"""Proofs with biases: enclosures against the task's own formulas, theorems, and files that were changed."""

import contextlib
import copy
import json
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

import understudy as us
from understudy.proofs import BadProofFileError, load, prove, verify
from understudy.proofs.balls import ball, precision, to_floats
from understudy.proofs.biased_enclosure import BiasedEnclosure
from understudy.proofs.checker.biased import biased_interaction, biased_own
from understudy.proofs.frame import frame_of, teacher_coordinates, teacher_means
from understudy.proofs.proof import digest

RNG = np.random.default_rng(0)
INCOMING, OUTGOING, BIAS = RNG.normal(size=(3, 3)), RNG.normal(size=3), RNG.normal(size=3)


def random_task(activation, **kwargs):
    return us.Population(us.Teacher(INCOMING, OUTGOING, activation, bias=BIAS, offset=0.3), 2, **kwargs)


@pytest.mark.few(6)
@pytest.mark.parametrize("activation", ["erf", "relu", "abs"])
@pytest.mark.parametrize(
    "kwargs", [{"bias": "trained"}, {"bias": [0.3, -0.2]}, {"bias": "trained", "outgoing": "fixed"}, {"bias": "none"}],
    ids=["trained", "fixed", "fixed outgoing", "teacher only"],
)  # fmt: skip
def test_enclosures_contain_the_numbers_of_the_task(activation, kwargs):
    task = random_task(activation, **kwargs)
    x = np.random.default_rng(1).normal(size=task.size)
    form = task.exact_form()
    with precision(192):
        frame, _ = frame_of(form, np.asarray(task.unflatten(jnp.asarray(x)).incoming))
        means = teacher_means(form.incoming, form.teacher_bias, form.mean)
        found = BiasedEnclosure(form, teacher_coordinates(form, frame), means).evaluate([ball(v) for v in x])
    loss, gradient, hessian = task.evaluate(jnp.asarray(x))
    assert float(found.loss.rad()) < 1e-50
    assert float(found.loss) == pytest.approx(float(loss), abs=1e-13)
    np.testing.assert_allclose([float(g) for g in found.gradient], gradient, atol=1e-13)
    np.testing.assert_allclose(to_floats(found.hessian), hessian, atol=1e-13)


ONE = {
    "erf": [0.37401722211965066, 0.37401722211965066, 0.0, 0.0, 2.009177922930016, 0.0],
    "relu": [0.882675600506972, 0.35827201945556264, 0.0, 0.547344564560801, 1.0961487717983491, 0.11209724592853837],
}
"""(w, c, a, c_0) of the best student for two teachers with biases ±½."""


def two_teachers(activation):
    return us.Teacher(np.eye(2, 3), np.ones(2), activation, bias=np.array([0.5, -0.5]))


def one_student(activation):
    return us.Population(two_teachers(activation), 1, bias="trained"), np.array(ONE[activation])


def copies():
    """Three erf students at three teachers with biases and an offset, for inputs with a mean."""
    bias, mean = np.array([0.5, -0.5, 0.25]), np.array([0.125, -0.5, 0.0, 0.25])
    teacher = us.Teacher(np.eye(3, 4), np.ones(3), "erf", bias=bias, offset=0.75)
    task = us.Population(teacher, 3, bias="trained", mean=mean)
    return task, us.TwoLayer(np.eye(3, 4), np.ones(3), bias, np.array(0.75))


def shared(share):
    """Two erf students, one turned around, that share the outgoing weight of the best one."""
    w, c, a, offset = np.array(ONE["erf"][:3]), ONE["erf"][3], ONE["erf"][4], ONE["erf"][5]
    point = us.TwoLayer(
        np.stack([w, -w]), np.array([share * a, (share - 1) * a]), np.array([c, -c]), np.array(offset)
    )  # fmt: skip
    return us.Population(two_teachers("erf"), 2, bias="trained"), point


@cache
def proved(name):
    return prove(*{"erf": lambda: one_student("erf"), "relu": lambda: one_student("relu"), "copies": copies}[name]())


@pytest.mark.parametrize(
    ("name", "zeros", "loss"), [("erf", 0, 0.036332820688842), ("relu", 1, 0.08572440798381), ("copies", 0, 0.0)]
)
def test_strict_minima_with_biases_are_proved_and_checked(name, zeros, loss, tmp_path):
    proof = proved(name)
    assert (proof.kind, proof.zeros) == ("strict minimum", zeros)
    assert proof.loss == pytest.approx(loss, abs=1e-14)
    assert "biases and the offset trained" in proof.statement
    path = proof.save(tmp_path / "proof.json")
    found = verify(path)
    assert found.accepted, found.reason
    assert load(path).content() == proof.content()


def merged_relu(share):
    """Two ReLU students of different lengths, with biases, that share the outgoing weight of the best one."""
    w, c, a, offset = np.array(ONE["relu"][:3]), ONE["relu"][3], ONE["relu"][4], ONE["relu"][5]
    point = us.TwoLayer(
        np.stack([w, 2 * w]), np.array([share * a, (1 - share) * a / 2]), np.array([c, 2 * c]), np.array(offset)
    )  # fmt: skip
    return us.Population(two_teachers("relu"), 2, bias="trained"), point


@pytest.mark.parametrize("case", [shared(0.3), shared(1.7), merged_relu(0.3)], ids=["0.3", "1.7", "relu"])
def test_students_that_share_a_neuron_give_the_reason(case):
    """Split erf neurons are degenerate across the teachers, and parallel ReLU neurons with biases have no enclosure."""
    assert any(word in prove(*case).reason for word in ("degenerate", "parallel"))


CHANGES = {
    "a teacher's bias": lambda c: c["problem"]["biases"]["teacher"].__setitem__(0, 0.5000000000000001),
    "no teacher's biases": lambda c: c["problem"]["biases"].update(teacher=None),
    "a bias too many": lambda c: c["problem"]["biases"]["teacher"].append(0.0),
    "the teacher's offset": lambda c: c["problem"]["biases"].update(teacher_offset=[1e-15]),
    "a mean": lambda c: c["problem"]["biases"].update(mean=[1e-15, 0.0, 0.0]),
    "biases fixed": lambda c: c["problem"]["biases"].update(trained=False, fixed=[0.0]),
    "biases trained and fixed": lambda c: c["problem"]["biases"].update(fixed=[0.0]),
    "biases not trained": lambda c: c["problem"]["biases"].update(trained=False),
    "no biases": lambda c: c["problem"].pop("biases"),
    "the center's bias": lambda c: c["center"][0].__setitem__(3, "0.001"),
    "the center's offset": lambda c: c["center"][-1].__setitem__(0, "0.001"),
    "no offset": lambda c: c["center"].pop(),
    "activation": lambda c: c["problem"].update(activation="abs", teacher_activation="abs"),
    "an activation without formula": lambda c: c["problem"].update(activation="tanh", teacher_activation="tanh"),
    "inertia": lambda c: c["inertia"].update(negative=1, positive=c["inertia"]["positive"] - 1),
    "loss": lambda c: c["loss"].update(lower=c["loss"]["upper"]),
}


@pytest.mark.parametrize("name", ["erf", "relu"])
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_changed_files_are_refused(change, name, tmp_path):
    path = proved(name).save(tmp_path / "proof.json")
    content = json.loads(path.read_text())
    content.pop("sha256")
    changed = copy.deepcopy(content)
    CHANGES[change](changed)
    assert changed != content
    path.write_text(json.dumps({**changed, "sha256": ""}))
    with contextlib.suppress(KeyError, BadProofFileError):  # a forger who keeps words and numbers consistent
        changed["statement"] = load(path).statement
    path.write_text(json.dumps({**changed, "sha256": digest(changed)}))
    found = verify(path)
    assert not found.accepted
    assert found.reason


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (us.Population(two_teachers("erf"), 1, mean=[0.1, 0.2, 0.3]), "where biases are trained"),
        (us.Population(two_teachers("tanh"), 1, bias="trained"), "no enclosure with biases for tanh"),
        (us.Population(two_teachers("relu"), 1, bias="trained"), "parallel"),
    ],
    ids=["mean", "activation", "parallel"],
)
def test_refusals_give_the_reason(task, reason):
    teacher = np.array([1.0, 0.0, 0.0, 0.5, 1.0, 0.0])  # at one of the teachers
    assert reason in prove(task, teacher[: task.size]).reason


@pytest.mark.parametrize("activation", ["erf", "relu", "abs", "linear"])
def test_the_checkers_formulas_agree_with_the_tasks(activation):
    """One student for one teacher: the same loss from the checker's interactions."""
    from flint import arb, arb_mat, ctx

    rng = np.random.default_rng(2)
    (w, v), (c, b), (a, o) = rng.normal(size=(2, 3)), rng.normal(size=2), rng.normal(size=2)
    task = us.Population(us.Teacher(v[None], [o], activation, bias=[b]), 1, bias=[c])
    with ctx.workprec(192):
        p, q = (arb_mat(3, 1, [arb(float(x)) for x in row]) for row in (w, v))
        m1, m2 = arb(float(c)), arb(float(b))
        both = biased_interaction(activation, activation, p, m1, q, m2).value
        own, other = biased_own(activation, p, m1).value, biased_own(activation, q, m2).value
    loss = float(task.loss(us.TwoLayer(w[None], [a], np.array([c]))))
    assert a * a * float(own) - 2 * a * o * float(both) + o * o * float(other) == pytest.approx(loss, abs=1e-13)
