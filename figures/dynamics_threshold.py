"""Where the dynamics begins to find fixed points, and what it does below (measured).

Success within a cap of sweeps against J_D for one layer and against lambda for two, sweeps to the
fixed point and 50 % point against N, and the cycles that small networks fall into.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure as Picture

from figures.figure import Figure, Parameters, Progress, Scale
from figures.plotting import DOUBLE

_SEED = 1


def _parameters(
    windows: dict[str, list[float]],
    samples: int,
    max_sweeps: int,
    chain: tuple[list[int], int, int],
    small: tuple[list[int], int, int],
) -> Parameters:
    return {
        "seed": _SEED,
        # N -> first and last J_D and number of values about the 50 % point.
        "windows": windows,
        "samples": samples,
        "max_sweeps": max_sweeps,
        "caps": [max_sweeps // 10, max_sweeps],
        "sweeps_jd": [0.8, 1.0],
        "chain_n": chain[0],
        "chain_p": [0.5, 0.8, 1.0],
        "chain_lam": [0.8, 1.6, chain[1]],
        "chain_samples": chain[2],
        "small_n": small[0],
        "small_jd": [0.0, 0.2, 0.4],
        "small_samples": small[1],
        "small_max_sweeps": small[2],
    }


def compute(parameters: Parameters, progress: Progress) -> xr.Dataset:
    """Measure; what it calls imports torch, which the list of figures does without."""
    from figures.dynamics_data import measured

    return measured(parameters, progress)


def plot(data: xr.Dataset) -> Picture:
    """Draw the six panels."""
    from figures import dynamics_panels as panels

    picture = Picture(figsize=(DOUBLE, 4.5), layout="constrained")
    axes = picture.subplots(2, 3).ravel()
    drawers = (
        panels.success_panel,
        panels.sweeps_panel,
        panels.threshold_panel,
        panels.chain_panel,
        panels.cycle_panel,
        panels.period_panel,
    )
    for letter, axis, draw in zip("abcdef", axes, drawers, strict=True):
        axis.set_title(f"({letter})", loc="left", fontweight="bold")
        draw(axis, data)
    return picture


FIGURE = Figure(
    name="dynamics_threshold",
    title="Convergence of the dynamics: success, sweeps, thresholds, cycles",
    caption=(
        "Synchronous dynamics from random starts. (a) Fraction of samples of one layer that reach "
        "a fixed point within the cap, with logistic fits. (b) Sweeps to the fixed point: median "
        "with its error, and quartiles (band). (c) J_D at which half of the samples succeed, for "
        "two caps; lines are the forms that chi^2 does not reject "
        "of a + b sqrt(ln N) (dash-dotted), a + b ln ln N (dotted), a + b/ln N (dashed) and "
        "a + b/sqrt N (full). (d) Two layers without self-coupling against lambda; p is the chance "
        "of a neuron to be updated in a sweep, 1 without masks. "
        "(e) Fraction of small networks of one layer that end in a cycle. (f) Their period: "
        "median, and quartiles (bars). Other error bars are one standard deviation (Wilson's "
        "interval for fractions, bootstrap for 50 % points)."
    ),
    parameters={
        Scale.TINY: _parameters(
            {"20": [0.0, 0.6, 4], "40": [0.1, 0.7, 4], "80": [0.1, 0.7, 4]},
            12,
            100,
            ([20], 4, 10),
            ([6, 10, 14], 20, 1000),
        ),
        Scale.QUICK: _parameters(
            {
                "100": [0.26, 0.50, 7],
                "200": [0.40, 0.54, 6],
                "400": [0.49, 0.61, 5],
                "800": [0.575, 0.655, 5],
            },
            40,
            1000,
            ([100, 200], 7, 30),
            ([10, 15, 20, 25, 30], 100, 10_000),
        ),
        # Six days of one core, nearly all of it at N = 8000, where 21 values x 1000 samples x 700
        # sweeps read 256 MB of couplings each; rmsim thresholds does the same on a cluster.
        Scale.PAPER: _parameters(
            {
                "200": [0.35, 0.60, 26],
                "500": [0.45, 0.70, 26],
                "1000": [0.52, 0.74, 23],
                "2000": [0.58, 0.78, 21],
                "4000": [0.62, 0.82, 21],
                "8000": [0.65, 0.85, 21],
            },
            1000,
            1000,
            ([200, 500, 1000], 25, 1000),
            ([10, 15, 20, 25, 30, 35, 40], 2000, 200_000),
        ),
    },
    compute=compute,
    plot=plot,
    version=2,
    seed=_SEED,
    core_hours={Scale.PAPER: 144.0},
)
