"""A picture of the landscape of one network: curvature and displacement, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rmtheory.files import replacing


def plot_survey(
    found: Mapping[str, Mapping[str, Any]], noises: Sequence[float], path: Path
) -> None:
    """Draw the surveys of some stages, as ``rmsim.experiments.survey`` gives them, into `path`."""
    picture = Figure(figsize=(7.0, 2.6), layout="constrained")
    bend, kick = picture.subplots(1, 2)
    every = np.concatenate([one["curvature"] for one in found.values()])
    bins = np.linspace(every.min(), every.max() + 1e-9, 26).tolist()
    for stage, one in found.items():
        bend.hist(one["curvature"], bins, density=True, alpha=0.6, label=stage)
        middle, error = (100 * one[f"displacement_median{end}"] for end in ("", "_error"))
        line = kick.errorbar(noises, middle, error, marker="o", capsize=2, label=stage)
        low, high = (100 * one[f"displacement_{level}"] for level in ("q25", "q75"))
        kick.fill_between(noises, low, high, color=line[0].get_color(), alpha=0.25, linewidth=0)
    bend.set(xlabel=r"largest path curvature $\kappa$", ylabel="density")
    kick.set(xlabel="probability of a flip", ylabel="displacement (%)")
    for axis in (bend, kick):
        axis.legend()
    with replacing(path, "plot") as temporary:
        picture.savefig(temporary, format=path.suffix[1:], dpi=200)
