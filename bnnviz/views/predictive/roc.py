"""Draw ROC curves: how many of the positives are found, against how many of the others are taken for one."""

from __future__ import annotations

import numpy as np

from bnnviz.views.base import Columns, columns
from bnnviz.views.canvas import PackedColumns
from bnnviz.views.palette import band_html, legend, line_html
from bnnviz.views.series import DASHES, MOST, SeriesView

LEVELS = 3
OPACITIES = (0.16, 0.2, 0.26)  # of the envelopes, the widest first; they lie on each other
SAME = 1e-6  # a smaller spread of areas is rounding
SHADE = 0.14  # of the one envelope of each of several curves


class RocView(SeriesView):
    """Draw the mean of the draws' ROC curves; of one method with envelopes that hold 80, 95 and 99 % of them."""

    name = "roc"
    title = "ROC curve"
    needs = ("roc",)

    def _build(self) -> None:
        fig = self._figure("false positive rate", "true positive rate", (-0.01, 1.01), (-0.01, 1.01))
        self._window(fig.x_range), self._window(fig.y_range)
        self.diagonal = PackedColumns(("x", "y"))
        self._coloured(self.canvas.line(self.diagonal, "x", "y", width=1.2, dash=(4, 4)), role="muted")
        self._levels: tuple[float, ...] = ()
        self.nested = PackedColumns(("x", *(f"{end}{k}" for k in range(LEVELS) for end in ("low", "high"))))
        for k, opacity in enumerate(OPACITIES):
            self._coloured(self.canvas.band(self.nested, "x", f"low{k}", f"high{k}", opacity=opacity), role="blue")
        for packed, dash in zip(self._make_packed_columns(("x", "low", "high", "mean")), DASHES, strict=True):
            shade = self.canvas.band(packed, "x", "low", "high", opacity=SHADE)
            self._glyphs.append((shade, self.canvas.line(packed, "x", "mean", width=2.4, dash=dash)))

    def reset(self, scene: dict) -> None:
        """Forget the curves."""
        super().reset(scene)
        self._levels = ()
        self._push(self.diagonal, columns(x=[0, 1], y=[0, 1]))
        self._empty(self.nested)

    def legend_html(self) -> str:
        """Give the legend: the envelopes of the one method, or the methods."""
        if len(self.names) != 1:
            return super().legend_html()
        p = self.palette
        shares = "–".join(f"{100 * share:.0f}" for share in (min(self._levels), max(self._levels)))
        bands = band_html(f"of {shares} % of the draws", p.blue, p, (0.3, 0.6))
        return legend(
            line_html("mean of the draws", p.chains[0], p), bands, line_html("chance", p.muted, p, dash="4 4")
        )

    def _show(self, part: dict) -> bool:
        curves = part["curves"][:MOST]
        changed = self._name([curve["name"] for curve in curves])
        self.note = "; ".join(_note(curve, len(curves) > 1) for curve in curves)
        alone = len(curves) == 1
        self._levels = tuple(curves[0]["levels"]) if alone else ()
        nothing = columns(**dict.fromkeys(self.nested.data, ()))
        changed |= self._push(self.nested, _nested(curves[0]) if alone else nothing)
        return self._push_each([_curve(curve, shaded=not alone) for curve in curves]) or changed


def _note(curve: dict, named: bool) -> str:
    spread = f" ± {curve['auc_sd']:.2g}" if curve["auc_sd"] > SAME else ""
    return f"{curve['name'] + ' ' if named else 'AUC '}{curve['auc_mean']:.4f}{spread}"


def _nested(curve: dict) -> Columns:
    """Return the envelopes of one curve, the widest first."""
    order = np.argsort(curve["levels"])[::-1][:LEVELS]
    found = {f"{end}{k}": curve[end][level] for k, level in enumerate(order) for end in ("low", "high")}
    missing = {f"{end}{k}": [] for k in range(len(order), LEVELS) for end in ("low", "high")}
    return columns(x=curve["fpr"], **found, **missing)


def _curve(curve: dict, shaded: bool) -> Columns:
    # Several envelopes over each other tell nothing: that of 95 % alone is drawn, where draws differ.
    near = int(np.argmin(np.abs(np.asarray(curve["levels"]) - 0.95)))
    shaded = shaded and curve["auc_sd"] > SAME
    low, high = (curve["low"][near], curve["high"][near]) if shaded else ([], [])
    return columns(x=curve["fpr"], low=low, high=high, mean=curve["mean"])
