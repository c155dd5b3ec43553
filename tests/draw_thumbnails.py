"""Draw small pictures of the papers' figures from the shipped records: ``python tests/draw_thumbnails.py``."""

from __future__ import annotations

import io

import holoviews as hv
import matplotlib.pyplot as plt
from PIL import Image

from bnnviz import plots
from bnnviz.experiments import EXPERIMENTS
from bnnviz.experiments.record import SHIPPED, read
from bnnviz.experiments.table import results
from bnnviz_app.components.cards.experiment_card import picture
from bnnviz_app.thumbnails import FOLDER

PIXELS = (224, 140)


def draw() -> None:
    """Draw the picture of every experiment with a figure."""
    FOLDER.mkdir(exist_ok=True)
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
        drawn.savefig(out, dpi=PIXELS[0] / box.width, bbox_inches=box)
        plt.close(drawn)
        small = Image.open(out).convert("RGB")
        small.thumbnail(PIXELS)
        small.quantize(32).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    draw()
