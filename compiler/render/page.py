"""The analysis as one HTML page that opens from a file, offline: plotly's JavaScript and the report are inside it.

Names, source lines and reasons come from strangers' code. They enter as JSON without a single `<`, the scripts put
them on the page as text only, and the page's own policy runs no script but the three written here, by their hashes.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
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
    """Say at once, not after minutes of planning, that a page cannot be made."""
    try:
        import plotly.offline  # noqa: F401
    except ImportError:
        raise AutockptError("an HTML page needs plotly: pip install 'autockpt[html]'") from None


def page(report: dict[str, Any]) -> str:
    """The whole page; the same report gives the same bytes."""
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


def _embedded(report: dict[str, Any]) -> str:
    """JSON in which nothing can end the element around it."""
    text = json.dumps(_finite(report), allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _finite(value: Any) -> Any:
    """JSON knows no infinity: a bound where no plan fits is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
