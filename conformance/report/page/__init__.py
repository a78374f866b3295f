"""``report.html``: one page that needs nothing but itself."""

from triton_porting_kit.conformance.report.page.render import NAME, text

__all__ = ["NAME", "text"]
