"""The figure of an exploration: labels beside few points, a list beside many, and losses of many orders."""

from dataclasses import replace

import numpy as np
import pytest

from understudy import plots
from understudy.landscape.graph import Completeness, Connection, CriticalPoint, Graph

COMPLETENESS = Completeness(1, 1, {}, 1, 0, 0, 1.0, None, None, "")


def graph(count):
    """A zero minimum, and saddles whose losses grow tenfold."""
    points = [
        CriticalPoint(
            number=i,
            loss=10.0 ** (i - 8) if i else 0.0,
            index=min(i, 2),
            kind="strict saddle" if i else "minimum",
            label=f"label-{i}",
            parameters=None,
            orbit=1,
            family=0,
            degenerate=False,
            indices=(min(i, 2),),
            found=1,
            reached=0,
            certificate=None,
        )
        for i in range(count)
    ]
    return Graph(tuple(points), (Connection(1, (0, 0), True, ("", "")),), COMPLETENESS, None, {"students": 2})


@pytest.mark.parametrize(("count", "axes"), [(4, 2), (12, 3), (60, 3)])
def test_many_points_are_listed_and_few_are_labelled(count, axes):
    figure = plots.explore(graph(count))
    assert len(figure.axes) == axes
    words = [text.get_text() for text in figure.axes[0].texts]
    if axes == 2:
        assert words == [f"{i}  label-{i}" for i in range(count)]
        return
    listed = figure.axes[2].texts[0].get_text()
    assert "11  label-11" in listed
    assert ("30 more" in listed) == (count == 60)
    assert words == (["0", "1"] if count == 60 else [str(i) for i in range(count)])  # of many, those that are joined


def test_heights_are_above_the_lowest_point():
    shifted = graph(4)
    points = tuple(replace(p, loss=p.loss + 2.0) for p in shifted.points)
    left = plots.explore(replace(shifted, points=points)).axes[0]
    assert "above the lowest, 2" in left.get_ylabel()
    drawn = [line.get_ydata()[0] for line in left.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(drawn, [p.loss for p in shifted.points], atol=1e-12)


def test_losses_of_many_orders_are_on_a_logarithmic_axis_with_zero():
    from understudy.plots.explore_figure import _drawn, _threshold

    left = plots.explore(graph(9)).axes[0]
    assert left.get_yscale() == "symlog"
    losses = np.array([0.0, 1e-6, 1e-4, 1.0])
    assert _threshold(losses) == 1e-6
    np.testing.assert_allclose(_drawn(losses, 1e-6), [0.0, 1.0, 3.0, 7.0])
    assert _threshold(np.array([0.0, 0.5, 1.0])) is None
