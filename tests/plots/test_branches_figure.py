"""The bifurcation diagram: solid where stable, dashed where not, special points marked."""

import numpy as np
from matplotlib.figure import Figure

import understudy as us
from understudy.branches import Branch, Continuation, SpecialPoint


def made():
    """A branch that is stable up to p = 0 and unstable after it."""
    p = np.linspace(-1, 1, 5)
    index = np.array([0, 0, 0, 1, 1])
    branch = Branch(p, p[:, None] ** 2, p**2, index, -p, None, 0, "end of interval")
    special = SpecialPoint("pitchfork", 0.0, 1e-15, np.zeros(1), 0.0, np.ones((1, 1)), None, None, (0,))
    return Continuation((branch,), (special,), "p", (-1.0, 1.0), "traced", 0.0)


def test_stability_is_drawn_and_special_points_are_marked():
    axes = Figure().subplots()
    us.plots.branches(made(), ax=axes, measure=lambda x: 3 * x[0], label="three times")
    solid, dashed, mark = axes.lines[:3]
    assert (solid.get_linestyle(), dashed.get_linestyle()) == ("-", "--")
    np.testing.assert_array_equal(solid.get_xdata(), [-1, -0.5, 0])
    np.testing.assert_array_equal(dashed.get_xdata(), [0, 0.5, 1])
    np.testing.assert_array_equal(dashed.get_ydata(), [0, 0.75, 3])
    assert (mark.get_marker(), list(mark.get_xdata())) == ("D", [0.0])
    assert axes.get_ylabel() == "three times"
