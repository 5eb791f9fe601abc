"""Figures are saved under the name they were given, and have as many colours as they need."""

import pytest
from matplotlib.figure import Figure

from understudy.plots.style import COLOURS, colours, save, show_as_equal


def test_a_dot_in_a_name_is_part_of_it(tmp_path):
    names = [path.name for stem in ("net-0.5", "net-0.7") for path in save(Figure(), tmp_path / "new" / stem)]
    assert names == ["net-0.5.png", "net-0.5.svg", "net-0.7.png", "net-0.7.svg"]
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(names)


@pytest.mark.parametrize("count", [1, 7, 8, 40])
def test_every_line_has_a_colour_of_its_own(count):
    assert len(set(colours(count))) == count
    assert colours(count)[0] == COLOURS[0] or count > len(COLOURS)


@pytest.mark.parametrize(("values", "reach"), [([1e-14, -2e-15], 1e-3), ([0.24, 0.24 + 1e-12], 0.024), ([0.0], 1e-3)])
def test_rounding_does_not_fill_an_axis(values, reach):
    axes = Figure().subplots()
    axes.plot(values)
    show_as_equal(axes, values)
    low, high = axes.get_ylim()
    assert high - low == pytest.approx(2 * reach)
