"""``report.html``: a self-contained HTML page."""

from triton_porting_kit.conformance.report.page.render import NAME, text

__all__ = ["NAME", "text"]
