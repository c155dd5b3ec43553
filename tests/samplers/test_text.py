"""What sentences of samplers are written with."""

from __future__ import annotations

from bnnviz.numerals import written_out
from bnnviz.samplers.pdmp.text import missed_share


def test_thousands_are_written_in_digits_and_rounding_as_zero() -> None:
    text = "rate 1.67e+03 of envelope -2e+05; changed by 4.44e-16, step 2.3e-07, x1.2e+03, 3e+09."
    assert written_out(text) == "rate 1,670 of envelope −200,000; changed by 0, step 2.3 × 10⁻⁷, x1.2e+03, 3 × 10⁹."
    assert written_out("rate 999 of 0.0123") == "rate 999 of 0.0123"


def test_a_negative_number_has_a_minus_sign_and_a_name_keeps_its_hyphen() -> None:
    text = "v · grad U is -0.172, between (-1.5, -inf) and x=-2e-07; BNN-2 of 25-10 units on 2026-11-28, 1-3."
    signed = "v · grad U is −0.172, between (−1.5, −inf) and x=−2 × 10⁻⁷; BNN-2 of 25-10 units on 2026-11-28, 1-3."
    assert written_out(text) == signed
    assert written_out(signed) == signed


def test_the_share_of_missed_bounces_is_a_share() -> None:
    # Ten proposals, of which six were accepted; over them rates had so much more that four events were missed.
    assert missed_share({"excess": 0.4, "acceptance": 0.6}) == 0.4
    assert missed_share({"excess": 9.0, "acceptance": 1.0}) == 0.9
    assert missed_share({"excess": 0.0, "acceptance": 0.0}) == 0.0
