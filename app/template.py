"""The document that a page stands in: what is seen until it is there, and what is said if it cannot come."""

from __future__ import annotations

from pathlib import Path

_LIGHTER = Path(__file__).with_name("bokeh_patches.js").read_text(encoding="utf-8")
# The sentence lies behind the page, which covers it as soon as it is painted. Panel's own sign would lie over the page
# until its last element has come to rest, and its turning wheel takes a core where there is no graphics card.
TEMPLATE = f"""
{{% extends "base.html" %}}
{{% block loader_css %}}
#loader {{position: fixed; inset: 0; z-index: -1; align-items: center; justify-content: center;
  font: 15px sans-serif; color: #6d7a86}}
#loader.error {{inset: auto 0 0 0; z-index: 9999; padding: 14px; background: #b3261e; color: #fff}}
#loader.error .spinner {{display: none}}
#loader-error {{display: none; font-weight: 600}}
{{% endblock %}}
{{% block postamble %}}
{{{{ super() }}}}
<script>{_LIGHTER}</script>
{{% endblock %}}
{{% block loader %}}
<div id="loader" style="display: flex">
<div class="spinner">The page is coming.</div>
<div id="loader-error" role="alert"></div>
</div>
{{% endblock %}}
"""
