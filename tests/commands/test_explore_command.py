"""`understudy explore` from the shell: table, JSON, stored searches, bad input."""

import json

import pytest
from typer.testing import CliRunner

import understudy as us
from understudy.cli import app
from understudy.experiments import exploring

CASE = ["explore", "--activation", "hermite:6", "--teacher", "2", "--student", "2", "--dim", "2", "--sphere"]


def test_an_interrupted_exploration_resumes_and_its_graph_opens(tmp_path, monkeypatch):
    asked = []
    real = exploring.search_each

    def counted(task, seed, numbers, init_std):
        asked.append(list(numbers))
        for i, found in enumerate(real(task, seed, numbers, init_std)):
            if len(asked) == 1 and i == 40:
                raise RuntimeError("killed")
            yield found

    monkeypatch.setattr(exploring, "search_each", counted)
    runner, more = CliRunner(), ["--starts", "64", "--out", str(tmp_path)]
    assert isinstance(runner.invoke(app, [*CASE, *more]).exception, RuntimeError)
    result = runner.invoke(app, [*CASE, *more, "--json"])
    assert result.exit_code == 0, result.output
    assert len(asked[0]) == 64
    assert len(asked[1]) == 24  # 40 were stored
    content = json.loads(result.stdout)
    assert {p["kind"] for p in content["points"]} == {"minimum", "strict saddle"}
    assert content["completeness"]["starts"] == 64
    again = runner.invoke(app, [*CASE, *more])
    assert again.exit_code == 0
    assert len(asked) == 2  # the finished graph is read
    stages = {json.loads(us.store.read_result(f).attrs["configuration"])["kind"] for f in tmp_path.glob("*.nc")}
    assert {"explore-searches", "explore-from-symmetric-points", "explore-between-minima"} <= stages
    assert "critical points up to symmetry" in again.output
    (file,) = [f for f in tmp_path.glob("*.nc") if isinstance(us.open(f), us.landscape.Graph)]
    graph = us.open(file)
    assert [p.loss for p in graph.points] == [p["loss"] for p in content["points"]]
    assert graph.task.width == 2
    assert len(list(tmp_path.glob("explore-*.png"))) == 1


def test_later_searches_are_stored_and_not_repeated(tmp_path, monkeypatch):
    asked = []
    real = exploring.run_plan

    def counted(task, given):
        asked.append(len(given.targets))
        for i, found in enumerate(real(task, given)):
            if len(asked) == 1 and i == 10:
                raise RuntimeError("killed")
            yield found

    monkeypatch.setattr(exploring, "run_plan", counted)
    runner, more = CliRunner(), ["--starts", "64", "--out", str(tmp_path)]
    assert isinstance(runner.invoke(app, [*CASE, *more]).exception, RuntimeError)
    assert runner.invoke(app, [*CASE, *more]).exit_code == 0
    assert asked == [16, 6, 16]  # 10 of 16 symmetric ones were stored; then 16 between minima


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--starts", "0"], "--starts is a positive whole number; received 0"),
        (["--seed", "-1"], "--seed is a whole number"),
        (["--activation", "none-such"], "none-such"),
        (["--angles", "a,b"], "--angles are numbers"),
    ],
)
def test_bad_input_is_refused(options, words):
    result = CliRunner().invoke(app, ["explore", *options])
    assert result.exit_code == 2
    assert words in result.output


def test_a_narrow_screen_shows_labels_and_connections_whole_and_names_what_it_leaves_out(tmp_path):
    result = CliRunner().invoke(app, [*CASE, "--starts", "64", "--out", str(tmp_path)], env={"COLUMNS": "70"})
    rows = result.stdout.splitlines()
    assert max(len(row) for row in rows if str(tmp_path) not in row) <= 70
    assert any("strict saddle" in row and "1-leaning-pair" in row and "0 - 1" in row for row in rows)
    assert "The screen is too narrow to show: found, family, |∇L|." in rows
