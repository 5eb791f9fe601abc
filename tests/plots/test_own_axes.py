"""Every figure can be drawn on axes of the caller, and makes none of its own then."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import understudy as us
from understudy import plots
from understudy.online import Phases
from understudy.results.table import Line

RNG = np.random.default_rng(0)
POINT = {"kind": "minimum", "label": "2-copy", "count": 3, "loss": 0.1, "theory": 0.1}


def runs():
    line = Line("minimum", "2-copy", 2, 0.1, 0.1, 0.2, 1e-15, 10.0, 0, 0, (0, 1))
    rows = xr.Dataset({"loss": ("seed", [0.1, 0.1])}, coords={"seed": [0, 1]})
    return SimpleNamespace(to_dataset=lambda: rows, lines=[line])


def aligned():
    names = ("best_of_teacher_1", "best_of_student_1", "fan_out_1")
    rows = {name: (("seed", "epoch", "node"), RNG.uniform(size=(2, 3, 3))) for name in names}
    rows["loss"] = (("seed", "epoch"), RNG.uniform(size=(2, 3)))
    cell = SimpleNamespace(over=2.0, polarity=1.5)
    return [cell], [xr.Dataset(rows, coords={"epoch": [0.0, 1.0, 2.0]})], 0.5


def stages():
    one = {"width": 1, "loss": 0.3, "averaging": 0, "norms": [1.0], "outgoing": [[2.0, 1.0]]}
    two = {"width": 2, "loss": 0.1, "averaging": 1, "norms": [1.0, 0.5], "outgoing": [[1.0, 0.0], [0.5, 2.0]]}
    about = {"activation": "erf", "teacher": 3}
    return [{**one, "correlations_with_averaging": [1.0]}, {**two, "correlations_with_averaging": [0.1, 1.0]}], about


def lines():
    mu = np.linspace(-1, 0.5, 5)
    splits = [{"mu": 0.5, "kind": "minimum", "least_eigenvalue": 0.1}]
    row = {"neuron": 0, "outgoing": [0.5, 0.2], "scenario": "i", "splits": splits}
    spectra = {"mu": mu, "five": RNG.normal(size=(5, 5)), "upper": np.full(5, np.nan), "lower": mu}
    return [{**spectra, "row": row}] * 2, {"point": {"kind": "minimum", "loss": 0.1}}


def layers():
    row = {"layer": 1, "rank": 1, "rank_activated": 2, "rays": 2, "neurons": 3, "imbalance": 1e-9}
    square = np.eye(4)
    arrays = {f"{name}1": RNG.normal(size=(3, 4)) for name in ("Z", "attraction", "repulsion")}
    return [row], {**arrays, "K1": square, "K_activated1": square}


def merged():
    network = us.TwoLayer([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], [1.0, 1.0, 1.0])
    return network, us.surgery.merge(network, "relu"), "relu"


def swept():
    start = {"outgoing": "trained", "init": "gaussian", "init_std": 0.1, "runs": 3, "points": [POINT]}
    return ([{"activation": "erf", "teacher": k, "student": 2, "dim": 6, **start} for k in (4, 5)],)


def online():
    times = np.linspace(0, 1, 4)
    overlaps = RNG.uniform(size=(4, 2, 2))
    return (SimpleNamespace(times=times, loss=1 / (1 + times), student_overlaps=overlaps, teacher_overlaps=overlaps),)


def phases():
    return (Phases(np.array([0.1, 0.2]), np.array([2, 3]), 0.1, np.ones((2, 2)), -np.ones((2, 2))),)


SEVERAL = {"align": (aligned, 3), "grow": (stages, 4), "layers": (layers, 3), "merge": (merged, 3), "online": (online,
3),
           "split": (lines, 4), "sweep": (swept, 2)}  # fmt: skip


def branched():
    found = {"parameters": np.arange(3.0), "losses": np.arange(3.0), "index": np.zeros(3, int)}
    return (SimpleNamespace(branches=[SimpleNamespace(**found)], special_points=[], parameter="width"),)


ONE = {"fit": lambda: (runs(),), "align": aligned, "branches": branched, "curves": lambda: ([("0", [0.5, 0.1])],),
       "phases": phases}  # fmt: skip


def test_every_figure_takes_axes():
    names = {*dir(plots)} - {"save"}
    assert {*SEVERAL, *ONE, "explore"} >= names  # explorations need a graph, see tests/landscape
    for name in names:
        assert {"ax", "axes"} & set(inspect.signature(getattr(plots, name)).parameters), name


def drawn_on(panels):
    """Each of these axes has something on it."""
    return all(ax.lines or ax.collections or ax.images or ax.patches for ax in panels)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_panels(name):
    make, count = SEVERAL[name]
    figure = Figure(figsize=(3.0, 2.0))
    axes = figure.subplots(count, 1)
    assert getattr(plots, name)(*make(), axes=axes) is figure
    assert drawn_on(axes)
    assert not figure.get_suptitle()
    assert tuple(figure.get_size_inches()) == (3.0, 2.0)
    with pytest.raises(ValueError, match=f"has {count} panels; received {count + 1} axes"):
        getattr(plots, name)(*make(), axes=Figure().subplots(count + 1, 1))
    assert getattr(plots, name)(*make()) is not figure


@pytest.mark.parametrize("name", ONE)
def test_one_panel(name):
    figure = Figure()
    ax = figure.subplots()
    assert getattr(plots, name)(*ONE[name](), ax=ax) is figure
    assert drawn_on([ax])
    assert not figure.get_suptitle()
