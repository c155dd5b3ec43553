"""Describe the papers: title, authors, location and topic."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bnnviz.experiments.experiment import Experiment

_TITLE = re.compile(r"(?P<what>.+) \((?P<paper>[^()]+ paper), (?P<place>.+)\)")


@dataclass(frozen=True)
class Paper:
    """A paper whose tables and figures are experiments here."""

    name: str
    short: str
    title: str
    authors: str
    about: str
    doi: str = ""


PAPERS: tuple[Paper, ...] = (
    Paper(
        "pdmp",
        "PDMP",
        "Piecewise Deterministic Markov Processes for Bayesian Neural Networks",
        "Goan, Perrin, Mengersen and Fookes, 2023",
        "Samplers that move along smooth paths and turn at random times, with mini-batches and approximate bounds on"
        " when to turn.",
        "10.48550/arXiv.2302.08724",
    ),
    Paper(
        "pmcnet",
        "PMCnet",
        "Efficient Bayes Inference in Neural Networks through Adaptive Importance Sampling",
        "Huang, Chouzenoux, Elvira and Pesquet, 2023",
        "A population of normal laws that learns where the posterior is, with draws that carry weights.",
        "10.1016/j.jfranklin.2023.08.044",
    ),
    Paper(
        "func",
        "Functional BNN",
        "Functional Bayesian Neural Networks for Model Uncertainty Quantification",
        "Authors unnamed, under review at ICLR 2019",
        "Samplers whose states are distributions of weights, not weights.",
    ),
)


def named(paper: str, place: str, what: str) -> dict[str, str]:
    """Return name and title of the experiment that is a table or figure of a paper."""
    short = next(each.short for each in PAPERS if each.name == paper)
    place_name = place.lower().replace(".", "").replace(" ", "")
    return {"name": f"{paper}-{place_name}", "title": f"{what} ({short} paper, {place})"}


def paper_of(experiment: Experiment) -> Paper | None:
    """Return the paper of an experiment by the prefix of its name, or None."""
    return next((paper for paper in PAPERS if experiment.name.startswith(f"{paper.name}-")), None)


def heading(experiment: Experiment) -> tuple[str, str]:
    """Return the subject of an experiment and its table or figure; "" if its title does not contain them."""
    found = _TITLE.fullmatch(experiment.title)
    if found is None:
        return experiment.title, ""
    return found["what"], found["place"][0].upper() + found["place"][1:]
