"""Live figures: each is built once from nothing and then fed with frames. Bokeh only."""

from __future__ import annotations

from bnnviz.views.acf import AcfView
from bnnviz.views.base import DOCUMENT_THEME, FONT, View
from bnnviz.views.density import DensityView
from bnnviz.views.marginal import MarginalView
from bnnviz.views.palette import ACCEPTED, DARK, KINDS, LIGHT, Kind, Palette
from bnnviz.views.prediction import PredictionView
from bnnviz.views.ratios import RatiosView
from bnnviz.views.spread import SpreadView
from bnnviz.views.thinning import ThinningView
from bnnviz.views.timeline import TimelineView
from bnnviz.views.trace import TraceView
from bnnviz.views.trajectory import TrajectoryView
from bnnviz.views.weights import WeightsView

__all__ = [
    "ACCEPTED",
    "DARK",
    "DOCUMENT_THEME",
    "FONT",
    "KINDS",
    "LIGHT",
    "Kind",
    "Palette",
    "View",
    "views",
    "views_for",
]

_VIEWS: tuple[type[View], ...] = (
    TrajectoryView,
    ThinningView,
    RatiosView,
    PredictionView,
    SpreadView,
    DensityView,
    TraceView,
    AcfView,
    WeightsView,
    MarginalView,
    TimelineView,
)


def views() -> list[type[View]]:
    """Give the class of every view."""
    return list(_VIEWS)


def views_for(scene: dict) -> list[type[View]]:
    """Give the classes of the views that a run can feed: those whose parts it emits."""
    emitted = set(scene["emits"])
    return [view for view in _VIEWS if emitted.issuperset(view.needs)]
