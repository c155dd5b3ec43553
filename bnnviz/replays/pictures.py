"""Take pictures of a replay's page, by a browser that is driven without a screen."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnnviz import optional
from bnnviz.engine.recording.replay_frames import ReplayFrames, save
from bnnviz.errors import BnnvizError
from bnnviz.figures.palette import DARK, LIGHT, Palette
from bnnviz.replays.chromium import BROWSER_FLAGS, REMEDY, find_chromium
from bnnviz.replays.player import page

if TYPE_CHECKING:
    from playwright.sync_api import Page

SIZE = (1280, 720)
_STILL = (1400, 900)
_CRISP = 2  # pixels of a picture to one of the page
_LAST_S = 3.0  # a moving picture rests so long on its last frame
_COLOURS = 256
_SEEK = (
    "async (frame) => { const p = await bnnviz_player; p.seek(frame); await p.when_painted(); await p.when_painted() }"
)


def check(movie: bool = False) -> None:
    """Refuse pictures where a package or the browser is missing."""
    optional.check(("playwright", "PIL", *(["imageio_ffmpeg"] if movie else [])), "Pictures need", extra="pictures")
    if find_chromium() is None:
        raise BnnvizError(f"Pictures need Chromium: {REMEDY}.")


def stills(
    replay_frames: ReplayFrames, folder: str | Path, kind: str, at: int | None = None, dark: bool = False
) -> list[Path]:
    """Write a picture of each view at one frame."""
    check()
    count = len(replay_frames.frames)
    if at is not None and not 1 <= at <= count:
        raise BnnvizError(f"There is no frame {at}; the film has frames 1 to {count}.", "at")
    folder, made = Path(folder), []
    with _opened(replay_frames, dark, _STILL, _CRISP) as shown:
        shown.evaluate(_SEEK, (at or count) - 1)
        for part, name in shown.evaluate(_CARDS):
            shown.evaluate(_FRONT, part)
            if kind == "svg":
                content = shown.evaluate("async (part) => (await bnnviz_player).svg(part)", part).encode()
            else:
                content = shown.locator(f"#card-{part}").screenshot()
            made.append(folder / f"{name}.{kind}")
            save(made[-1], content)
    return made


_CARDS = "async () => [...(await bnnviz_player).cards.values()].filter((c) => !c.bar).map((c) => [c.part, c.name])"
_FRONT = """async (part) => {
  const p = await bnnviz_player
  if (p.cards.get(part).section.hidden) { p.show(part) }
  await p.when_painted(); await p.when_painted()
}"""


def movie(
    replay_frames: ReplayFrames,
    path: str | Path,
    speed: int = 10,
    dark: bool = False,
    progress: Callable[[float], Any] | None = None,
    size: tuple[int, int] = SIZE,
) -> Path:
    """Write the page, frame by frame, as a moving picture.

    Parameters
    ----------
    size : (int, int), default (1280, 720)
        Size of the page in pixels; even numbers.
    """
    path = Path(path)
    if path.suffix not in (".gif", ".mp4"):
        raise BnnvizError(f"{path} ends in neither .gif nor .mp4.", "out")
    check(movie=path.suffix == ".mp4")
    with _opened(replay_frames, dark, size, 1) as shown:
        pictures = _pictures(shown, len(replay_frames.frames), progress or (lambda share: None))
        content = _gif(pictures, speed, dark) if path.suffix == ".gif" else _mp4(pictures, speed, size)
    save(path, content)
    return path


def _pictures(shown: Page, count: int, progress: Callable[[float], Any]) -> Iterator[Any]:
    from PIL import Image

    for number in range(count):
        shown.evaluate(_SEEK, number)
        yield Image.open(BytesIO(shown.screenshot(type="png"))).convert("RGB")
        progress((number + 1) / count)


def _gif(pictures: Iterator[Any], speed: int, dark: bool) -> bytes:
    from PIL import Image

    full = list(pictures)
    palette = _gif_palette(full[0], full[-1], DARK if dark else LIGHT)
    drawn = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in full]
    times = [round(1000 / speed)] * (len(drawn) - 1) + [round(1000 * _LAST_S)]
    out = BytesIO()
    drawn[0].save(out, "GIF", save_all=True, append_images=drawn[1:], duration=times, loop=0, optimize=False)
    return out.getvalue()


def _gif_palette(first: Any, last: Any, palette: Palette) -> Any:
    """Return one palette for all pictures, or colours would flicker: the views' own, and the commonest of these two.

    A legend's colours are few on a picture, and would fall together with others.
    """
    from PIL import Image, ImageColor

    values = [getattr(palette, each.name) for each in fields(palette)]
    named = {colour for value in values for colour in ([value] if isinstance(value, str) else value)}
    ground = ImageColor.getrgb(palette.surface)
    own = {ImageColor.getrgb(colour) for colour in named}
    own |= {tuple((a + b) // 2 for a, b in zip(colour, ground, strict=True)) for colour in own}
    both = Image.new("RGB", (first.width, 2 * first.height))
    both.paste(first, (0, 0))
    both.paste(last, (0, first.height))
    common = both.quantize(_COLOURS - len(own), dither=Image.Dither.NONE).getpalette()
    found = Image.new("P", (1, 1))
    found.putpalette([*(part for colour in sorted(own) for part in colour), *common][: 3 * _COLOURS])
    return found


def _mp4(pictures: Iterator[Any], speed: int, size: tuple[int, int]) -> bytes:
    import imageio_ffmpeg

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "film.mp4"
        # Sharp lines and small type: a lower rate factor than for photographs.
        options = ["-crf", "20", "-preset", "medium", "-movflags", "+faststart"]
        writer = imageio_ffmpeg.write_frames(
            str(place), size, fps=speed, codec="libx264", quality=None, macro_block_size=2, output_params=options
        )
        writer.send(None)
        picture = None
        for picture in pictures:
            writer.send(picture.tobytes())
        for _ in range(round(speed * _LAST_S) if picture is not None else 0):
            writer.send(picture.tobytes())
        writer.close()
        return place.read_bytes()


@contextmanager
def _opened(replay_frames: ReplayFrames, dark: bool, size: tuple[int, int], scale: int) -> Iterator[Page]:
    """Show the page of replay frames in a browser without a network."""
    from playwright.sync_api import Error, sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        place = Path(folder) / "film.html"
        place.write_text(page(replay_frames, dark), encoding="utf-8")
        try:
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=BROWSER_FLAGS)
        except Error as error:
            raise BnnvizError(f"Chromium does not start: {str(error).splitlines()[0]}") from error
        try:
            context = browser.new_context(
                viewport={"width": size[0], "height": size[1]}, device_scale_factor=scale, offline=True
            )
            shown = context.new_page()
            shown.goto(place.as_uri())
            shown.evaluate("async () => { await bnnviz_player }")
            yield shown
        finally:
            browser.close()
