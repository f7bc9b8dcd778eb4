"""Write the report into the folder of the figures."""

from __future__ import annotations

from pathlib import Path

from figures.report.gather import Report
from figures.report.html import page
from figures.report.markdown import report_page
from rmtheory.files import write_text


def write(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write report.html, report.md and report.json, the numbers alone, into `folder`."""
    texts = {
        "report.html": page(report),
        "report.md": report_page(report),
        "report.json": report.results.to_json(),
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    return tuple(folder / name for name in texts)
