"""The figure of aligned students: every width is drawn, also beyond the palette."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from understudy import plots
from understudy.plots.align_figure import losses, recovery_by_epoch, recovery_by_polarity

WIDTHS = range(1, 10)
RNG = np.random.default_rng(0)


def grid(polarities):
    """Cells of two seeds and three teachers, and what was recorded in three epochs."""
    cells = [SimpleNamespace(over=float(over), polarity=p) for p in polarities for over in WIDTHS]
    best = ("seed", "epoch", "node")
    results = [
        xr.Dataset(
            {
                "best_of_teacher_1": (best, RNG.uniform(size=(2, 3, 3))),
                "best_of_student_1": (best, RNG.uniform(size=(2, 3, 3))),
                "fan_out_1": (best, RNG.uniform(size=(2, 3, 3))),
                "loss": (("seed", "epoch"), RNG.uniform(size=(2, 3))),
            },
            coords={"epoch": [0.0, 1.0, 2.0]},
        )
        for _ in cells
    ]
    return cells, results


@pytest.mark.parametrize("polarities", [(1.5,), (0.5, 1.5)])
def test_every_width_has_a_curve_of_its_own_colour(polarities, tmp_path):
    cells, results = grid(polarities)
    recovery = recovery_by_epoch if len(polarities) == 1 else recovery_by_polarity
    left, right = Figure().subplots(1, 2)
    recovery(left, cells, results, 0.5)
    losses(right, cells, results)
    assert [text.get_text() for text in left.get_legend().get_texts()] == [f"{over}x" for over in WIDTHS]
    curves = [line for line in right.lines if len(line.get_xdata())]
    assert len(curves) == len(cells)
    for axes in (left.lines, curves):
        assert len({line.get_color() for line in axes}) == len(WIDTHS)
    assert [path.stat().st_size > 0 for path in plots.save(plots.align(cells, results, 0.5), tmp_path / "align")] == [
        True,
        True,
    ]
