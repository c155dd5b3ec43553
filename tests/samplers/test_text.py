"""What sentences of samplers are written with."""

from __future__ import annotations

from bnnviz.samplers.pdmp.text import missed_share


def test_the_share_of_missed_bounces_is_a_share() -> None:
    # Ten proposals, of which six were accepted; over them rates had so much more that four events were missed.
    assert missed_share({"excess": 0.4, "acceptance": 0.6}) == 0.4
    assert missed_share({"excess": 9.0, "acceptance": 1.0}) == 0.9
    assert missed_share({"excess": 0.0, "acceptance": 0.0}) == 0.0
