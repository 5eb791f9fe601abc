"""Formulas of the site are MathML, in which primes can be read."""

import pytest
from scripts.site_math import on_page_content


def typeset(latex):
    pytest.importorskip("latex2mathml", reason="the documentation's dependencies are not installed")
    return on_page_content(rf'<span class="arithmatex">\({latex}\)</span>')


def test_a_formula_is_mathml():
    assert typeset("x^2").startswith("<math")
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in typeset("x^2")


@pytest.mark.parametrize(("latex", "sign"), [(r"c^{\prime}", "′"), (r"\sigma_1^{\prime\prime\prime}", "‴")])
def test_primes_are_one_sign_of_readable_size(latex, sign):
    assert f'<mo class="prime" lspace="0" rspace="0">{sign}</mo>' in typeset(latex)
    assert "&#x02032;" not in typeset(latex)
