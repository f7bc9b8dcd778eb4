"""Write the report into the folder of the figures."""

from __future__ import annotations

from pathlib import Path

from figures.report.gather import Report
from figures.report.html import page
from figures.report.markdown import report_page
from rmtheory.files import write_text

FILES = ("report.html", "report.md", "report.json")


def write(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write report.html, report.md and report.json, the numbers alone, into `folder`."""
    texts = (page(report), report_page(report), report.results.to_json())
    paths = tuple(folder / name for name in FILES)
    for path, text in zip(paths, texts, strict=True):
        write_text(path, text)
    return paths
