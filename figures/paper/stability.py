r"""Local stability of the saddle q = qhat = 0 (paper, fig. stab, and deeper chains).

The first panel is the paper's: the coefficient of q^2 in S_rs for two layers, with the J_D where
a single layer loses stability. The second shows the least eigenvalue of M, L S_rs = log z +
q.M.q/4, for one to eight layers.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures.engine.figure import Context, Figure, Parameters, Scale, grid
from figures.engine.plotting import curves, label_axes, panels, shades
from rmtheory.annealed.mean_number import entropy, log_mean_count
from rmtheory.base.chain import Chain
from rmtheory.replica.eigenvalues import instability_root, stability
from rmtheory.replica.symmetric import search_saddles
from rmtheory.second_moment.overlap_exponent import exponent, maximum
from rmtheory.second_moment.ratio import ratio_limit

_DIGITS = 10


def _parameters(points: int, deep_points: int, saddle_points: int) -> Parameters:
    return {
        "digits": _DIGITS,
        "points": points,
        "jd_range": [-0.5, 2.0],
        "lam_curves": [0.0, 0.5, 1.0, 1.5],
        "deep_points": deep_points,
        "deep_lam": 1.0,
        "deep_layers": [1, 2, 3, 4, 5, 6, 7, 8],
        # Where the second moment is computed and other saddles are searched for.
        "few_jd": [0.1, 0.4],
        "few_lam": 0.5,
        "saddle_points": saddle_points,
        # So large that E[Z]/(2H(-J_D))^N has its limit to six digits.
        "large_n": 10**7,
    }


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Evaluate the coefficient and the least eigenvalue, each with its error."""
    digits = parameters["digits"]
    jd = grid(parameters["jd_range"], parameters["points"])
    deep_jd = grid(parameters["jd_range"], parameters["deep_points"])
    lams, layers = parameters["lam_curves"], parameters["deep_layers"]
    total = len(lams) * len(jd) + len(layers) * len(deep_jd)
    done = 0

    coefficient = np.empty((2, len(lams), len(jd)))
    for i, lam in enumerate(lams):
        for j, J in enumerate(jd):
            estimate = stability(Chain(2, J, lam), digits).coefficient
            coefficient[:, i, j] = estimate.value, estimate.error
            done += 1
            context.progress(done, total)
    least = np.empty((2, len(layers), len(deep_jd)))
    for i, L in enumerate(layers):
        for j, J in enumerate(deep_jd):
            estimate = stability(Chain.at_depth(L, J, parameters["deep_lam"]), digits).eigenvalues[
                0
            ]
            least[:, i, j] = estimate.value, estimate.error
            done += 1
            context.progress(done, total)

    root = instability_root(digits)
    error = {"long_name": "bound on the absolute error"}
    data = xr.Dataset(
        {
            "coefficient": (
                ("lam_curve", "jd"),
                coefficient[0],
                {"long_name": "coefficient of q^2 in S_rs, L = 2"},
            ),
            "coefficient_error": (("lam_curve", "jd"), coefficient[1], error),
            "least_eigenvalue": (
                ("layers", "deep_jd"),
                least[0],
                {"long_name": "least eigenvalue of M"},
            ),
            "least_eigenvalue_error": (("layers", "deep_jd"), least[1], error),
            "root": ((), float(root.value), {"long_name": "J_D of lost stability, L = 1"}),
            "root_error": ((), float(root.error), error),
        },
        coords={
            "jd": ("jd", jd, {"long_name": "self-coupling J_D"}),
            "deep_jd": ("deep_jd", deep_jd, {"long_name": "self-coupling J_D"}),
            "lam_curve": np.array(lams),
            "layers": np.array(layers),
        },
    )
    return data.merge(_second_moment(parameters))


def _second_moment(parameters: Parameters) -> xr.Dataset:
    """Exponent and limit of E[Z^2] against E[Z]^2, and saddles with q != 0, at a few J_D."""
    jds, lam = parameters["few_jd"], parameters["few_lam"]
    gap = np.empty((2, 2, len(jds)))
    ratio, mean, saddles = np.empty((2, len(jds))), np.empty((2, len(jds))), np.empty(len(jds))
    for j, J in enumerate(jds):
        for i, chain in enumerate((Chain(1, J), Chain(2, J, lam))):
            top, zero = maximum(chain).value, exponent(chain, 0.0)
            gap[:, i, j] = float(top) - float(zero), top.error + zero.error
        limit = ratio_limit(Chain(1, J), parameters["digits"])
        ratio[:, j] = float(limit), limit.error
        mean[:, j] = _mean_ratio(Chain(1, J), parameters["large_n"])
        saddles[j] = len(search_saddles(Chain(1, J), points=parameters["saddle_points"]).saddles)
    meanings = {
        "exponent_gap": "largest exponent of E[Z^2] minus that of E[Z]^2, L = 1 and 2",
        "ratio_limit": "limit of E[Z^2]/E[Z]^2 as N -> infinity, L = 1",
        "mean_ratio": "E[Z]/(2H(-J_D))^N at a large N, exact, L = 1",
        "saddles": "saddles of S_rs with q != 0 that a search found, L = 1",
    }
    few, both = ("few_jd",), ("few_layers", "few_jd")
    variables = {
        "exponent_gap": (both, gap[0]),
        "exponent_gap_error": (both, gap[1]),
        "ratio_limit": (few, ratio[0]),
        "ratio_limit_error": (few, ratio[1]),
        "mean_ratio": (few, mean[0]),
        "mean_ratio_error": (few, mean[1]),
        "saddles": (few, saddles),
        # Counted; that a grid may miss one is no error bar.
        "saddles_error": (few, np.zeros(len(jds))),
    }
    places = {"few_layers": [1, 2], "few_jd": jds, "large_n": parameters["large_n"]}
    data = xr.Dataset(variables, coords=places)
    for name, meaning in meanings.items():
        data[name].attrs["long_name"] = meaning
    return data


def _mean_ratio(chain: Chain, n: int) -> tuple[float, float]:
    """Return E[Z]/z^N of one layer and its error; the logarithms cancel in some seven digits."""
    exact, leading = log_mean_count(chain, n, 30), entropy(chain, 30)
    ratio = math.exp(float(exact.value - n * leading.value))
    rounding = 2 * float(np.finfo(float).eps)
    return ratio, ratio * (float(exact.error) + n * float(leading.error) + rounding)


def plot(data: xr.Dataset) -> Picture:
    """Draw the two panels."""
    picture, (left, right) = panels(2, height=2.7)
    curves(left, data, "coefficient", "lam_curve")
    root = float(data["root"])
    left.plot([root], [0], marker="o", color="C0", linestyle="none", zorder=5)
    left.annotate(
        rf"$L=1$ root, $J_D={root:.3f}$",
        (root, 0),
        (14, -10),
        textcoords="offset points",
        va="center",
        arrowprops={"arrowstyle": "-", "linewidth": 0.6, "shrinkB": 3},
        fontsize=7,
    )
    left.legend(title=r"$L=2,\ \lambda=$", loc="upper left")
    label_axes(left, r"$J_D$", r"coefficient of $q^2$ in $S_\mathrm{rs}$")

    colours = shades("viridis", data.sizes["layers"])
    curves(right, data, "least_eigenvalue", "layers", colours)
    right.legend(title=r"$\lambda=1,\ L=$", loc="upper left", ncols=2, columnspacing=1.0)
    label_axes(right, r"$J_D$", r"least eigenvalue of $M$")
    for axis in (left, right):
        axis.axhline(0, color="0.3", linewidth=0.7)
        axis.set_xlim(float(data["jd"][0]), float(data["jd"][-1]))
    return picture


FIGURE = Figure(
    name="stability",
    title="Stability of the replica-symmetric saddle q = 0",
    caption=(
        "(a) Coefficient of q^2 in the replica-symmetric entropy of two layers, equal q in both, "
        "after elimination of the conjugate overlap; at zero coupling it is that of a single "
        "layer, which vanishes at the marked point. (b) Least eigenvalue of the stability matrix M "
        "for chains of one to eight layers. The saddle is locally stable where it is positive."
    ),
    parameters={
        Scale.TINY: _parameters(6, 3, 6),
        Scale.QUICK: _parameters(101, 51, 24),
        Scale.PAPER: _parameters(501, 251, 48),
    },
    compute=compute,
    plot=plot,
    earlier=("1-0a27c3d34757", "1-20ae4ade322d"),
)
