"""How many processes are used."""

import os

import pytest

from understudy.processes import core_count, job_count, use_jobs


def test_given_then_environment_then_cores(monkeypatch):
    monkeypatch.delenv("UNDERSTUDY_JOBS", raising=False)
    assert 1 <= core_count() <= os.cpu_count()
    assert job_count() == core_count()
    monkeypatch.setenv("UNDERSTUDY_JOBS", "5")
    assert (job_count(), job_count(2)) == (5, 2)
    with use_jobs(7), use_jobs(None):
        assert job_count() == 7
    assert job_count() == 5


@pytest.mark.parametrize("jobs", [0, -1, True, 1.5])
def test_bad_numbers_are_refused(jobs):
    with pytest.raises(ValueError, match="at least 1; received"):
        job_count(jobs)


@pytest.mark.parametrize("text", ["0", "two", "-1"])
def test_bad_environment_is_refused(monkeypatch, text):
    monkeypatch.setenv("UNDERSTUDY_JOBS", text)
    with pytest.raises(ValueError, match=f"UNDERSTUDY_JOBS.*received '{text}'"):
        job_count()
