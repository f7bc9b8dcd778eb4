"""The report: every figure, what was run, and every number of the paper against ours."""

from figures.report.gather import Entry, Report, State, gather
from figures.report.results import Results, Run
from figures.report.write import write

__all__ = ["Entry", "Report", "Results", "Run", "State", "gather", "write"]
