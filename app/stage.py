"""The style sheets of the stage, on which the cards lie, and of the page around it."""

from __future__ import annotations

#: Style sheets of a stage, and of the page around it.
STAGE = """
:host {display: grid !important; gap: 10px; padding: 10px 14px; box-sizing: border-box; overflow: hidden;
  grid-auto-rows: minmax(0, 1fr); min-height: 0; background: var(--mui-palette-background-default)}
@media (max-height: 800px) {:host {gap: 7px; padding: 7px 10px}}
:host(.waiting) {opacity: .4; transition: opacity .15s .2s}
/* Panel's hidden button would take a row of the grid for itself. */
.scroll-button {display: none !important}
"""
PAGE = ":host {height: 100%; min-height: 0; overflow: hidden}"
