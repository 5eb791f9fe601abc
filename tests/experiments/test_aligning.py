"""Experiments with students: independence of company, workers and interruptions, what is recorded, and the benefit of width."""

import jax.numpy as jnp
import numpy as np
import pytest

from understudy.alignment import align
from understudy.experiments.aligning import Experiment, collect, draw, run, schedule, students_of, train_on
from understudy.experiments.aligning.runs import squared_error
from understudy.store import Store

SMALL = Experiment(
    teacher=(4,), over=2, polarity=1.0, dim=6, outputs=3, samples=60, evaluation=300, batch=4, steps=30, init=0.1,
    record=(0, 0.5, 1, 7, 12), correlations=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return run(SMALL, [0, 1, 2], workers=2)


@pytest.mark.thorough
def test_a_seed_is_the_same_alone_and_in_company(rows):
    alone = run(SMALL, [2], workers=1)
    for name in ("W1", "b2", "loss", "best_of_teacher_1"):
        np.testing.assert_allclose(alone[name].values[0], rows[name].values[2], rtol=1e-10, atol=1e-13)


@pytest.mark.thorough
def test_an_interrupted_training_goes_on(rows, tmp_path):
    class Stop(Exception):
        pass

    def stop(share):
        if share > 0.7:
            raise Stop

    store = Store(tmp_path)
    with pytest.raises(Stop):
        collect(SMALL, [0, 1, 2], store, workers=2, progress=stop)
    assert len(list(tmp_path.glob("align-checkpoint-*.nc"))) == 1
    shares = []
    whole = collect(SMALL, [0, 1, 2], store, workers=2, progress=shares.append)
    assert shares[0] > 0.4  # not from the start
    for name in rows:
        np.testing.assert_array_equal(whole[name].values, rows[name].values)
    assert not list(tmp_path.glob("align-checkpoint-*.nc"))
    again = collect(SMALL, [2, 0], store, progress=shares.clear)  # stored: nothing is trained
    np.testing.assert_array_equal(again["W1"].values, rows["W1"].values[[2, 0]])


def test_what_is_recorded_is_what_the_networks_are(rows):
    for i, student in enumerate(students_of(rows)):
        problem = draw(SMALL, i)
        x = jnp.asarray(problem.evaluation)
        (found,) = align(student, problem.teacher, x)
        last = rows.isel(seed=i, epoch=-1)
        np.testing.assert_allclose(last["correlations"], found.correlations, atol=1e-12)
        np.testing.assert_allclose(last["best_of_student_1"], found.best_of_student, atol=1e-12)
        np.testing.assert_array_equal(last["student_of_teacher_1"], found.student_of_teacher)
        np.testing.assert_allclose(last["fan_out_1"], np.linalg.norm(student.weights[1], axis=0), rtol=1e-14)
        gap = np.asarray(problem.teacher(x, "relu") - student(x, "relu"))
        assert float(last["loss"]) == pytest.approx(0.5 * np.mean(np.sum(gap**2, axis=1)), rel=1e-12)
    assert np.all(rows["loss"].values[:, -1] < 0.2 * rows["loss"].values[:, 0])


def test_the_problem_depends_on_the_seed_alone():
    wide, steep = (
        Experiment.of({**SMALL.configuration(), "over": 5}),
        Experiment.of({**SMALL.configuration(), "polarity": 2.0}),
    )
    base = draw(SMALL, 4)
    np.testing.assert_array_equal(base.inputs, draw(wide, 4).inputs)
    np.testing.assert_array_equal(base.teacher.weights[1], draw(wide, 4).teacher.weights[1])
    np.testing.assert_array_equal(base.teacher.weights[0], draw(steep, 4).teacher.weights[0])
    assert not np.array_equal(base.inputs, draw(SMALL, 5).inputs)
    assert draw(wide, 4).start.weights[0].shape == (20, 6)


@pytest.mark.thorough
def test_deep_students_with_adam_and_decay():
    deep = Experiment.of({**SMALL.configuration(), "teacher": [4, 3], "optimizer": "adam", "rate": 3e-3, "weight_decay": 1e-4, "init": 0.0,
                          "standardise": True, "record": [0, 4]})  # fmt: skip
    rows = run(deep, [0])
    assert rows["best_of_teacher_2"].shape == (1, 2, 3)
    assert rows["fan_out_2"].shape == (1, 2, 6)
    assert rows["W3"].shape == (1, 3, 6)
    assert rows["loss"].values[0, 1] < 0.7 * rows["loss"].values[0, 0]


def test_configurations_and_schedules():
    assert Experiment.of(SMALL.configuration()) == SMALL
    assert schedule(100)[-3:] == (80.0, 90.0, 100.0)
    assert schedule(5) == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    assert SMALL.until(3).record == (0, 0.5, 1, 3)
    for wrong in ({"over": 0}, {"batch": 61}, {"record": (1, 0)}, {"record": (0.01,)}, {"optimizer": "newton"}, {"rate": -1.0}, {"teacher": ()},
                  {"polarity": float("nan")}):  # fmt: skip
        with pytest.raises(ValueError, match="received"):
            Experiment.of({**SMALL.configuration(), **wrong})


@pytest.mark.thorough
def test_training_on_ends_below_the_loss_asked_for(rows):
    for seed, student in enumerate(students_of(rows)[:2]):
        problem = draw(SMALL, seed)
        better, loss = train_on(student, problem, below=1e-9, iterations=400)
        assert loss < 1e-9
        x, y = jnp.asarray(problem.inputs), jnp.asarray(problem.targets)
        assert float(squared_error(better, x, y)) == pytest.approx(loss, rel=1e-9)
