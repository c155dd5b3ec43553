"""Share the stage of a run among its figures: in the Lab and in replays, some figures take turns in one place."""

from __future__ import annotations

from collections.abc import Mapping, Set

#: Parts of a frame in each place, with their tabs; the first one that a run has opens in front.
PLACES = {
    "main": {
        "prediction": "Prediction",
        "density": "Density",
        "population": "Population",
        "path": "Weights",
        "graph": "Network",
        "spread": "Spread",
    },
    "why": {"envelope": "Why it turns"},
    "trace": {"trace": "Trace", "gauge": "Weight ESS"},
    "detail": {
        "acf": "ACF",
        "marginal": "Density",
        "weights": "Correlations",
        "ratios": "Ratios",
        "history": "History",
    },
    "table": {"table": "Summary"},
}
#: The order on a phone, where cards are stacked.
ORDER = {name: number for number, name in enumerate(PLACES, 1)}
DRAWER = ("trace", "detail", "table")
_BESIDE = "why"  # takes the path if the sampler turns at no events
_PATH = "path"
_COLUMNS = "minmax(0, 4fr) minmax(0, 3fr) minmax(0, 4fr)"


def shared_out(emits: Set[str]) -> dict[str, list[str]]:
    """Return the parts of a run that share each place."""
    found = {place: [part for part in parts if part in emits] for place, parts in PLACES.items()}
    if not found[_BESIDE] and len(found["main"]) > 1 and _PATH in emits:
        found["main"].remove(_PATH)
        found[_BESIDE] = [_PATH]
    return found


def titles(place: str) -> dict[str, str]:
    """Return the names of the parts that a place may have."""
    return PLACES["main"] | PLACES[place]


def grid(used: Mapping[str, bool]) -> str:
    """Return the CSS grid template of the places in use, by whether each has a line of tabs over its card."""
    below = [place for place in DRAWER if place in used]
    rows = ['"caption caption caption" auto']
    if "main" in used:
        rows += _row(["main", "main", _BESIDE if _BESIDE in used else "main"], used, "minmax(0, 3fr)")
    if below:
        rows += _row((below + below[-1:] * 2)[:3], used, "minmax(0, 2fr)")
    lines = "\n".join(rows)
    return f"\n{lines}\n/ {_COLUMNS}\n"


def _row(places: list[str], used: Mapping[str, bool], height: str) -> list[str]:
    """Return the lines of the template for one row of places."""
    tabs = " ".join(f"{place}-tabs" if used[place] else place for place in places)
    cards = f'"{" ".join(places)}" {height}'
    return [f'"{tabs}" auto', cards] if any(used[place] for place in places) else [cards]
