"""Text from outside, made harmless."""

from __future__ import annotations

import re

_STRANGE = re.compile("[^\t\n\r\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def plain(text: str) -> str:
    """Without what XML cannot hold and terminals obey: control characters and halves of surrogate pairs."""
    return _STRANGE.sub("\ufffd", text)
