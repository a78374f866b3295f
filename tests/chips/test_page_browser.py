"""The page of a profile in a real browser: its script runs, and fills table, list and pictures."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_trace import LINES

from triton_porting_kit.chips.page import page
from triton_porting_kit.chips.trace import parse

pytestmark = pytest.mark.browser

_SEEN = """<script>
const ink = id => { const canvas = document.getElementById(id), pen = canvas.getContext("2d");
  return pen.getImageData(0, 0, canvas.width, canvas.height).data.filter((value, at) => at % 4 === 3 && value).length; };
document.body.append(Object.assign(document.createElement("pre"), { textContent: "ink " + ink("roof") + " " + ink("time") }));
</script></body>"""


def test_the_script_fills_the_page(tmp_path: Path) -> None:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found, "this test needs Chromium"
    text = page(parse(LINES.splitlines()))
    (tmp_path / "profile.html").write_text(text.replace("</body>", _SEEN))
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path}",
    ]
    done = subprocess.run(
        [found, *flags, "--dump-dom", (tmp_path / "profile.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    page_text = done.stdout
    assert '<h1 id="title">Profile on tiny</h1>' in page_text
    cells = re.findall(r"<td>(.*?)</td>", page_text)
    assert cells[:6] == ["first", "1", "0.50 µs", "40.0 %", "10.0 %", "20.0 %"]
    assert cells[6:8] == ["20.0 kB", "12.8 kB, 1.56 times"]
    assert cells[10] == "matrix, 15.0 %"
    assert cells[11] == "second&lt;/script&gt;&lt;b&gt;"
    options = re.findall(r"<option .*?>(.*?)</option>", page_text)
    assert [option.split(",")[0] for option in options] == ["first", "second&lt;/script&gt;&lt;b&gt;"]
    assert "(first commands only)" in options[1]
    roof, time = map(int, re.findall(r"ink (\d+) (\d+)", page_text)[0])
    assert roof > 1000
    assert time > 1000
