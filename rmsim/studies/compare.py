r"""Theory against simulation: the exact finite-N averages that measurements are held against.

Over dense Gaussian couplings of variance 1/N off the diagonal the fields have the variance
sigma_N^2 = (N-1)/N, and all averages are exact with J_D and lambda divided by sigma_N: E[Z] = z^N,
and pairs of fixed points that agree on the patterns n_sigma number on average

.. math:: \frac{N!}{\prod_\sigma n_\sigma!} \prod_\sigma W_\sigma(k)^{n_\sigma},
    \qquad k_l = \sum_{\sigma: \sigma_l = 1} n_\sigma .

Divided by E[Z], the pairs at a distance are the neighbours of a typical (planted) fixed point.

The dynamics is held against its theory for N -> infinity (docs: Theory of the dynamics): the flip
averages of networks (:func:`network_averages`), and where a relaxation ended
(:func:`mean_field_of`).
Its sampling on a GPU is :mod:`rmsim.studies.device_theory`. Nothing below :mod:`rmsim.studies`
calls the physics of :mod:`rmtheory`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from rmtheory.annealed.vectorised import entropy_array
from rmtheory.base import checks, statistics
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, OutsideValidityError
from rmtheory.base.statistics import standard_error
from rmtheory.dynamics.averages import LEAST_TRAJECTORIES, MeanField, mean_field
from rmtheory.dynamics.exact_steps import convergence_bound as theory_convergence_bound
from rmtheory.dynamics.finite_size import half_point
from rmtheory.local_entropies.curves import CurveStoppedError
from rmtheory.local_entropies.curves import curve as theory_curve
from rmtheory.local_entropies.typical import typical_neighbourhood
from rmtheory.second_moment.agreement import (
    MOST_LAYERS,
    Counts,
    compositions,
    log_weights,
    number_of_terms,
    patterns,
)
from rmtheory.second_moment.ratio import finite_ratio

if TYPE_CHECKING:  # torch, which the exact averages do without
    from rmsim.dynamics.status import SearchResult
    from rmsim.enumeration.exhaustive import SampleCounts
    from rmsim.network import Network

__all__ = [
    "NetworkAverages",
    "TheoryEntropies",
    "annealed_entropy",
    "convergence_bound",
    "counts_of",
    "half_points",
    "local_entropies",
    "log_mean_count",
    "mean_count",
    "mean_count_unit_variance",
    "mean_field_of",
    "neighbours",
    "network_averages",
    "pairs",
    "second_moment_ratio",
]

Array = NDArray[np.float64]

#: Terms of the exact ratio that a command waits for: about a second.
_MOST_TERMS = 5_000_000

#: The same for the pairs at all distances, whose terms are all in memory.
_MOST_PAIR_TERMS = 300_000


def mean_count(chain: Chain, n: int) -> float:
    """E[Z] with `n` neurons per layer, exact: z^N with couplings divided by sigma_N.

    Examples
    --------
    >>> print(f"{mean_count(Chain(1, 0.4), 16):.2f}")
    85.45
    """
    return _exponential(log_mean_count(chain, n), "log_mean_count")


def annealed_entropy(chain: Chain, n: int) -> float:
    """Annealed entropy log E[Z] per neuron with `n` neurons per layer, exact.

    Examples
    --------
    >>> print(f"{annealed_entropy(Chain(1, 0.4), 2000):.6f}")
    0.270727
    """
    return log_mean_count(chain, n) / (n * chain.finite_layers)


def mean_count_unit_variance(chain: Chain, n: int) -> float:
    """z^N with sigma = 1, as the paper has it for N -> inf: wrong at finite N, for tests.

    Examples
    --------
    >>> print(f"{mean_count_unit_variance(Chain(1, 0.4), 16):.1f}")
    76.0
    """
    size = checks.integer("n", n, 2)
    entropy, _ = entropy_array(chain.finite_layers, chain.jd, chain.lam_left, chain.lam_right)
    return _exponential(size * chain.finite_layers * float(entropy), "a smaller n")


def second_moment_ratio(chain: Chain, n: int) -> float | None:
    """E[Z^2]/E[Z]^2 with `n` neurons per layer, exact; None if it is too long or overflows."""
    layers = chain.finite_layers
    if layers > MOST_LAYERS or number_of_terms(layers, n) > _MOST_TERMS:
        return None
    ratio = float(finite_ratio(chain, n).value)
    return ratio if math.isfinite(ratio) else None


def convergence_bound(n: int) -> float:
    """The paper's bound J_D = sqrt(2 ln N) for one layer to stop at once (SM-A).

    Examples
    --------
    >>> print(f"{convergence_bound(1000):.4f}")
    3.7169
    """
    return float(theory_convergence_bound(n, 15).jd.value)


def neighbours(chain: Chain, n: int, distance: int) -> float:
    """Mean number of fixed points at a Hamming distance from a typical one.

    Parameters
    ----------
    chain : Chain
        At most 6 layers.
    n : int
        Neurons per layer.
    distance : int
        Spins in which they differ, in any layers; 0 gives 1, the point itself.

    Examples
    --------
    >>> print(f"{neighbours(Chain(1, 0.8), 400, 1):.5f}")
    0.80539
    """
    log_neighbours = _log_pairs(chain, n, distance) - log_mean_count(chain, n)
    return _exponential(log_neighbours, "a smaller n or distance")


def pairs(chain: Chain, n: int) -> Array | None:
    """Mean number of ordered pairs of fixed points at every distance 0 ... N L; sums to E[Z^2].

    None where the sums have too many terms.

    Examples
    --------
    >>> chain = Chain(1, 0.4)
    >>> ratio = pairs(chain, 12).sum() / mean_count(chain, 12) ** 2
    >>> bool(abs(ratio / second_moment_ratio(chain, 12) - 1) < 1e-12)
    True
    """
    layers = chain.finite_layers
    if layers > MOST_LAYERS or number_of_terms(layers, n) > _MOST_PAIR_TERMS:
        return None
    counts = compositions(checks.integer("n", n, 2), 2**layers)
    log_terms = _log_terms(chain, n, counts, n)
    distance = counts @ (np.array(patterns(layers)) < 0).sum(axis=1)
    summed = np.bincount(distance, weights=np.exp(log_terms), minlength=n * layers + 1)
    return np.asarray(summed, dtype=np.float64)


#: Samples from which the error of <Z^2>/<Z>^2 is taken for one.
_FEW = 20


def counts_of(samples: SampleCounts) -> dict[str, Any]:
    """Return mean and second moment of enumerated counts against the exact averages.

    Parameters
    ----------
    samples : SampleCounts
        Of :func:`rmsim.enumerate_samples`, two samples or more.

    Returns
    -------
    dict
        JSON values: each measured one with NAME_error, those of theory, and their differences in
        standard errors. Samples that all agree have no spread: the error is then not 0 but
        unknown, None. With histograms also the pairs at every distance.

    Examples
    --------
    >>> import rmsim as rs
    >>> network = rs.Network(10, rs.Chain(1, jd=0.4))
    >>> result = rs.studies.compare.counts_of(rs.enumerate_samples(network, 50, seed=0))
    >>> abs(result["z_score"]) < 4
    True
    """
    chain, n = samples.network.chain, samples.network.n
    mean, ratio = statistics.mean(samples.counts), statistics.second_moment_ratio(samples.counts)
    theory_mean, theory_ratio = mean_count(chain, n), second_moment_ratio(chain, n)
    ratio_z = None
    # The jackknife of few samples does not know of those with many fixed points, which are rare.
    if ratio is not None and theory_ratio is not None and len(samples.counts) >= _FEW:
        ratio_z = ratio.z_score(theory_ratio)
    document: dict[str, Any] = {
        "mean_count": mean.value,
        "mean_count_error": mean.error or None,
        "theory_mean_count": theory_mean,
        "z_score": mean.z_score(theory_mean),
        "second_moment_ratio": ratio.value if ratio else None,
        "second_moment_ratio_error": (ratio.error or None) if ratio else None,
        "theory_ratio": theory_ratio,
        "ratio_z_score": ratio_z,
    }
    if samples.histograms is not None:
        value, error = statistics.mean_of_rows(samples.histograms)
        theory = pairs(chain, n)
        document |= {
            "pairs_by_distance": value.tolist(),
            "pairs_by_distance_error": [one or None for one in error.tolist()],
            "theory_pairs_by_distance": None if theory is None else theory.tolist(),
        }
    return document


# The dynamics.


@dataclass(frozen=True, eq=False)
class NetworkAverages:
    """What :class:`rmtheory.dynamics.averages.MeanField` predicts, measured in networks.

    Parameters
    ----------
    flip_rate, overlap_with_start : array, (samples, starts, sweeps)
        After sweep t = 1, 2, ...
    never_moved : array, (samples, starts)
        Fraction of neurons that no sweep flipped.
    margins : array, (samples, starts, levels)
        Quantiles of s h after the last sweep, at the levels of the theory.
    """

    flip_rate: Array
    overlap_with_start: Array
    never_moved: Array
    margins: Array


def network_averages(
    network: Network,
    sweeps: int,
    *,
    samples: int = 1,
    starts: int = 1,
    p: float = 1.0,
    seed: int = 0,
) -> NetworkAverages:
    """Averages of networks over the sweeps from random states.

    The networks, starts and masks are those of :func:`rmsim.relax` with the same seed. Starts in
    one network are not independent: errors are to be taken over samples.

    Examples
    --------
    >>> from rmsim.network import Network
    >>> rates = network_averages(Network(200, Chain(1, 1.5)), 30, samples=2).flip_rate
    >>> rates.shape, bool(rates[..., 0].min() > 0.02), float(rates[..., -1].max())
    ((2, 1, 30), True, 0.0)
    """
    import torch

    from rmsim.dynamics.relaxation import checked_p, drawn_in_parts, random_starts
    from rmsim.dynamics.sweeps import fill_mask, mask_keys, sweep_

    count = checks.integer("sweeps", sweeps, 1)
    each = checks.integer("starts", starts, 1)
    probability = checked_p(p)
    shape = (checks.integer("samples", samples, 1), each)
    rates, overlaps = (np.empty((*shape, count)) for _ in range(2))
    resting, margins = np.empty(shape), np.empty((*shape, len(MeanField.margin_levels)))
    parts = drawn_in_parts(
        network, samples, seed, starts=each, dtype=torch.float32, device=torch.device("cpu")
    )
    for couplings, some in parts:
        s = random_starts(seed, some, each, network.layers, network.n).to(couplings.dtype)
        up, h = s > 0, torch.empty_like(s)
        start, moved = up.clone(), torch.zeros_like(up)
        keys, mask = None, None
        if probability < 1:
            keys, mask = mask_keys(seed, some, each), torch.empty_like(up)
        here = slice(some.start, some.stop)
        for sweep in range(count):
            before = up.clone()
            if keys is not None and mask is not None:
                fill_mask(keys, sweep + 1, probability, mask)
            sweep_(couplings, s, up, h, "synchronous", mask=mask)
            flipped = up.bitwise_xor(before)
            moved |= flipped
            rates[here, :, sweep] = flipped.flatten(2).double().mean(-1).numpy()
            differ = up.bitwise_xor(start).flatten(2).double().mean(-1)
            overlaps[here, :, sweep] = 1 - 2 * differ.numpy()
        resting[here] = 1 - moved.flatten(2).double().mean(-1).numpy()
        stability = (couplings.field(s) * s).flatten(2).numpy()
        quantiles = np.quantile(stability, MeanField.margin_levels, axis=-1)
        margins[here] = np.moveaxis(quantiles, 0, -1)
    return NetworkAverages(rates, overlaps, resting, margins)


def half_points(sizes: Sequence[int], sweeps: int) -> tuple[Array, Array]:
    """Return J_D at which half of the networks of each size stop within `sweeps`, with its error.

    The theory of the dynamics of one layer, all neurons updated at once; it takes nothing from
    networks but the coefficient of the correction in 1/sqrt(N) (docs: Theory of the dynamics). nan
    where it was not solved: few neurons, or caps far from 1000 sweeps.

    Examples
    --------
    >>> points, errors = half_points([1000, 10], 1000)
    >>> bool(abs(points[0] - 0.637) < 0.01), bool(np.isnan(points[1]))
    (True, True)
    """
    points = np.full((2, len(sizes)), math.nan)
    for k, size in enumerate(sizes):
        with contextlib.suppress(InvalidInputError):
            point = half_point(int(size), sweeps)
            points[:, k] = float(point.value), float(point.error)
    return points[0], points[1]


#: Sweeps and trajectories of a prediction: about a CPU-second for one layer.
_PREDICTED_SWEEPS, _TRAJECTORIES = 100, 100_000


def mean_field_of(network: Network, result: SearchResult) -> dict[str, Any]:
    r"""Return what a relaxation from random states measured beside the theory for N -> infinity.

    Two numbers of the final states, as JSON values, NAME_error beside each NAME, the prediction as
    theory_NAME and the difference in errors of both as NAME_z_score:

    - ``overlap_with_start``, :math:`s(t)\cdot s(0)/N` of the states that did not end in a cycle;
      the theory is C(t, 0) at the sweep at which each of them ended;
    - ``unstable_fraction``, the neurons that disagree with their field in states that reached no
      fixed point; the theory is the stationary value, and None where it tends to 0.

    The theory is that of all states at a given sweep. What is measured is selected: states that
    stopped within the cap, or did not, at a sweep that depends on the path itself. At finite N this
    moves both numbers by about the spread between states, of order :math:`N^{-1/2}`. Where a part
    of the states was left out the prediction has that spread as an error besides its own:
    :math:`(N L)^{-1/2}` for the overlap, and :math:`\sqrt{6 u/(N L)}` for the unstable fraction u,
    the number of flips having some six times the variance of a Poisson number; where none was, 1/N.
    So a score near 0 says that nothing contradicts the theory. Its test is made without selection,
    by :func:`network_averages`. ``theory_reason`` says why there is no
    prediction, where there is none: the theory is that of independent :math:`J_{ij}` and
    :math:`J_{ji}`, all neurons updated at once or under a mask.
    """
    from rmsim.dynamics.relaxation import random_starts
    from rmsim.dynamics.status import Status

    samples, starts = result.status.shape
    begin = random_starts(
        result.seed, range(samples), starts, network.layers, network.n, result.device
    ).cpu()
    overlap = (result.state * begin).double().mean((-1, -2)).numpy()
    unstable = result.unsatisfied.numpy() / (network.n * network.layers)
    cyclic = result.ended(Status.CYCLE).numpy()
    active = ~result.ended(Status.FIXED_POINT).numpy()
    chosen = {"overlap_with_start": ~cyclic, "unstable_fraction": active}
    # Of couplings that are given there is one network, and its starts are independent.
    shape = (samples, starts) if network.given is None else (samples * starts, 1)
    measured = {
        name: _over_networks(values.reshape(shape), chosen[name].reshape(shape))
        for name, values in (("overlap_with_start", overlap), ("unstable_fraction", unstable))
    }
    reason = _outside(network, str(result.settings["update"]))
    theory: dict[str, tuple[float, float] | None] = dict.fromkeys(measured)
    if not reason:
        try:
            theory = _predicted(network, result, ~cyclic)
        except InvalidInputError as refused:  # couplings or sweeps that the theory does not take
            reason = str(refused)
    document: dict[str, Any] = {}
    size = network.n * network.layers
    for name, value in measured.items():
        expected = theory[name]
        if expected is not None:
            spread = 1 / size if chosen[name].all() else _spread(name, expected[0], size)
            expected = expected[0], math.hypot(expected[1], spread)
        document[name], document[f"{name}_error"] = value or (None, None)
        document[f"theory_{name}"], document[f"theory_{name}_error"] = expected or (None, None)
        score = None
        if value is not None and expected is not None and value[1] is not None:
            score = (value[0] - expected[0]) / math.hypot(value[1], expected[1])
        document[f"{name}_z_score"] = score
    document["theory_reason"] = reason
    return document


#: Variance of the number of flips in a sweep of a chaotic network, over that of a Poisson number:
#: 5 to 8 (docs: Theory of the dynamics, A network of N neurons).
_CLUSTERED = 6.0


def _spread(name: str, expected: float, size: int) -> float:
    """Deviation between states of `size` neurons, by which selected ones may differ from all."""
    variance = _CLUSTERED * max(expected, 1 / size) if name == "unstable_fraction" else 1.0
    return math.sqrt(variance / size)


def _over_networks(values: Array, chosen: Array) -> tuple[float, float | None] | None:
    """Mean over the chosen states of every network, then over networks, with its error.

    None if there is no such state; the error is None for a single network, or without spread.
    """
    networks = chosen.any(1)
    if not networks.any():
        return None
    means = np.array(
        [row[some].mean() for row, some in zip(values[networks], chosen[networks], strict=True)]
    )
    error = float(standard_error(means)) if means.size > 1 else 0.0
    return float(means.mean()), error or None


def _outside(network: Network, update: str) -> str:
    """Return why the theory does not hold for these networks; empty if it does."""
    if network.given is not None:
        return "the couplings are given, and the theory is that of random couplings"
    if network.symmetric:
        return "symmetric couplings are outside the theory"
    if update != "synchronous":
        return "the theory updates neurons all at once or under a mask, not layer after layer"
    return ""


def _predicted(
    network: Network, result: SearchResult, chosen: Array
) -> dict[str, tuple[float, float] | None]:
    cap = int(str(result.settings["max_iterations"]))
    sweeps = min(cap, _PREDICTED_SWEEPS)
    theory = mean_field(
        network.chain,
        sweeps,
        p=float(str(result.settings["p"])),
        trajectories=max(LEAST_TRAJECTORIES, _TRAJECTORIES // network.layers),
        seed=result.seed,
    )
    overlap = None
    if chosen.any():
        ended = result.iterations.numpy()[chosen]
        # C(t, 0) from t = 0 on; later than the last sweep computed it is taken from there, and
        # what it has changed since half of that time is an error.
        c = np.append(1.0, theory.overlap_with_start.value)
        error = float(theory.overlap_with_start.error[min(int(np.median(ended)), sweeps) - 1])
        drift = float(np.mean(ended > sweeps)) * abs(float(c[sweeps] - c[sweeps // 2]))
        value = float(c[np.minimum(ended, sweeps)].mean())
        # The sweep at which a state stopped depends on its path: C(t, 0) over these sweeps.
        early, late = (
            c[np.minimum(np.quantile(ended, q).astype(int), sweeps)] for q in (0.25, 0.75)
        )
        overlap = value, math.hypot(error, drift, float(early - late) / 2)
    unstable = None
    if theory.flip_rate_late is not None:
        late = theory.flip_rate_late
        # Of the neurons that disagree with their field a mask flips a share p.
        rate = float(str(result.settings["p"]))
        unstable = float(late.value) / rate, float(late.error) / rate
    elif cap <= sweeps:
        last = theory.unstable[-1]
        unstable = float(last.value), float(last.error)
    return {"overlap_with_start": overlap, "unstable_fraction": unstable}


@dataclass(frozen=True, eq=False)
class TheoryEntropies:
    """S(d) of theory for N -> infinity, d the distance between two of the fixed points counted.

    Parameters
    ----------
    d : ndarray
        Distances between two of the fixed points.
    densest, densest_error : ndarray
        S_I*(d) of the densest regions, above which nothing lies; nan where it is not known.
    typical, typical_error : ndarray
        The same around a typical fixed point; nan where its curve does not reach, and for two
        layers or more.
    densest_slope, typical_slope : ndarray
        dS/dd of the two.
    """

    d: Array
    densest: Array
    densest_error: Array
    typical: Array
    typical_error: Array
    densest_slope: Array
    typical_slope: Array

    def smooth(self, name: str, count: int = 200) -> tuple[Array, Array]:
        """Return `count` points of a curve for a picture, by the values and slopes that are known.

        Straight lines between few distances would have kinks that are not in the theory.

        Parameters
        ----------
        name : str
            ``densest`` or ``typical``.
        count : int
            Points, equally spaced in the root of d: the curves are steep at small d.

        Returns
        -------
        d, S : ndarray
            Empty if the curve is known at fewer than two distances.
        """
        values, slopes = getattr(self, name), getattr(self, f"{name}_slope")
        known = np.isfinite(values) & np.isfinite(slopes)
        if known.sum() < 2:
            return np.empty(0), np.empty(0)
        x = self.d[known]
        spline = CubicHermiteSpline(x, values[known], slopes[known])
        between = np.linspace(np.sqrt(x[0]), np.sqrt(x[-1]), count) ** 2
        between = between.clip(x[0], x[-1])
        return between, spline(between)


#: Fields from which the curve of typical fixed points is made.
_FIELDS = tuple(np.round(np.arange(0, 2.01, 0.1), 2).tolist())


def local_entropies(chain: Chain, distances: Sequence[float]) -> TheoryEntropies:
    """Return what the theory says of regions whose fixed points are at `distances` from each other.

    Fixed points that an algorithm finds lie between: a planted one is typical, and no region is
    denser than S_I*. The abscissa is :attr:`rmsim.search.tap_entropy.LocalEntropy.mutual`.

    Parameters
    ----------
    chain : Chain
        J_D >= 0.
    distances : sequence of float
        Distances between two of the fixed points, above 0 and below 1/2.

    Examples
    --------
    >>> theory = local_entropies(Chain(1, jd=0.8), [0.1, 0.2])
    >>> bool((theory.typical < theory.densest).all())
    True
    """
    d = np.array(sorted({float(checks.exact_real("d", x)) for x in distances}))
    try:
        data = theory_curve(chain, d.tolist())
    except CurveStoppedError as stopped:
        data = stopped.solved
    dense = data.reindex(d=d)
    typical, error, slope = (np.full(d.size, np.nan) for _ in range(3))
    if chain.layers == 1:
        around = typical_neighbourhood(chain, _FIELDS)
        x, order = around.mutual[::-1], slice(None, None, -1)
        inside = (d >= x[0]) & (d <= x[-1])
        spline = PchipInterpolator(x, around.entropy[order])
        typical[inside], slope[inside] = spline(d[inside]), spline(d[inside], 1)
        # The rule of integration, and what half of the fields give between.
        half = PchipInterpolator(x[::2], around.entropy[order][::2], extrapolate=True)(d[inside])
        error[inside] = np.abs(half - typical[inside]) + float(around.error.max())
    values = (dense["internal"].values, dense["internal_error"].values, typical, error)
    slopes = (dense["slope"].values, slope)
    return TheoryEntropies(d, *(np.asarray(x, float) for x in (*values, *slopes)))


def log_mean_count(chain: Chain, n: int) -> float:
    """Log E[Z] with `n` neurons per layer, exact at finite N, for any N."""
    layers = chain.finite_layers
    entropy, _ = entropy_array(layers, *_scaled(chain, n))
    return n * layers * float(entropy)


def _exponential(log: float, instead: str) -> float:
    try:
        return math.exp(log)
    except OverflowError:
        raise OutsideValidityError(f"e^{log:.4g} is not a float: use {instead}") from None


def _scaled(chain: Chain, n: int) -> tuple[float, float, float]:
    """(J_D, lambda_L, lambda_R) in units of sigma_N."""
    scale = math.sqrt(checks.integer("n", n, 2) / (n - 1))
    return scale * chain.jd, scale * chain.lam_left, scale * chain.lam_right


def _log_pairs(chain: Chain, n: int, distance: int) -> float:
    """Log of the mean number of ordered pairs at a distance, -inf where there are none."""
    layers = chain.finite_layers
    if layers > MOST_LAYERS:
        raise InvalidInputError("layers", layers, f"at most {MOST_LAYERS} for pairs")
    steps = checks.integer("distance", distance, 0, n * layers)
    signs = np.array(patterns(layers))
    differing = (signs < 0).sum(axis=1)
    # Sites without a difference (the first pattern) fill up to N.
    defects = np.array(list(_defects(differing[1:].tolist(), steps, n)), dtype=np.int64)
    counts = np.hstack([n - defects.sum(axis=1, keepdims=True), defects])
    return float(special.logsumexp(_log_terms(chain, n, counts, min(steps, n))))


def _log_terms(chain: Chain, n: int, counts: Counts, reach: int) -> Array:
    """Log of the mean number of pairs with these numbers of sites of every pattern, one per row.

    The weights depend on the agreeing sites of every layer alone, of which at most `reach` are
    missing: they are computed once on that grid.
    """
    layers = chain.finite_layers
    k = np.arange(n - reach, n + 1, dtype=float)
    # Odds (1 + rho)/(1 - rho) of the two fields of a site; absent sites get any legal value.
    with np.errstate(divide="ignore", invalid="ignore"):
        same = np.where(k < n, np.maximum(k - 1, 0) / (n - k), np.inf)
        other = np.where(k > 0, np.maximum(n - k - 1, 0) / k, np.inf)
    axes = [tuple(-1 if j == m else 1 for j in range(layers)) for m in range(layers)]
    grids = log_weights(
        _scaled(chain, n),
        [same.reshape(axis) for axis in axes],
        [other.reshape(axis) for axis in axes],
    )
    place = tuple((counts @ (np.array(patterns(layers)) > 0) - (n - reach)).T)
    total = special.gammaln(n + 1) - special.gammaln(counts + 1).sum(axis=1)
    for sites, grid in zip(counts.T, grids, strict=True):
        weights = np.broadcast_to(grid, (k.size,) * layers)[place]
        # 0 sites of a pattern of weight 0 count as a factor 1.
        total = total + np.where(sites > 0, sites * np.where(sites > 0, weights, 0.0), 0.0)
    return np.asarray(total)


def _defects(sizes: list[int], total: int, most: int) -> Iterator[tuple[int, ...]]:
    """Numbers of sites of every pattern, patterns of given sizes adding up to `total`."""
    if len(sizes) == 1:
        number, rest = divmod(total, sizes[0])
        if rest == 0 and number <= most:
            yield (number,)
        return
    for number in range(min(total // sizes[0], most) + 1):
        for others in _defects(sizes[1:], total - number * sizes[0], most - number):
            yield (number, *others)
