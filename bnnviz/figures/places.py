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
    rows = [(["main", "main", _BESIDE if _BESIDE in used else "main"], "3fr")] if "main" in used else []
    rows += [((below + below[-1:] * 2)[:3], "2fr")] if below else []
    lines = ['"caption caption caption" auto']
    for places, height in rows:
        if any(used[place] for place in places):
            lines.append('"' + " ".join(f"{place}-tabs" if used[place] else place for place in places) + '" auto')
        lines.append(f'"{" ".join(places)}" minmax(0, {height})')
    return "\n".join(["", *lines, f"/ {_COLUMNS}", ""])
