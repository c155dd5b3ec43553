"""The corrigendum: its links open, its settings exist, and its numbers are recomputed."""

from __future__ import annotations

import math
import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from scipy import linalg

from bnnviz.experiments import EXPERIMENTS, render
from bnnviz.specs import catalogue
from bnnviz_app import address
from bnnviz_app.pages.lab import LabPage
from bnnviz_app.pages.race import RacePage

TEXT = (render.DOCS / "corrigendum.md").read_text(encoding="utf-8")
LINKS = sorted(set(re.findall(r"\]\(http://[^/]+/app\?([^)]+)\)", TEXT)))
OPENINGS = {"lab": LabPage, "race": RacePage}


@pytest.mark.parametrize("link", LINKS)
def test_a_link_opens_what_it_names(link: str) -> None:
    asked = {name: [text.encode() for text in texts] for name, texts in parse_qs(urlsplit(f"?{link}").query).items()}
    page = asked["page"][0].decode()
    if page == "papers":
        assert set(asked["open"][0].decode().split(",")) <= set(EXPERIMENTS)
        return
    visit = address.read(asked, OPENINGS[page].opening())
    assert not visit.sentences
    visit.spec.checked()


def test_every_setting_exists_with_that_choice() -> None:
    listing = catalogue.load()
    choices: dict[str, list] = {}
    for item in (*listing["samplers"], *listing["targets"]):
        for setting in item["settings"]:
            choices.setdefault(setting["name"], []).append(setting["choices"])
    named = re.findall(r"`(\w+)=(\"?)([\w.-]+)\"?`", TEXT)
    assert len(named) > 20
    for name, quoted, value in named:
        assert name in choices, name
        assert not quoted or any(value in (each or ()) for each in choices[name]), f"{name}={value}"


def code_of_the_boomerang(copies: int, falling: str, chains: int = 400, events: int = 500) -> float:
    """Transcribe InterpolationBoomSampler and BoomerangKernel in one dimension; return E[x^2] along the path.

    egstatsml/tpdmp 0a99f9d, tbnn/pdmp/poisson_process.py and model.py. The likelihood and the reference have precision
    1, and the refresh rate is 0.1; the reference is ``copies`` times in the energy. A first line that falls is
    constant, or with ``falling="no event"``, as in the code, proposes nothing until the refreshment.
    """
    refresh = 0.1
    rng = np.random.default_rng(0)
    curvature, least, first, most, reject = 1.0 + copies, 10.0, 1.0, 10, 2.0
    x, v = np.zeros(chains), rng.normal(size=chains)
    squares = time = 0.0

    def flow(t: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        return x * np.cos(t) + v * np.sin(t), v * np.cos(t) - x * np.sin(t)

    def rate(t: np.ndarray | float) -> np.ndarray:
        there, speed = flow(t)
        return curvature * there * speed

    for event in range(events):
        t_old, h_old = np.zeros(chains), np.maximum(least, rate(0.0))
        t_new, h_new = np.full(chains, first), np.maximum(least, rate(first))
        at, level = t_old, h_old
        open_ = (h_new >= h_old) | (falling == "constant")
        bounce = np.where(open_, 0.0, np.inf)
        for proposal in range(most):
            slope = (h_new - h_old) / (t_new - t_old)
            mass = rng.exponential(size=chains)
            rising = slope > 1e-7
            with np.errstate(divide="ignore", invalid="ignore"):
                ahead = np.where(rising, (np.sqrt(level**2 + 2 * slope * mass) - level) / slope, mass / level)
            t = at + ahead
            hull = np.where(rising, level + slope * ahead, level)
            ratio = np.maximum(rate(t), 0) / hull
            accepted = (rng.uniform(size=chains) <= ratio) & (ratio <= reject)
            last = proposal == most - 1
            bounce = np.where(open_ & (accepted | last), t, bounce)
            open_ &= ~accepted
            if proposal:
                t_old, h_old = t_new, h_new
            t_new, h_new = t, np.maximum(least, rate(t))
            at, level = t_new, h_new
        refreshed = rng.exponential(size=chains) / refresh
        end = np.minimum(bounce, refreshed)
        if event > 50:
            moved = (x**2 + v**2) / 2 * end + (x**2 - v**2) / 4 * np.sin(2 * end) + x * v * np.sin(end) ** 2
            squares, time = squares + moved.sum(), time + end.sum()
        x, v = flow(end)
        v = np.where(bounce < refreshed, -v, rng.normal(size=chains))
    return squares / time


@pytest.mark.parametrize(
    ("copies", "constant", "no_event", "density"),
    [(0, 0.36, 0.36, 1 / 2), (1, 0.24, 0.24, 1 / 3), (100, 0.023, 0.058, 1 / 102)],
)
def test_the_reference_in_the_public_code(copies: int, constant: float, no_event: float, density: float) -> None:
    assert code_of_the_boomerang(copies, "constant") == pytest.approx(constant, rel=0.05)
    assert code_of_the_boomerang(copies, "no event") == pytest.approx(no_event, rel=0.1)
    # One more reference is in the dynamics.
    assert density == pytest.approx(1 / (1 + copies + 1))
    assert all(f" {value:.3g} |" in TEXT for value in (constant, no_event, density))


def ess(x: np.ndarray) -> float:
    """Return tfp.mcmc.effective_sample_size(x) with its defaults."""
    n, centred = len(x), x - x.mean()
    spectrum = np.fft.rfft(centred, 2 * n)
    covariance = np.fft.irfft(spectrum * spectrum.conj())[:n] / np.arange(n, 0, -1)
    correlation = covariance / covariance[0]
    correlation = np.where(np.cumsum(correlation < 0) > 0, 0.0, correlation)
    return n / (-1 + 2 * ((n - np.arange(n)) / n * correlation).sum())


def test_the_lower_limits_of_the_ess() -> None:
    t = (np.arange(1000) + 0.5) / 1000
    assert f"{ess(t):.2f}" == "2.87" and f"{ess(np.cos(np.pi * t)):.2f}" == "2.71"
    walk = np.random.default_rng(0).normal(size=(300, 200)).cumsum(0)
    first = np.linalg.svd(walk - walk.mean(0), full_matrices=False)[0][:, 0]
    assert ess(first) == pytest.approx(2.71, abs=0.1)
    assert ess(np.random.default_rng(0).normal(size=1000)) > 500


def test_the_bias_of_a_running_mean_vanishes() -> None:
    """The stationary variance of x - eps m' + sqrt(2 eps) z with m' = 0.9 m + 0.1 x, on N(0, 1)."""
    found = []
    for step in (0.1, 0.01, 0.001):
        move = np.array([[1 - step * 0.1, -step * 0.9], [0.1, 0.9]])
        found.append(linalg.solve_discrete_lyapunov(move, np.diag([2 * step, 0.0]))[0, 0])
    assert [f"{variance:.5g}" for variance in found] == ["1.9525", "1.095", "1.0095"]
    assert "1.95, 1.095 and 1.0095" in TEXT


def test_the_variance_at_events() -> None:
    x = np.linspace(-12, 12, 200_001)
    weight = np.exp(-(x**2) / 2) * (0.1 + np.abs(x) / math.sqrt(2 * math.pi))
    at_events = (x**2 * weight).sum() / weight.sum()
    assert at_events == pytest.approx((0.1 + 2 / math.pi) / (0.1 + 1 / math.pi), rel=1e-6)
    assert f"which is {at_events:.2f} for a refresh rate" in TEXT


def test_the_numbers_of_small_cases() -> None:
    hessian = np.array([[1, -2], [-2, 5]])
    assert np.linalg.eigvalsh(hessian).min() > 0 and hessian.sum(1).tolist() == [-1, 3]
    z = np.linspace(-5, 5, 100_001)
    least = (z / (1 + np.exp(-z))).min()
    assert f"{least:.2f}" == "-0.28" and f"{math.log(9 * 99) + least:.1f}" == "6.5"
    assert f"{math.sqrt(1 / 1000):.3f}" == "0.032"
    well = np.linspace(-4, 4, 80_001)
    for quartic, mode, barrier in ((0.2, 5**0.5, 5), (1, 1, 1)):
        energy = -2 * well**2 + quartic * well**4
        assert abs(well[energy.argmin()]) == pytest.approx(mode, abs=1e-3) and -energy.min() == pytest.approx(barrier)
