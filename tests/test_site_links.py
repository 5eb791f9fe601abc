"""The check of the built site finds dead links, missing anchors and what is loaded from elsewhere."""

from scripts.site_links import faults, main


def test_faults_are_found(tmp_path, capsys):
    (tmp_path / "how-to").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="how-to/fit.html#times">x</a> <a href="how-to/fit.html#gone">x</a> <a href="lost.html">x</a>'
        '<a href="https://example.org">fine</a> <script src="https://example.org/a.js"></script> <img src="no.png">'
    )
    (tmp_path / "how-to" / "fit.html").write_text('<h2 id="times">Times</h2> <a href="../index.html#">up</a>')
    assert sorted(faults(tmp_path)) == [
        "index.html links to how-to/fit.html#gone: no such anchor",
        "index.html links to lost.html: no such file",
        "index.html links to no.png: no such file",
        "index.html loads https://example.org/a.js",
    ]
    assert main(str(tmp_path)) == 1
    assert "lost.html" in capsys.readouterr().out


def test_a_sound_site_passes(tmp_path):
    (tmp_path / "index.html").write_text('<p id="a"></p><a href="#a">here</a>')
    assert main(str(tmp_path)) == 0
