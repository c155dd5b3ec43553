"""How far apart two colours are to the eye, also to one that does not tell all of them: arrays in, numbers out."""

from __future__ import annotations

import numpy as np

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
SIGHT = {
    "all": np.eye(3),
    "no red (protanopia)": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green (deuteranopia)": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no blue (tritanopia)": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(colour: str) -> np.ndarray:
    """Return the linear RGB of #rrggbb."""
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2."""
    high, low = sorted((_TO_XYZ[1] @ linear(colour) for colour in (one, other)), reverse=True)
    return float((high + 0.05) / (low + 0.05))


def lab(colour: str, sight: str = "all") -> np.ndarray:
    """Return CIE L*a*b* of a colour as an eye of this sight sees it."""
    rgb = np.clip(SIGHT[sight] @ linear(colour), 0, 1)
    ratio = _TO_XYZ @ rgb / _WHITE
    x, y, z = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return CIEDE2000 between two L*a*b* colours (Sharma, Wu and Dalal 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25.0**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    hue = h1 + h2 if c1 * c2 == 0 else ((h1 + turn / 2) % 360)
    dl, dc, dh = l2 - l1, c2 - c1, 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    l_, c_ = (l1 + l2) / 2, (c1 + c2) / 2
    waves = np.cos(np.radians(np.multiply([1, 2, 3, 4], hue) + [-30, 0, 6, -63]))
    t = 1 + waves @ [-0.17, 0.24, 0.32, -0.20]
    sl = 1 + 0.015 * (l_ - 50) ** 2 / np.sqrt(20 + (l_ - 50) ** 2)
    sc, sh = 1 + 0.045 * c_, 1 + 0.015 * c_ * t
    rc = 2 * np.sqrt(c_**7 / (c_**7 + 25.0**7))
    rt = -rc * np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    return float(np.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rt * (dc / sc) * (dh / sh)))
