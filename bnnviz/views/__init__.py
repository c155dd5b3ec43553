"""Live figures: each is built once from nothing and then fed with frames. Bokeh only."""

from __future__ import annotations

from bnnviz.views.acf import AcfView
from bnnviz.views.attack import AttackEntropyView, AttackView
from bnnviz.views.base import DOCUMENT_THEME, FONT, View
from bnnviz.views.chances import ChancesView
from bnnviz.views.class_chances import ClassChancesView
from bnnviz.views.confusion import ConfusionView
from bnnviz.views.course import CourseView
from bnnviz.views.curves import CurvesView
from bnnviz.views.density import DensityView
from bnnviz.views.entropy import EntropyView
from bnnviz.views.errors2 import SquaredErrorsView
from bnnviz.views.functionals import FunctionalsView
from bnnviz.views.gauge import GaugeView
from bnnviz.views.history import HistoryView
from bnnviz.views.lanes import of_lane
from bnnviz.views.ledger import LedgerView
from bnnviz.views.marginal import MarginalView
from bnnviz.views.microscope import LensView, StepErrorView
from bnnviz.views.palette import ACCEPTED, DARK, KINDS, LIGHT, Kind, Palette
from bnnviz.views.pooled import PooledView
from bnnviz.views.population import PopulationView
from bnnviz.views.prediction import PredictionView
from bnnviz.views.ratio import RatioView
from bnnviz.views.ratios import RatiosView
from bnnviz.views.reliability import ReliabilityView
from bnnviz.views.roc import RocView
from bnnviz.views.spread import SpreadView
from bnnviz.views.thinning import ThinningView
from bnnviz.views.timeline import TimelineView
from bnnviz.views.trace import TraceView
from bnnviz.views.trajectory import TrajectoryView
from bnnviz.views.turned import TurnedView
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
    "of_lane",
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
    PopulationView,
    GaugeView,
    HistoryView,
)
# Of a race as a whole; its lanes have those above.
_OF_RACES: tuple[type[View], ...] = (CurvesView,)
_OF_WELLS: tuple[type[View], ...] = (FunctionalsView, LedgerView, PooledView, RatioView)
_OF_MICROSCOPES: tuple[type[View], ...] = (StepErrorView, LensView)
# Of predictions of test rows, by whoever has measured them.
_OF_PREDICTIONS: tuple[type[View], ...] = (RocView, ConfusionView, ChancesView, SquaredErrorsView)
# Of how sure these are, several samplers in each.
_OF_UNCERTAINTY: tuple[type[View], ...] = (
    ReliabilityView,
    EntropyView,
    AttackView,
    AttackEntropyView,
    ClassChancesView,
    CourseView,
    TurnedView,
)


def views() -> list[type[View]]:
    """Give the class of every view of a run."""
    return list(_VIEWS)


def views_for(scene: dict) -> list[type[View]]:
    """Give the classes of the views that a run or a race can feed: those whose parts it emits."""
    emitted = set(scene["emits"])
    lanes = [
        of_lane(view, number, lane["name"])
        for view in _VIEWS
        if view.needs[0] in scene.get("pictures", ())
        for number, lane in enumerate(scene["lanes"])
    ]
    known = (*_VIEWS, *lanes, *_OF_RACES, *_OF_WELLS, *_OF_MICROSCOPES, *_OF_PREDICTIONS, *_OF_UNCERTAINTY)
    return [view for view in known if emitted.issuperset(view.needs)]
