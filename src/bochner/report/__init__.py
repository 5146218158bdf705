"""A report as one HTML page: what was learnt, from what, how well, and why it was chosen so."""

from bochner.report.page import page, write_page

__all__ = ["page", "write_page"]
