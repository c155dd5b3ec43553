"""What people type that cannot be, where, and what the page says beside it: a browser test works through this table."""

from __future__ import annotations

from typing import NamedTuple


class Bad(NamedTuple):
    """How a field's label begins, what is typed, and a part of what the page says beside it."""

    label: str
    typed: str
    statement: str


NETWORK = (
    Bad("Hidden layers", "abc", "hidden"),
    Bad("Hidden layers", "5-" * 400 + "5", "hidden is longer than 200 characters"),
    Bad("Chains", "0", "chains = 0 is out of range; give a value from 1 to 16384"),
    Bad("Chains", "2.5", "chains must be a whole number, not 2.5"),
    Bad("Chains", "1e999", "chains must be a whole number"),
    Bad("Chains", "four", "chains must be a whole number, not 'four'"),
    Bad("Chains", "", "chains must be a whole number"),
    Bad("Seed", "NaN", "seed must be a whole number"),
    Bad("Seed", "<script>alert(1)</script>", "seed must be a whole number, not '<script>alert(1)</script>'"),
    Bad("Seed", "[1, 2]", "seed must be a whole number"),
    Bad("Seed", "true", "seed must be a whole number"),
    Bad("Noise sd", "inf", "noise_sd must be a number"),
    Bad("Noise sd", "1,5", "noise_sd must be a number, not '1,5'"),
)
GAUSSIAN = (
    Bad("Mean", "zero", "mean_list = 'zero' is not a JSON list of numbers"),
    Bad("Mean", "[1, NaN]", "The mean must be a list of finite numbers"),
    Bad("Covariance", "[[1, 2], [2, 1]]", "positive definite"),
    Bad("Covariance", "[[1, 0], [0, 1], [0, 0]]", "needs a covariance of"),
    Bad("Covariance", "[[1, 0.5], [0, 1]]", "symmetric"),
)
FOLDED = (
    Bad("Spacing", "often", "spacing must be a number, not 'often'"),
    Bad("Mode steps", "0", "mode_steps = 0 is out of range"),
)
