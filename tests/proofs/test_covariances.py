"""Proofs for inputs with a covariance: theorems in the coordinates w Σ^½, and files that were changed."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import understudy as us
from understudy.proofs import prove, verify
from understudy.proofs.balls import ball, precision
from understudy.proofs.biased_enclosure import BiasedEnclosure
from understudy.proofs.enclosure import Enclosure
from understudy.proofs.frame import frame_of, teacher_coordinates, teacher_means
from understudy.proofs.proof import digest

TILTED = np.array([[1.0, 0.3, 0.0], [0.3, 2.0, 0.1], [0.0, 0.1, 0.5]])


def tilted(width=1, **kwargs):
    teacher = us.Teacher(np.eye(2, 3), [1.0, 0.7], "erf", bias=[0.4, -0.2] if kwargs else None)
    return us.Population(teacher, width, covariance=TILTED, **kwargs)


def critical(task):
    """The minimum, by BFGS and Newton's method."""
    biases = {"bias": [0.1], "offset": 0.0} if task.trains_bias else {}
    start = np.asarray(task.flatten(us.TwoLayer([[0.6, 0.5, 0.02]], [1.4], **biases)))
    x = minimize(lambda v: float(task.loss(v)), start, jac=lambda v: np.asarray(task.gradient(v)), method="BFGS").x
    for _ in range(4):
        x = x - np.linalg.solve(np.asarray(task.hessian(x)), np.asarray(task.gradient(x)))
    return x


@pytest.mark.parametrize("kwargs", [{}, {"bias": "trained"}, {"bias": "trained", "mean": [0.1, -0.2, 0.3]}])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_loss_in_other_coordinates_is_that_of_the_task(kwargs, seed):
    task = tilted(**kwargs)
    x = np.random.default_rng(seed).normal(size=task.size)
    form, incoming, others = task.exact_form(), x[:3], x[3:].copy()
    if form.mean is not None:
        others[0] += incoming @ form.mean
    with precision(192):
        frame, inside = frame_of(form, incoming[None])
        teachers = teacher_coordinates(form, frame)
        means = teacher_means(form.incoming, form.teacher_bias, form.mean)
        enclosure = BiasedEnclosure(form, teachers, means) if form.biased else Enclosure(form, teachers)
        found = enclosure.evaluate([ball(float(v)) for v in [*inside.ravel(), *others]])
    assert float(found.loss) == pytest.approx(float(task.loss(jnp.asarray(x))), abs=1e-12)


@pytest.mark.parametrize("kwargs", [{}, {"bias": "trained", "mean": [0.1, -0.2, 0.3]}])
def test_a_critical_point_under_a_covariance_is_proved_and_checked(kwargs, tmp_path):
    task = tilted(**kwargs)
    point = critical(task)
    seen, proof = us.certify(task, point), prove(task, point)
    assert proof.holds, proof.reason
    assert (proof.index, proof.zeros, proof.positives) == (seen.index, seen.zeros, seen.positives)
    assert float(proof.lower) <= seen.loss + 1e-14
    assert seen.loss - 1e-14 <= float(proof.upper)
    assert "covariance" in proof.statement
    path = proof.save(tmp_path / "proof.json")
    assert verify(path).accepted


@pytest.mark.parametrize("change", ["other", "singular", "missing", "shape"])
def test_a_changed_covariance_is_refused(change, tmp_path):
    task = tilted()
    content = prove(task, critical(task)).content()
    content = json.loads(json.dumps(content))
    root = content["problem"]["root"]
    if change == "other":
        root[0][0] += 1e-6
    elif change == "singular":
        root[1] = root[0]
    elif change == "shape":
        root.pop()
    else:
        del content["problem"]["root"]
        content["statement"] = content["statement"].replace(
            " and inputs with a covariance Σ (incoming weights are those of w Σ^½)", ""
        )
    path = tmp_path / "proof.json"
    path.write_text(json.dumps({**content, "sha256": digest(content)}))
    assert not verify(path).accepted
