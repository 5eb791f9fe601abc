"""Every quantity on the page has an explanation, and every explanation belongs to something.

`test_page.py` looks at what scripts put on the page.
"""

import re
from pathlib import Path

import understudy

PAGE = Path(understudy.__file__).parent / "lab" / "page"
SECTIONS = dict(re.findall(r'<section id="([a-z-]+)">(.*?)</section>', (PAGE / "help.html").read_text(), re.DOTALL))


def test_every_word_of_the_page_has_a_section():
    used = re.findall(r'data-word="([a-z-]+)"', (PAGE / "index.html").read_text())
    assert set(used) <= set(SECTIONS)


def test_every_section_belongs_to_something_and_begins_with_a_sentence():
    text = "\n".join(path.read_text() for path in PAGE.iterdir() if path.name != "help.html")
    for name, section in SECTIONS.items():
        assert f'"{name}"' in text, f"nothing on the page is called {name}"
        assert re.search(r"<h3>.+</h3>\s*<p>.+?\.</p>", section, re.DOTALL)
