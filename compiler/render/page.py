"""The analysis as one HTML file that works offline: plotly's JavaScript and the report are inside it.

Names, source lines and reasons in a report come from untrusted code. They are embedded as JSON without any `<`, the
scripts insert them as text only, and the page's Content-Security-Policy allows the three scripts written here, by hash.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from autockpt.errors import AutockptError

_SCRIPTS = (
    "words.js",
    "summary.js",
    "inspector.js",
    "labels.js",
    "frontier.js",
    "plans.js",
    "timeline.js",
    "peak.js",
    "tensors.js",
    "page.js",
)


def check_page() -> None:
    """Raises AutockptError where plotly is missing; called before minutes of planning as well."""
    try:
        import plotly.offline  # noqa: F401
    except ImportError:
        raise AutockptError("an HTML page needs plotly: pip install 'autockpt[html]'") from None


def page(report: Mapping[str, Any]) -> str:
    """The content of the file; equal reports give equal content."""
    check_page()
    from plotly.offline import get_plotlyjs

    library = get_plotlyjs().replace("</script", r"<\/script")
    theme = _read("theme.js")
    script = "(() => {\n" + "\n".join(map(_read, _SCRIPTS)) + "})();"
    return Template(_read("template.html")).substitute(
        hashes=" ".join(map(_hash, (theme, library, script))),
        title=escape(f"{report['target']}: {report['verdict']}"),
        style=_read("page.css"),
        report=_embedded(report),
        theme=theme,
        library=library,
        script=script,
    )


def _read(name: str) -> str:
    return files("autockpt.render").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _embedded(report: Mapping[str, Any]) -> str:
    """JSON that cannot close the `<script>` element around it."""
    text = json.dumps(_finite(report), allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN: such a number, as the bound of a budget that no plan fits, becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
