"""List what lessons give their readers to try by hand."""

from __future__ import annotations

from bnnviz_app.learn.collapse import CollapsePiece
from bnnviz_app.learn.exchange import ExchangePiece

PIECES: dict[str, type[ExchangePiece] | type[CollapsePiece]] = {"exchange": ExchangePiece, "collapse": CollapsePiece}
