"""Scenes and frames as a run would give them, made with numpy alone.

A small bouncy particle sampler with the interpolated envelope runs once for each kind of scene; a frame is
a look at it after so many steps. Views and pages are tested on these, without torch and without a backend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

PROBE, REJECTED, BOUNCE, REFRESH, HORIZON, VIOLATION = range(6)
KINDS = ("banana", "network1d", "network_many", "network2d", "network_classes")
STEPS = 6000
FIRST_STEP, STEPS_A_FRAME = 60, 7
REFRESH_RATE, LONGEST, ALPHA, PROBE_TIME = 0.35, 0.45, 1.25, 0.08
#: Of a network of one input, six hidden units and one output.
LAYERS = [
    {"inputs": 1, "outputs": 6, "weight": 0, "bias": 6},
    {"inputs": 6, "outputs": 1, "weight": 12, "bias": 18},
]


@dataclass
class Segment:
    """One straight piece of the path, with all that was proposed on it."""

    x: np.ndarray
    v: np.ndarray
    refresh: float
    first_step: int
    proposals: list[tuple] = field(default_factory=list)  # (t, rate, height, u, kind)
    pieces: list[tuple] = field(default_factory=list)  # (t0, t1, h0, h1)
    end: float = 0.0


@dataclass
class World:
    """A simulated run and what it samples."""

    kind: str
    scene: dict
    grad: Callable[[np.ndarray], np.ndarray]
    segments: list[Segment]
    steps: list[tuple[int, int, int]]  # (segment, proposals on it so far, kind)
    project: Callable[[np.ndarray], np.ndarray]
    function: Callable[[np.ndarray], np.ndarray] | None
    draws: np.ndarray
    trace: np.ndarray


def example_scene(kind: str = "banana") -> dict:
    """Give the scene of one of the example runs.

    Parameters
    ----------
    kind : {"banana", "network1d", "network_many", "network2d", "network_classes"}
        A 2-D density with contours; a network with one input; a network with many.

    Returns
    -------
    dict
        As `Run.scene()` gives it.
    """
    return _world(kind).scene


def example_frame(scene: dict, seq: int, rng: np.random.Generator | None = None) -> dict:
    """Give frame number `seq` of an example run: `STEPS_A_FRAME` proposals after the one before.

    Parameters
    ----------
    scene : dict
        From `example_scene`.
    seq : int
        Number of the frame, from 0.
    rng : numpy.random.Generator or None
        Moves the measured rates (events a second and the like) a little; None leaves them still.

    Returns
    -------
    dict
        A frame with every part that the scene emits.
    """
    return step_frame(scene, FIRST_STEP + STEPS_A_FRAME * seq, seq, rng)


def step_frame(scene: dict, step: int, seq: int, rng: np.random.Generator | None = None) -> dict:
    """Give the frame after exactly `step` proposals (for a page that steps one at a time)."""
    world = _world(scene["run"].removeprefix("example-"))
    step = min(step, len(world.steps) - 1)
    path = _path(world, step)
    parts = {
        "status": _status(world, step, rng),
        "caption": _caption(world, step),
        "events": _events(world, step),
        "envelope": _envelope(world, step),
        "path": path,
        "trace": _trace(world, step),
        "acf": _acf(world, step),
        "table": _table(world, step),
        "ratios": _box(world, step),
        "weights": _weights(world, step),
        "marginal": _marginal(world, step),
    }
    if world.scene["data"] is not None:
        parts["prediction"] = _prediction(world, step)
    if world.scene["layers"]:
        parts["graph"] = _graph(world, step)
    if "spread" in world.scene["emits"]:
        parts["spread"] = {"sd": world.function(world.draws[: _draws(world, step)]).std(axis=0)}
    return {"seq": seq, **parts}


# ---- the runs ---------------------------------------------------------------------------------------------


@cache
def _world(kind: str) -> World:
    if kind not in KINDS:
        raise ValueError(f"no example named {kind!r}; there are {', '.join(KINDS)}")
    worlds = {
        "banana": _banana,
        "network1d": _network_1d,
        "network_many": _network_many,
        "network2d": _network_2d,
        "network_classes": _network_classes,
    }
    return worlds[kind]()


def _banana() -> World:
    rng = np.random.default_rng(3)

    def grad(x: np.ndarray) -> np.ndarray:
        off = 2.0 * (x[..., 1] - x[..., 0] ** 2)
        return np.stack([x[..., 0] - 2.0 * x[..., 0] * off, off], axis=-1)

    gx, gy = np.linspace(-3.2, 3.2, 81), np.linspace(-2.2, 7.2, 81)
    mx, my = np.meshgrid(gx, gy)
    density = np.exp(-(mx**2) / 2 - (my - mx**2) ** 2)
    contour = {"x": gx, "y": gy, "density": density / density.max()}
    plane = {
        "x_label": "x1",
        "y_label": "x2",
        "x_range": (-3.2, 3.2),
        "y_range": (-2.2, 7.2),
        "contour": contour,
    }
    scene = _scene("banana", "Banana (2-D)", ["x1", "x2"], plane, None)
    scene["truth"] = {"mean": np.array([0.0, 1.0]), "sd": np.array([1.0, np.sqrt(2.5)])}
    return _run("banana", scene, grad, np.array([0.4, 0.6]), rng, lambda x: x[..., :2], None)


def _network_1d() -> World:
    rng = np.random.default_rng(5)
    x = np.sort(np.concatenate([rng.uniform(-1, -0.15, 14), rng.uniform(0.3, 1.0, 14)]))
    y = 0.6 * np.sin(4.2 * x) * np.exp(-0.2 * x) + 0.25 * x + rng.normal(0, 0.06, x.size)
    grid = np.linspace(-1.6, 1.6, 121)
    knots, slopes = rng.uniform(-1.6, 1.6, 40), rng.normal(0, 3.5, 40)

    def features(at: np.ndarray) -> np.ndarray:
        return np.tanh((at[:, None] - knots) * slopes)

    phi = features(x)
    precision = phi.T @ phi / 0.07**2 + np.eye(40) * 12.0
    cov = np.linalg.inv(precision)
    mean = cov @ phi.T @ y / 0.07**2
    root = np.linalg.cholesky(cov)
    on_grid = features(grid)
    scene = _scene("network1d", "Network on toy_c, 1-50-1 tanh", [f"w{i}" for i in range(1, 152)], _pca_plane(), None)
    scene["data"] = {
        "kind": "band",
        "x": x,
        "y": y,
        "x_label": "x (as given)",
        "y_label": "y (as given)",
        "x_range": (-1.6, 1.6),
        "y_range": (-2.0, 2.0),
        "editable": True,
    }
    return _run(
        "network1d",
        scene,
        _wavy,
        rng.normal(size=40),
        rng,
        lambda z: z[..., :2] * (1.6, 1.1),
        lambda z: (mean + z @ root.T) @ on_grid.T,
    )


def _network_many() -> World:
    rng = np.random.default_rng(8)
    observed = np.clip(rng.lognormal(3.0, 0.38, 51), 6.0, 50.0)
    centre = observed * 0.9 + 2.2 + rng.normal(0, 2.4, 51)
    spread = rng.normal(0, 1.0, (30, 51)) * rng.uniform(0.2, 0.5, 51)
    scene = _scene(
        "network_many",
        "Network on boston, 13-50-1 tanh",
        [f"w{i}" for i in range(1, 752)],
        _pca_plane(),
        None,
    )
    scene["data"] = {
        "kind": "intervals",
        "observed": observed,
        "label": "MEDV, 1000 USD",
        "range": (4.0, 52.0),
    }
    return _run(
        "network_many",
        scene,
        _wavy,
        rng.normal(size=30),
        rng,
        lambda z: z[..., :2] * (2.4, 1.3),
        lambda z: centre + z @ spread,
    )


def _network_2d() -> World:
    rng = np.random.default_rng(4)
    across, side = 24, np.linspace(-2.0, 2.0, 24)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    knots, slopes = rng.normal(0, 1.2, 20), rng.normal(0, 1.4, (2, 20))
    features = np.tanh(grid @ slopes - knots)
    weight = rng.normal(size=20)
    x = rng.uniform(-1.5, 1.5, (40, 2))
    scene = _scene("network2d", "Network on moons, 2-20-1 tanh", [f"w{i}" for i in range(1, 82)], _pca_plane(), None)
    scene["emits"].append("spread")
    scene["data"] = {
        "kind": "area",
        "class_names": ["no", "yes"],
        "x": x[:, 0],
        "y": x[:, 1],
        "class": (np.tanh(x @ slopes - knots) @ weight > 0).astype(float),
        "editable": True,
        "x_label": "x1",
        "y_label": "x2",
        "x_range": (-2.0, 2.0),
        "y_range": (-2.0, 2.0),
        "columns": across,
    }
    return _run(
        "network2d",
        scene,
        _wavy,
        rng.normal(size=20),
        rng,
        lambda z: z[..., :2] * (1.6, 1.1),
        lambda z: 1 / (1 + np.exp(-3 * (weight + 0.4 * z) @ features.T)),
    )


def _network_classes() -> World:
    rng = np.random.default_rng(6)
    observed = rng.integers(0, 3, 36)
    sure = rng.normal(1.5, 1.6, 36)
    scene = _scene("network_classes", "Network on wine, 13-20-3 tanh", ["w1", "w2", "w3"], _pca_plane(), None)
    scene["data"] = {"kind": "classes", "observed": observed}
    return _run(
        "network_classes",
        scene,
        _wavy,
        rng.normal(size=36),
        rng,
        lambda z: z[..., :2] * (2.4, 1.3),
        lambda z: 1 / (1 + np.exp(-sure - 0.5 * z)),
    )


def _wavy(z: np.ndarray) -> np.ndarray:
    """Gradient of a normal with ripples: rates that no straight line bounds."""
    return z + 1.2 * np.sin(3.0 * z)


def _pca_plane() -> dict:
    return {
        "x_label": "PC 1",
        "y_label": "PC 2",
        "x_range": (-5.0, 5.0),
        "y_range": (-4.0, 4.0),
        "contour": None,
    }


def _scene(kind: str, target: str, names: list[str], plane: dict, data: dict | None) -> dict:
    emits = [
        "status",
        "caption",
        "events",
        "envelope",
        "path",
        "ratios",
        "trace",
        "acf",
        "table",
        "weights",
        "marginal",
    ]
    layers = []
    if kind != "banana":
        emits.insert(5, "prediction")
    if kind in ("network1d", "network2d"):
        emits.append("graph")
        layers = LAYERS
    return {
        "run": f"example-{kind}",
        "spec": {"target": kind, "sampler": "bps", "chains": 4, "seed": 0},
        "title": f"{target}, Bouncy Particle",
        "dim": len(names),
        "names": names,
        "blocks": [{"label": "the first ones", "first": 0, "count": min(len(names), 12)}],
        "layers": layers,
        "emits": emits,
        "sampler": "Bouncy Particle",
        "target": target,
        "plane": plane,
        "data": data,
        "truth": None,
        "canonical": "" if kind == "banana" else "The units are in order.",
    }


def _run(kind, scene, grad, x, rng, project, function) -> World:
    v, segments, steps = rng.normal(size=x.size), [], []
    while len(steps) < STEPS:
        segment = Segment(x, v, rng.exponential(1 / REFRESH_RATE), len(steps))
        kind_of_end = _walk(segment, grad, rng, len(segments), steps)
        x = x + segment.end * v
        if kind_of_end == REFRESH:
            v = rng.normal(size=x.size)
        else:
            g = grad(x)
            v = v - 2 * (g @ v) / (g @ g) * g
        segments.append(segment)
    draws = _along(segments, 2000)
    trace = np.stack([np.roll(project(draws)[:, 0], 467 * c) for c in range(4)])
    return World(kind, scene, grad, segments, steps, project, function, draws, trace)


def _walk(segment: Segment, grad, rng, number: int, steps: list) -> int:
    """Propose on one segment until it ends; give the kind of its end."""

    def rate(t: float) -> float:
        return float(segment.v @ grad(segment.x + t * segment.v))

    points = [(0.0, rate(0.0)), (PROBE_TIME, rate(PROBE_TIME))]
    t0 = 0.0
    while True:
        (ta, ra), (tb, rb) = points[-2:]
        a = ALPHA * (rb - ra) / (tb - ta)
        b = ALPHA * ra - a * ta
        t, limit = _propose(a, b, t0, rng.exponential()), min(t0 + LONGEST, segment.refresh)
        end = min(t, limit)
        segment.pieces.append((t0, end, max(0.0, a * t0 + b), max(0.0, a * end + b)))
        here = rate(end)
        if t < limit:
            kind, height, u = _decide(here, a * t + b, rng.uniform())
        else:
            kind, height, u = (REFRESH if limit == segment.refresh else HORIZON), np.nan, np.nan
        segment.proposals.append((end, here, height, u, kind))
        segment.end = end
        steps.append((number, len(segment.proposals), kind))
        if kind in (BOUNCE, VIOLATION, REFRESH):
            return kind
        points.append((end, here))
        t0 = end


def _propose(a: float, b: float, t0: float, energy: float) -> float:
    h0 = a * t0 + b
    if h0 < 0:
        if a <= 0:
            return np.inf
        t0, h0 = -b / a, 0.0
    inside = h0**2 + 2 * a * energy
    return np.inf if inside < 0 or (a == 0 and h0 == 0) else t0 + 2 * energy / (h0 + np.sqrt(inside))


def _decide(rate: float, height: float, u: float) -> tuple[int, float, float]:
    if rate > height:
        return VIOLATION, height, u
    return (BOUNCE if u * height < rate else REJECTED), height, u


def _along(segments: list[Segment], count: int) -> np.ndarray:
    ends = np.cumsum([s.end for s in segments])
    times = np.linspace(0, ends[-1], count, endpoint=False)
    at = np.searchsorted(ends, times, side="right")
    starts = ends - [s.end for s in segments]
    return np.stack([segments[i].x + (t - starts[i]) * segments[i].v for i, t in zip(at, times, strict=True)])


# ---- the parts of a frame ---------------------------------------------------------------------------------


def _status(world: World, step: int, rng: np.random.Generator | None) -> dict:
    wobble = 1.0 if rng is None else float(rng.normal(1, 0.02))
    return {
        "phase": "sampling",
        "playing": True,
        "speed": None,
        "device": "cpu",
        "kernel": "eager",
        "step": step,
        "events": world.steps[step][0],
        "gradients": 4 * step,
        "draws": _draws(world, step),
        "chains": 4,
        "ess": _ess(world, step),
        "events_per_s": 3140.0 * wobble,
        "gradients_per_s": 6900.0 * wobble,
        "elapsed": step / 700.0,
        "era": 0,
        "shared": 1,
        "message": "",
        "progress": step / len(world.steps),
    }


def _caption(world: World, step: int) -> dict:
    number, count, kind = world.steps[step]
    _, rate, height, _, _ = world.segments[number].proposals[count - 1]
    texts = {
        REJECTED: f"Proposal {count} was rejected: rate {max(rate, 0):.2f} of envelope {height:.2f}.",
        BOUNCE: f"Event {number}, a bounce. Proposal {count}: rate {rate:.2f} of envelope {height:.2f}.",
        VIOLATION: f"Event {number}, a bounce. No. {count} violated the envelope: {rate:.2f} > {height:.2f}.",
        REFRESH: f"Event {number}, a refresh: the velocity was drawn anew.",
        HORIZON: "The horizon was reached without a proposal; the rate is evaluated there.",
    }
    warned = kind == VIOLATION
    return {
        "text": texts[kind],
        "kind": ("probe", "rejected", "bounce", "refresh", "horizon", "violation")[kind],
        "warning": "This bound widens the posterior by about 9 % (7 to 12)." if warned else "",
        "remedies": [{"label": "Use the grid bound", "settings": {"bound": "grid"}}] if warned else [],
    }


def _events(world: World, step: int) -> dict:
    first = max(0, step - 149)
    return {
        "step": np.arange(first, step + 1),
        "kind": np.array([world.steps[i][2] for i in range(first, step + 1)]),
    }


def _envelope(world: World, step: int) -> dict:
    number, count, _ = world.steps[step]
    segment = world.segments[number]
    proposals = np.array(segment.proposals[:count])
    pieces = np.array(segment.pieces[:count])
    t_max = float(max(1.0, pieces[-1, 1] * 1.15))
    t = np.linspace(0, t_max, 81)
    rate = world.grad(segment.x + t[:, None] * segment.v) @ segment.v
    ratios, done = _ratios(world, step)
    shown = np.isfinite(proposals[:, 2])
    seen = proposals[shown]
    return {
        "segment": number,
        "t_max": t_max,
        "y_max": float(max(1.0, rate.max(), pieces[:, 2:].max())),
        "rate_t": t,
        "rate": rate,
        **{f"past_{name}": pieces[:-1, i] for i, name in enumerate(("t0", "t1", "h0", "h1"))},
        **{f"now_{name}": pieces[-1:, i] for i, name in enumerate(("t0", "t1", "h0", "h1"))},
        "proposal_t": seen[:, 0],
        "proposal_rate": seen[:, 1],
        "proposal_height": seen[:, 2],
        "proposal_u": seen[:, 3],
        "proposal_kind": seen[:, 4].astype(int),
        "refresh_t": float(segment.refresh),
        "acceptance": float(np.mean(np.isin(done, (BOUNCE, VIOLATION)))),
        "violation_share": float(np.mean(done == VIOLATION)),
        "excess": float(np.mean(np.maximum(ratios - 1, 0))),
        "ratio_q99": float(np.quantile(ratios, 0.99)),
        "proposals": int(ratios.size),
        "unit": "1/time",
    }


def _ratios(world: World, step: int) -> tuple[np.ndarray, np.ndarray]:
    until = world.steps[step][0]
    rows = np.array([p for s in world.segments[: until + 1] for p in s.proposals if np.isfinite(p[2])])
    return np.maximum(rows[:, 1], 0) / rows[:, 2], rows[:, 4]


def _path(world: World, step: int) -> dict:
    number, count, _ = world.steps[step]
    first = max(0, number - 80)
    segments = world.segments[first : number + 1]
    now = segments[-1]
    head = now.x + now.proposals[count - 1][0] * now.v
    points = world.project(np.stack([*(s.x for s in segments), head]))
    ahead = np.subtract(*world.project(np.stack([head + now.v, head])))
    starts = np.arange(first + 1, number + 1)
    kinds = [world.segments[i - 1].proposals[-1][4] for i in starts]
    plane = world.scene["plane"]
    is_pca = plane["contour"] is None
    return {
        "plane": {"kind": "pca"} if is_pca else {"kind": "coordinates", "i": 0, "j": 1},
        "x_label": plane["x_label"],
        "y_label": plane["y_label"],
        "basis": 0,
        "x": points[:, 0],
        "y": points[:, 1],
        "age": np.linspace(1, 0, len(points)),
        "event_x": points[1:-1, 0],
        "event_y": points[1:-1, 1],
        "event_kind": np.array(kinds, dtype=int),
        "event_step": np.array([world.segments[i].first_step for i in starts], dtype=int),
        "now_x": float(points[-1, 0]),
        "now_y": float(points[-1, 1]),
        "now_dx": float(ahead[0]),
        "now_dy": float(ahead[1]),
        "contour": None,
        "awaits": "",
    }


def _prediction(world: World, step: int) -> dict:
    draws = world.draws[: max(20, _draws(world, step))]
    values = world.function(draws)
    number, count, _ = world.steps[step]
    segment = world.segments[number]
    current = world.function(segment.x + segment.proposals[count - 1][0] * segment.v)
    data = world.scene["data"]
    if data["kind"] == "band":
        lo95, lo50, hi50, hi95 = np.quantile(values, (0.025, 0.25, 0.75, 0.975), axis=0)
        return {
            "kind": "band",
            "x": np.linspace(*data["x_range"], values.shape[1]),
            "mean": values.mean(axis=0),
            "lo50": lo50,
            "hi50": hi50,
            "lo95": lo95,
            "hi95": hi95,
            "functions": values[:: max(1, len(values) // 20)][:20],
            "current": current,
            "draws": len(draws),
            "settling": len(draws) < 24,
        }
    settling = {"settling": len(draws) < 24, "draws": len(draws), "current": current, "kind": data["kind"]}
    if data["kind"] == "area":
        return settling | {"mean": values.mean(axis=0)}
    if data["kind"] == "classes":
        mean = values.mean(axis=0)
        lo, hi = np.percentile(values, [2.5, 97.5], axis=0)
        figures = {"accuracy": float((mean > 0.5).mean()), "nll": float(-np.log(mean).mean())}
        return settling | {"mean": mean, "lo": lo, "hi": hi, "right": mean > 0.5, **figures}
    mean, noise, observed = values.mean(axis=0), 2.8, data["observed"]
    sd = np.sqrt(values.var(axis=0) + noise**2)
    lo, hi = mean - 1.96 * sd, mean + 1.96 * sd
    z = (observed - mean) / sd
    return {
        "kind": "intervals",
        "observed": observed,
        "mean": mean,
        "lo": lo,
        "hi": hi,
        "current": current,
        "rmse": float(np.sqrt(np.mean((observed - mean) ** 2))),
        "nll": float(np.mean(z**2 / 2 + np.log(sd * np.sqrt(2 * np.pi)))),
        "coverage": float(np.mean((observed > lo) & (observed < hi))),
        "draws": len(draws),
    }


def _draws(world: World, step: int) -> int:
    return max(4, int(step / len(world.steps) * len(world.draws)))


def _trace(world: World, step: int) -> dict:
    count = _draws(world, step)
    first = max(0, count - 400)
    plane = world.scene["plane"]
    return {
        "label": plane["x_label"],
        "basis": 0,
        "index": np.arange(first, count),
        "values": world.trace[:, first:count],
        "chains": len(world.trace),
    }


def _box(world: World, step: int) -> dict:
    ratios, done = _ratios(world, step)
    names, shares = ("least", "q25", "median", "q75", "q99", "most"), (0, 0.25, 0.5, 0.75, 0.99, 1)
    inner = dict(zip(names, np.quantile(ratios, shares).tolist(), strict=True))
    return inner | {"proposals": ratios.size, "violation_share": float(np.mean(done == VIOLATION))}


def _weights(world: World, step: int) -> dict:
    rows = world.draws[: _draws(world, step)]
    size = min(world.scene["blocks"][0]["count"], rows.shape[1])
    return {
        "block": "the first ones",
        "first": 0,
        "correlation": np.corrcoef(rows[:, :size].T),
        "draws": len(rows),
        "chosen": 1,
    }


def _graph(world: World, step: int) -> dict:
    rows = world.draws[: _draws(world, step)]
    return {"weights": rows[-1], "mean": rows.mean(0), "sd": rows.std(0, ddof=1), "draws": len(rows), "chosen": 1}


def _marginal(world: World, step: int) -> dict:
    values = world.trace[:, : _draws(world, step)]
    count, edges = np.histogram(values, 40, density=True)
    middle = (edges[1:] + edges[:-1]) / 2
    label = world.scene["plane"]["x_label"]
    return {"label": label, "basis": 0, "x": middle, "y": count, "draws": values.size}


def _autocorrelation(values: np.ndarray, lags: int) -> np.ndarray:
    centred = values - values.mean(axis=1, keepdims=True)
    size = values.shape[1]
    at = np.arange(min(lags, size - 1))
    return np.array([(centred[:, : size - k] * centred[:, k:]).sum() / (centred**2).sum() for k in at])


def _ess(world: World, step: int) -> float:
    count = _draws(world, step)
    acf = _autocorrelation(world.trace[:, :count], 100)
    cut = int(np.argmax(acf < 0.05)) or acf.size
    return float(4 * count / (1 + 2 * acf[1:cut].sum()))


def _acf(world: World, step: int) -> dict:
    count = _draws(world, step)
    acf = _autocorrelation(world.trace[:, :count], 201)
    return {
        "label": world.scene["plane"]["x_label"],
        "lag": np.arange(acf.size),
        "acf": acf,
        "ess": _ess(world, step),
        "draws": 4 * count,
    }


def _table(world: World, step: int) -> dict:
    envelope = _envelope(world, step)
    share = envelope["violation_share"]
    return {
        "rows": [
            ["Acceptance", f"{envelope['acceptance']:.2f}", ""],
            ["Violations", f"{100 * share:.1f} %", "bad" if share > 0.01 else "good"],
            ["E[(ratio-1)+], q99", f"{envelope['excess']:.3f}, {envelope['ratio_q99']:.1f}", ""],
            ["R-hat; bulk ESS", f"{1 + 1.5 / _draws(world, step):.2f}; {_ess(world, step):,.0f}", ""],
            ["ESS per million gradients", f"{_ess(world, step) / (4e-6 * step):,.0f}", ""],
        ]
    }
