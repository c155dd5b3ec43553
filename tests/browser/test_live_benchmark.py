"""The live benchmark measures a real dashboard in a real browser."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import measure


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.usefixtures("chromium")
def test_startup_is_measured_and_the_page_has_no_torch() -> None:
    rows = {row["metric"]: row for row in measure("live", "startup", 1.0)}
    assert rows["torch_in_page_process"]["ok"]
    assert 0 < rows["serve_to_page"]["value"] < rows["serve_to_first_segment"]["value"]
    assert rows["play_to_first_frame"]["value"] > 0
