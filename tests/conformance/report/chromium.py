"""Driving pages in headless Chromium: a frame of a given width, and a script that uses the page in it."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)

_FRAME = """<!doctype html><meta charset="utf-8"><body style="margin:0">
<iframe src="PAGE" SANDBOX style="border:0;width:WIDTHpx;height:900px"></iframe><pre id="out">not ended</pre>
<script>
const frame = document.querySelector("iframe");
const out = (value) => { document.getElementById("out").textContent = JSON.stringify(value); };
const pause = () => new Promise((done) => setTimeout(done, 50));
addEventListener("load", async () => {
  const page = frame.contentDocument;
  const set = (id, value) => {
    const field = page.getElementById(id);
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const names = () => [...page.querySelectorAll("#list .name")].map((e) => e.textContent);
  const count = () => page.getElementById("count").textContent;
  try { out(await (async () => { SCRIPT })()); } catch (error) { out({ error: String(error) }); }
});
</script>"""


def executable() -> str:
    """Chromium. Without it these tests fail: what a page does cannot be told otherwise."""
    for name in (os.environ.get("CHROMIUM"), *NAMES):
        if name and (found := shutil.which(name)):
            return found
    pytest.fail(
        f"Chromium is needed, and there is none of {', '.join(NAMES)}: `apt-get install chromium`, or name it in "
        "the environment variable CHROMIUM"
    )


def run(folder: Path, *arguments: str, seconds: float = 120) -> str:
    """What Chromium prints."""
    command = [executable(), *FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def drive(
    folder: Path, page: Path, script: str, *, width: int = 1200, virtual: bool = True, scripts: bool = True
) -> Any:
    """Open a page in a frame, run a script beside it, and give what the script returns.

    The script has `page` (the document), `frame`, `set(id, value)`, `names()`, `count()` and `pause()`. `virtual`:
    time is Chromium's own and does not pass in computations; else the script must not wait for anything. `scripts`: whether the page may run its own.
    """
    sandbox = "" if scripts else 'sandbox="allow-same-origin"'
    text = (
        _FRAME.replace("SANDBOX", sandbox)
        .replace("PAGE", page.as_uri())
        .replace("WIDTH", str(width))
        .replace("SCRIPT", script)
    )
    harness = folder / "harness.html"
    harness.write_text(text)
    clock = ["--virtual-time-budget=20000"] if virtual else []
    printed = run(folder, "--allow-file-access-from-files", *clock, "--dump-dom", harness.as_uri())
    match = re.search(r'<pre id="out">(.*?)</pre>', printed, re.DOTALL)
    assert match is not None, printed[-2000:]
    return json.loads(html.unescape(match[1]))
