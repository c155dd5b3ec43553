"""Small pictures of the papers' figures, drawn from the shipped records with ``python -m bnnviz_app.thumbnails``."""

from __future__ import annotations

import base64
from pathlib import Path

_FOLDER = Path(__file__).parent / "thumbnails"
_PIXELS = (224, 140)


def address(name: str) -> str:
    """Return the picture of an experiment as a data URL, or nothing."""
    file = _FOLDER / f"{name}.png"
    return f"data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}" if file.is_file() else ""


def draw() -> None:
    """Draw the picture of every experiment with a figure."""
    import io

    import holoviews as hv
    import matplotlib.pyplot as plt
    from PIL import Image

    from bnnviz import plots
    from bnnviz.experiments import EXPERIMENTS
    from bnnviz.experiments.record import SHIPPED, read
    from bnnviz.experiments.table import results
    from bnnviz_app.components.cards.experiment_card import picture

    _FOLDER.mkdir(exist_ok=True)
    plots.use("matplotlib")
    for name, experiment in EXPERIMENTS.items():
        file = SHIPPED / f"{name}.json"
        record = read(file, name, here=False) if file.is_file() else None
        figure = picture(experiment, record, results(experiment, record), most=1)
        if figure is None:
            continue
        drawn = hv.render(figure, backend="matplotlib")
        axes = max(drawn.axes, key=lambda each: each.get_position().width * each.get_position().height)
        axes.set(title="", xlabel="", ylabel="", xticks=[], yticks=[])
        if axes.get_legend() is not None:
            axes.get_legend().remove()
        drawn.canvas.draw()
        box = axes.get_window_extent().transformed(drawn.dpi_scale_trans.inverted())
        out = io.BytesIO()
        drawn.savefig(out, dpi=_PIXELS[0] / box.width, bbox_inches=box)
        plt.close(drawn)
        small = Image.open(out).convert("RGB")
        small.thumbnail(_PIXELS)
        small.quantize(32).save(_FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    draw()
