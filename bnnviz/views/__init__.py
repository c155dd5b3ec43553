"""Live figures: each is built once from nothing and then fed with frames. Bokeh only."""

from __future__ import annotations

from bnnviz.views.base import DOCUMENT_THEME, FONT, View
from bnnviz.views.chain.acf import AcfView
from bnnviz.views.chain.correlations import WeightsView
from bnnviz.views.chain.density import DensityView
from bnnviz.views.chain.marginal import MarginalView
from bnnviz.views.chain.rate_ratios import RatiosView
from bnnviz.views.chain.thinning import ThinningView
from bnnviz.views.chain.timeline import TimelineView
from bnnviz.views.chain.trace import TraceView
from bnnviz.views.chain.trajectory import TrajectoryView
from bnnviz.views.comparison.course import CourseView
from bnnviz.views.comparison.curves import CurvesView
from bnnviz.views.comparison.density_ratio import RatioView
from bnnviz.views.comparison.energy import LedgerView
from bnnviz.views.comparison.functionals import FunctionalsView
from bnnviz.views.comparison.lanes import of_lane
from bnnviz.views.comparison.pooled import PooledView
from bnnviz.views.comparison.step_size import CellView, StepErrorView
from bnnviz.views.importance.history import HistoryView
from bnnviz.views.importance.population import PopulationView
from bnnviz.views.importance.weight_ess import GaugeView
from bnnviz.views.palette import ACCEPTED, DARK, KINDS, LIGHT, Kind, Palette
from bnnviz.views.predictive.attack import AttackEntropyView, AttackView
from bnnviz.views.predictive.class_probabilities import ClassProbabilitiesView
from bnnviz.views.predictive.confusion import ConfusionView
from bnnviz.views.predictive.entropy import EntropyView
from bnnviz.views.predictive.prediction import PredictionView
from bnnviz.views.predictive.probability import ProbabilityView
from bnnviz.views.predictive.reliability import ReliabilityView
from bnnviz.views.predictive.roc import RocView
from bnnviz.views.predictive.rotation import TurnedView
from bnnviz.views.predictive.spread import SpreadView
from bnnviz.views.predictive.squared_errors import SquaredErrorsView

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
_OF_MICROSCOPES: tuple[type[View], ...] = (StepErrorView, CellView)
# Of predictions of test rows, by whoever has measured them.
_OF_PREDICTIONS: tuple[type[View], ...] = (RocView, ConfusionView, ProbabilityView, SquaredErrorsView)
# Of how sure these are, several samplers in each.
_OF_UNCERTAINTY: tuple[type[View], ...] = (
    ReliabilityView,
    EntropyView,
    AttackView,
    AttackEntropyView,
    ClassProbabilitiesView,
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
