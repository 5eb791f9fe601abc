"""The phase diagram: a cell per rate and width, masked where the perfect student is not stable, and its files."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from understudy import plots
from understudy.online import Phases


def phases(errors):
    errors = np.asarray(errors, float)
    rates, widths = 0.1 * 2.0 ** np.arange(errors.shape[0]), np.arange(2, 2 + errors.shape[1])
    return Phases(rates, widths, 0.1, errors, np.where(np.isnan(errors), 1.0, -1.0))


def test_cells_stand_where_their_labels_say():
    ax = Figure().subplots()
    plots.phases(phases([[1e-3, 2e-3], [4e-3, np.nan], [np.nan, np.nan]]), ax=ax)
    (mesh,) = ax.collections
    shown = mesh.get_array()
    np.testing.assert_array_equal(shown.mask, [[False, False, True], [False, True, True]])
    np.testing.assert_array_equal(shown[0, :2], [1e-3, 4e-3])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "0.2", "0.4"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["2", "3"]
    assert (mesh.norm.vmin, mesh.norm.vmax) == (1e-3, 4e-3)


@pytest.mark.parametrize("errors", [[[1e-3, 2e-3], [np.nan, np.nan]], [[1e-3]], [[np.nan]]])
def test_files(errors, tmp_path):
    """Also with a single cell, and with none that is stable."""
    paths = plots.save(plots.phases(phases(errors)), tmp_path / "phases")
    assert [path.name for path in paths] == ["phases.png", "phases.svg"]
    assert all(path.stat().st_size > 1000 for path in paths)
