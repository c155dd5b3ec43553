"""Say what a person may do: the owner of the server everything, a student of a class little that others could feel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import panel as pn

from bnnviz.errors import BnnvizError
from bnnviz.specs.run import Spec
from bnnviz_app.address import Visit

GATE = "gate"  # under this name the server keeps it
KEPT = "Recordings are the teacher's: students of a class have none."
_HINT = "the class's computer is shared"


@dataclass(frozen=True)
class Role:
    """Hold what somebody may do; what is None is not bounded."""

    name: str
    keeps: bool = True
    most_upload: int | None = None
    most_dim: int | None = None
    most_chains: int | None = None
    most_draws: int | None = None
    most_numbers: int | None = None
    most_pages: int | None = None

    def upload(self, most: int) -> int:
        """Return the bytes that a file may have where others may send so many."""
        return most if self.most_upload is None else min(most, self.most_upload)

    def check(self, spec: Any, origin: str | None = None) -> None:
        """Look whether somebody may run a spec, whatever page or program asks for it."""
        if origin is not None and not self.keeps:
            raise BnnvizError(KEPT, "recording")
        lanes = [spec] if isinstance(spec, Spec) else list(getattr(spec, "lanes", ()))
        for lane in lanes:
            self._check(lane)
        numbers = sum(lane.chains * max(1, lane.known_dim) for lane in lanes)
        _refuse(numbers, self.most_numbers, "chains times dimensions", "chains")

    def _check(self, spec: Spec) -> None:
        _refuse(spec.known_dim, self.most_dim, "dimensions", "hidden" if "hidden" in spec.target_settings else "size")
        _refuse(spec.chains, self.most_chains, "chains", "chains")
        _refuse(spec.draws or 0, self.most_draws, "draws", "draws")
        if not self.keeps:
            if spec.start is not None:
                raise BnnvizError("In a class students do not start from recordings; leave the start out.", "start")
            if spec.kernel != "eager":
                raise BnnvizError(f"In a class students use the eager kernel: {_HINT}.", "kernel")

    def admit(self, visit: Visit, opening: Any) -> Visit:
        """Return a visit without what the role does not allow, and with a sentence on that."""
        if not self.keeps and visit.flags.pop("recording", None) is not None:
            visit.sentences.append(KEPT)
        try:
            self.check(visit.spec)
        except BnnvizError as error:
            visit.sentences.append(error.sentence)
            visit.spec = opening.checked()
        return visit


OWNER = Role("owner")
STUDENT = Role(
    "student",
    keeps=False,
    most_upload=1_000_000,
    most_dim=5_000,
    most_chains=16,
    most_draws=20_000,
    most_numbers=20_000,
    most_pages=2,
)


def is_class() -> bool:
    """Tell whether the server serves a class."""
    gate = pn.state.cache.get(GATE)
    return gate is not None and gate.students is not None


def present() -> Role:
    """Return the role of who has opened the present page."""
    return of(pn.state.cookies, pn.state.headers)


def of(cookies: Mapping[str, str], headers: Mapping[str, str]) -> Role:
    """Return the role of who sends these cookies and headers."""
    if not is_class():
        return OWNER
    gate = pn.state.cache[GATE]
    given = {name.lower(): value for name, value in headers.items()}
    shown = cookies.get(gate.cookie, ""), given.get("authorization", "")
    return STUDENT if gate.secret is None or not gate.secret.is_shown(*shown) else OWNER


def _refuse(asked: int, most: int | None, what: str, field: str) -> None:
    if most is not None and asked > most:
        raise BnnvizError(f"In a class a student's run has at most {most:,} {what}, not {asked:,}: {_HINT}.", field)
