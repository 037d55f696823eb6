"""report.html: a front on one page that needs no network and no server.

Style, script and data stand in the page itself. Its content security policy allows this very style
and script, by their digests, and nothing else: what models and operators are called is data only,
and nothing is fetched or sent.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from parapipe.documents.front_folder import FrontFolder
from parapipe.figures.page_data import page_data
from parapipe.files.titles import model_title

WEB = Path(__file__).with_name("web")
SCRIPTS = (
    "elements.js",
    "numbers.js",
    "colours.js",
    "state.js",
    "tooltip.js",
    "scatter.js",
    "summary.js",
    "gantt.js",
    "memory.js",
    "processors.js",
    "network.js",
    "sources.js",
    "table.js",
    "main.js",
)
"""In this order they make one script; see web/README.md."""


def page(folder: FrontFolder) -> bytes:
    """Return the page of a front."""
    document = folder.document
    title = f"{model_title(document.model)} on {document.platform}"
    return filled_page("report.html", SCRIPTS, title, page_data(folder))


def filled_page(template: str, scripts: Sequence[str], title: str, data: Any) -> bytes:  # noqa: ANN401 - any JSON document
    """Return a page of `web`: its template with the style, the scripts and the data."""
    style = _source("report.css")
    script = '"use strict";\n(() => {\n' + "\n".join(map(_source, scripts)) + "\n})();\n"
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    filled = Template(_source(template)).substitute(
        policy=escape(policy),
        title=escape(f"{title} – parapipe"),
        style=style,
        script=script,
        data=embedded_json(data),
    )
    return filled.encode()


def embedded_json(data: Any) -> str:  # noqa: ANN401 - any JSON document
    """Return JSON that ends no element it stands in, whatever its texts are."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _source(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
