"""Names of files: what is made from different inputs does not overwrite each other in one directory."""

from pathlib import Path

import pytest

from understudy.commands.sources import name_by_hash, name_of, read_teacher
from understudy.experiments.splitting import population_of


def test_files_of_a_stored_network_begin_with_its_name():
    assert name_of(Path("some/net-0.5.npz"), None) == "net-0.5"
    assert name_of(Path("fit.nc"), 3) == "fit-seed-3"


def split_name(angles="0,0.5", told=None, **options):
    task = population_of(read_teacher("softplus", 2, None, angles, None), 1)
    return name_by_hash("split", told or {"student": 1}, task, **{"mus": [0.5], "follow": False, **options})


def test_files_without_a_name_have_a_hash_of_all_that_was_asked_for():
    assert split_name() == split_name()
    assert split_name().startswith("split-")


@pytest.mark.parametrize("change", [{"angles": "0,0.25"}, {"told": {"student": 2}}, {"mus": [1.5]}, {"follow": True}])
def test_the_hash_tells_what_differs(change):
    assert split_name(**change) != split_name()
