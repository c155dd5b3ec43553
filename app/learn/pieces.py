"""List what lessons give their readers to try by hand."""

from __future__ import annotations

from bnnviz_app.learn.collapse import CollapsePiece
from bnnviz_app.learn.copies import CopiesPiece
from bnnviz_app.learn.exchange import ExchangePiece
from bnnviz_app.learn.piece import LessonPiece

PIECES: dict[str, type[LessonPiece]] = {"exchange": ExchangePiece, "collapse": CollapsePiece, "copies": CopiesPiece}
