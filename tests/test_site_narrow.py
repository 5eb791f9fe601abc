"""Wide tables of text name the columns of their cells, figures link to themselves, and lines break where they should."""

from scripts.site_narrow import on_page_content


def table(*rows):
    head = "".join(f"<th>{name}</th>" for name in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows[1:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def test_a_wide_table_of_text_names_its_columns():
    found = on_page_content(table(["claim", "n < k", "now", "why"], ["a", "b", "", "a long reason " * 10]))
    assert found.startswith("<table data-stack>")
    assert '<td data-column="n &lt; k">b</td>' in found
    assert '<td data-column="now"></td>' in found


def test_tables_of_numbers_and_narrow_tables_stay():
    numbers = table(["method", "1/2", "1/4", "1/8"], ["ours", "97.5", "96.4", "86.1"])
    narrow = table(["claim", "why"], ["a", "a long reason " * 10])
    assert on_page_content(numbers + narrow) == numbers + narrow


def test_a_figure_links_to_itself_once():
    image = '<img alt="a" src="images/fit.png" />'
    linked = f'<a class="figure" href="images/fit.png">{image}</a>'
    assert on_page_content(f"<p>{image}</p>") == f"<p>{linked}</p>"
    assert on_page_content(f"<p>{linked}</p>") == f"<p>{linked}</p>"


def test_lines_do_not_break_inside_options_and_errors():
    page = "<p><code>fit --init-std 1</code>, <code>undecided</code>, 59.8 ± 1.6</p><pre><code>--out</code></pre>"
    shown = on_page_content(page)
    assert '<code class="unbroken">undecided</code>' in shown
    assert '<code>fit <span class="unbroken">--init-std</span> 1</code>' in shown
    assert "59.8\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}1.6" in shown
    assert "<pre><code>--out</code></pre>" in shown
