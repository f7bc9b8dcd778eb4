"""The report: every figure, what was run, and every number of the paper against ours."""

from figures.report.collecting import Entry, Report, Results, Run, State, gather
from figures.report.publishing import write

__all__ = ["Entry", "Report", "Results", "Run", "State", "gather", "write"]
