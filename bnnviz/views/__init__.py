"""Draw live figures: each is built once from nothing and then fed with frames. Bokeh only."""

from __future__ import annotations

from bnnviz.views.base import DOCUMENT_THEME, FONT, View
from bnnviz.views.chain.acf import AcfView
from bnnviz.views.chain.correlations import CorrelationsView
from bnnviz.views.chain.density import DensityView
from bnnviz.views.chain.graph import NetworkGraphView
from bnnviz.views.chain.marginal import MarginalView
from bnnviz.views.chain.rate_ratios import RateRatiosView
from bnnviz.views.chain.thinning import ThinningView
from bnnviz.views.chain.timeline import TimelineView
from bnnviz.views.chain.trace import TraceView
from bnnviz.views.chain.trajectory import TrajectoryView
from bnnviz.views.comparison.course import CourseView
from bnnviz.views.comparison.curves import CurvesView
from bnnviz.views.comparison.density_ratio import DensityRatioView
from bnnviz.views.comparison.energy import EnergyView
from bnnviz.views.comparison.functionals import FunctionalsView
from bnnviz.views.comparison.lanes import of_lane
from bnnviz.views.comparison.pooled import PooledView
from bnnviz.views.importance.history import HistoryView
from bnnviz.views.importance.population import PopulationView
from bnnviz.views.importance.weight_ess import WeightEssView
from bnnviz.views.palette import ACCEPTED, DARK, KINDS, LIGHT, Kind, Palette
from bnnviz.views.predictive.attack import AttackEntropyView, AttackView
from bnnviz.views.predictive.class_probabilities import ClassProbabilitiesView
from bnnviz.views.predictive.confusion import ConfusionView
from bnnviz.views.predictive.entropy import EntropyView
from bnnviz.views.predictive.prediction import PredictionView
from bnnviz.views.predictive.probability import ProbabilityView
from bnnviz.views.predictive.reliability import ReliabilityView
from bnnviz.views.predictive.roc import RocView
from bnnviz.views.predictive.rotation import RotationView
from bnnviz.views.predictive.spread import SpreadView
from bnnviz.views.predictive.squared_errors import SquaredErrorsView

__all__ = [
    "ACCEPTED",
    "BY_NAME",
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
    RateRatiosView,
    PredictionView,
    SpreadView,
    DensityView,
    TraceView,
    AcfView,
    CorrelationsView,
    NetworkGraphView,
    MarginalView,
    TimelineView,
    PopulationView,
    WeightEssView,
    HistoryView,
)
# Of a race as a whole, whose lanes have those above; of the double well; of step sizes; of predictions of test rows; of
# how sure these are.
_OTHERS: tuple[type[View], ...] = (
    CurvesView,
    *(FunctionalsView, EnergyView, PooledView, DensityRatioView),
    *(RocView, ConfusionView, ProbabilityView, SquaredErrorsView),
    *(ReliabilityView, EntropyView, AttackView, AttackEntropyView, ClassProbabilitiesView, CourseView, RotationView),
)
BY_NAME: dict[str, type[View]] = {view.name: view for view in (*_VIEWS, *_OTHERS)}


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
    return [view for view in (*_VIEWS, *lanes, *_OTHERS) if emitted.issuperset(view.needs)]
