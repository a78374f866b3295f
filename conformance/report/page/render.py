"""Renders the page from its template, with style, script and data included."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.conformance.report.page.rows import rows
from triton_porting_kit.conformance.report.page.view import view
from triton_porting_kit.untrusted import shown

NAME = "report.html"
_FOLDER = Path(__file__).parent


def text(report: Report) -> str:
    """The page. Text from checks, devices and profiles is escaped, so that it is never markup."""
    style, script = ((_FOLDER / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _template().render(
        **view(report),
        style=style,
        script=script,
        script_hash=f"sha256-{digest}",
        data=_embedded(rows(report)),
    )


def _embedded(data: object) -> str:
    """JSON escaped for a script element: it cannot end the element."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        finalize=_visible,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["css"] = lambda word: str(word).replace(" ", "-")
    environment.filters["words"] = lambda word: str(word).replace("_", " ").replace("-", " ")
    environment.tests["web"] = _is_web
    return environment.get_template("report.html.j2")


def _visible(value: Any) -> Any:
    """Make control characters visible, so that no text hides or reorders the text around it."""
    return shown(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _is_web(link: Any) -> bool:
    return str(link).startswith(("https://", "http://"))
