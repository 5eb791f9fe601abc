"""Figures are saved under the name they were given."""

from matplotlib.figure import Figure

from understudy.plots.style import save


def test_a_dot_in_a_name_is_part_of_it(tmp_path):
    names = [path.name for stem in ("net-0.5", "net-0.7") for path in save(Figure(), tmp_path / "new" / stem)]
    assert names == ["net-0.5.png", "net-0.5.svg", "net-0.7.png", "net-0.7.svg"]
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(names)
