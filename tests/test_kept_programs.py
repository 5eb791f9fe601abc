"""Programs are found again by the next process, and only if nothing has changed."""

import os
import subprocess
import sys

import numpy as np
import pytest

from understudy import kept_programs

SCRIPT = """
import sys
import jax, jax.numpy as jnp, numpy as np
import understudy as us
from understudy import kept_programs
from understudy.compilation import keep_compiled_programs

keep_compiled_programs()

@kept_programs.kept
def solved(task, vector, extra):
    print("traced")
    loss, gradient, hessian = task.evaluate(vector)
    return {"step": jnp.linalg.solve(hessian @ hessian + jnp.eye(len(vector)), gradient), "loss": loss}

task = us.Population(us.Teacher.orthonormal(2, dim=3), width=2)
vector = 0.3 * np.cos(np.arange(task.size))
extra = EXTRA
found = solved(task, vector, extra)
print(found["step"].tolist(), float(found["loss"]))
assert np.array_equal(found["step"], solved(task, vector, extra)["step"])
"""


@pytest.fixture
def run(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    environment |= {"UNDERSTUDY_CACHE": str(tmp_path)}

    def call(extra="None"):
        script = SCRIPT.replace("EXTRA", extra)
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        *traced, result = done.stdout.splitlines()
        return traced, result

    return call


def programs(directory):
    return [path for path in directory.glob("programs/*/*") if path.is_file()]


def test_the_next_process_does_not_trace_and_has_the_same_numbers(run, tmp_path):
    first, again = run(), run()
    assert first[0] == ["traced"]
    assert again[0] == []
    assert first[1] == again[1]
    assert len(programs(tmp_path)) == 2  # and one for the task's constant
    for path in programs(tmp_path):
        path.write_bytes(path.read_bytes()[:1000])  # damaged
    assert run() == first
    assert run() == again


def test_other_arguments_are_other_programs(run, tmp_path):
    run()
    assert run(extra="2.0")[0] == ["traced"]
    assert len(programs(tmp_path)) == 3


def test_functions_of_a_user_are_not_kept(run, tmp_path):
    for extra in ("(lambda x: x)", "type('Mine', (), {})", "keep_compiled_programs"):
        assert run(extra=extra)[0] == ["traced"]
    assert len(programs(tmp_path)) == 1  # the task's constant


def test_a_program_that_fails_only_when_it_runs_is_compiled_again(tmp_path, monkeypatch):
    """JAX runs programs in the background: what a damaged one does is seen when its result is waited for."""

    class Late:
        def block_until_ready(self):
            raise RuntimeError("Function not found")

    (tmp_path / "name").write_bytes(b"a program")
    monkeypatch.setattr(kept_programs, "_directory", lambda: tmp_path)
    monkeypatch.setattr(kept_programs, "_name", lambda *_: "name")
    monkeypatch.setattr(kept_programs, "_load", lambda *_: lambda arrays: Late())
    monkeypatch.setattr(kept_programs, "_compile", lambda *_: lambda arrays: 2 * arrays[0])
    assert kept_programs.kept(lambda x: 2 * x)(np.asarray(3.0)) == 6.0
    assert not (tmp_path / "name").exists()
