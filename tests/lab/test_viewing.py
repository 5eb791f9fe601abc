"""Runs of `us.fit` become questions that repeat them; runs that the lab cannot show are named."""

import numpy as np
import pytest

import understudy as us
from understudy.lab.address import question_of
from understudy.lab.viewing import entry, question_of_run
from understudy.lab.watching import answer

VECTORS = np.array([[1.0, 0.2], [-0.3, 0.9]])
TASKS = {
    "population": us.Population(us.Teacher(VECTORS, np.ones(2), "erf"), width=1),
    "fixed": us.Population(us.Teacher(VECTORS, np.ones(2), "erf"), width=1, outgoing=1.0),
    "biases": us.Population(us.Teacher(VECTORS, np.ones(2), "erf", bias=[0.5, -0.5]), width=1, bias="trained"),
    "sphere": us.Sphere(us.Teacher.orthonormal(2, dim=2, activation="hermite:4"), 2),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", TASKS)
def test_a_run_is_repeated_by_its_question(name):
    run = us.fit(TASKS[name], seeds=1)[0]
    said = []
    answer(question_of_run(run), said.append)
    end = next(message for message in said if message["type"] == "end")
    assert end["loss"] == pytest.approx(float(run.loss), rel=1e-8, abs=1e-13)
    assert end["kind"] == run.certificate.kind
    frames = [frame for message in said if message["type"] == "frames" for frame in message["frames"]]
    assert (frames[0]["c"] is not None) == (name == "biases")


def test_the_link_of_an_entry_is_the_question():
    run = us.fit(TASKS["population"], seeds=1)[0]
    found = entry(run)
    assert question_of("#" + found["fragment"]) == question_of_run(run)
    assert found["dot"] == {"seed": 0, "kind": "minimum", "label": run.structure.label, "loss": float(run.loss)}


def test_a_stored_run_is_shown_like_the_run_itself(tmp_path):
    runs = us.fit(TASKS["population"], seeds=1)
    path = runs.save(tmp_path / "runs.nc")
    opened = us.open(path, TASKS["population"])
    assert entry(opened[0])["fragment"] == entry(runs[0])["fragment"] != ""
    assert "us.open(path, task)" in entry(us.open(path)[0])["text"]


def test_what_the_lab_cannot_show_is_said():
    inputs = np.linspace(-1, 1, 12).reshape(6, 2)
    data = us.Empirical(us.TwoLayer(np.ones((1, 2)), np.ones(1)), inputs, inputs[:, 0], activation="tanh")
    told = entry(us.fit(data, seeds=1)[0])
    assert told["fragment"] == ""
    assert "cannot be shown" in told["text"]
