r"""All fixed points of one sample by branch and bound or by visiting every state.

Work that would take too long is refused, with its expected duration. Branch and bound
(:mod:`rmsim.enumeration.branch_and_bound`) is faster on one core at every size measured; visiting
every state by products of K with blocks of states,

.. math:: m_t = J_D + s_t (K s)_t \quad\text{for the } 2^{M-1} \text{ states with } s_{M} = +1,

suits a GPU. Products in float32 only sort out states with a margin clearly below zero; the others
are judged in float64 (:func:`rmsim.enumeration.branch_and_bound.fixed_point`), and the count is
exact. For the products, row t is divided by |J_D| + sum_u |K_tu|, so that couplings of any size
stay within float32.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike

from rmsim.couplings.chains import draw_dense
from rmsim.enumeration.branch_and_bound import (
    TooManyStatesError,
    forecast_nodes,
    greedy_order,
    judge,
    search,
    tolerances,
)
from rmsim.enumeration.overlaps import (
    LARGEST,
    MOST_SPINS,
    Array,
    Counts,
    FixedPoints,
    Packed,
    blocks,
    checked_couplings,
    coupling_matrix,
    distance_histogram,
    scaled_up,
)
from rmsim.network import Network
from rmsim.tensors import Numbers, checked_seed, choose_device
from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.processes import as_finished
from rmtheory.runtime.untrusted import MALFORMED, parse_json

if TYPE_CHECKING:
    import xarray as xr

Method = Literal["branch-and-bound", "dense"]

#: A call that needs more nodes than this has to be forced: about a quarter of an hour.
MOST_NODES = 2e10

#: Nodes per second on one core, for the expected duration (``make bench``).
NODES_PER_SECOND: dict[Method, float] = {"branch-and-bound": 3e7, "dense": 1e7}

#: Random descents for a forecast of the nodes: within 15 % on 54 samples of up to 5 layers.
_DESCENTS = 4000

#: States kept unless more are allowed: 0.8 GB.
MOST_STATES = 100_000_000


def enumerate_fixed_points(
    network: Network | Numbers,
    jd: float | None = None,
    lam_left: float | None = None,
    lam_right: float | None = None,
    *,
    sample: int = 0,
    seed: int = 0,
    keep_states: bool = False,
    method: Method = "branch-and-bound",
    device: str | torch.device = "cpu",
    force: bool = False,
    most_states: int = MOST_STATES,
) -> FixedPoints:
    """Find every fixed point of one sample: all margins s h strictly positive.

    A common positive factor of J, J_D and the lambdas changes nothing, whatever its size.

    Parameters
    ----------
    network : Network, or array_like, Tensor or path of an .npy file
        A network, whose couplings are drawn or your own, or just J: (layers, n, n), or (n, n) for
        one layer, with a zero diagonal.
    jd : float
        Self-coupling J_D; a network has its own.
    lam_left, lam_right : float
        Couplings to the previous and to the next layer, 0 by default; a network has its own.
    sample, seed : int
        Which disorder sample of a network, as drawn on a CPU.
    keep_states : bool
        Keep the states; otherwise only count them, in memory that does not grow.
    method : {"branch-and-bound", "dense"}
        One core and few states, or every state by products on `device`.
    device : str or torch.device
        For the dense method.
    force : bool
        Start however long it will take.
    most_states : int
        Refuse to keep more states than this.

    Raises
    ------
    InvalidInputError
        Beyond 64 spins, or 2e10 nodes without `force`; the text says how long it would take.

    Examples
    --------
    >>> import rmsim as rs
    >>> enumeration = rs.enumerate_fixed_points([[0.0, 1.0], [1.0, 0.0]], jd=0.5, keep_states=True)
    >>> enumeration.count, sorted(enumeration.states.reshape(2, 2).tolist())
    (2, [[-1, -1], [1, 1]])
    >>> network = rs.Network(12, rs.Chain(1, jd=1.0))
    >>> enumeration = rs.enumerate_fixed_points(network, keep_states=True)
    >>> again = rs.relax(network, enumeration.states[None])
    >>> enumeration.count > 0, bool(again.solved.all())
    (True, True)
    """
    if method not in get_args(Method):
        raise InvalidInputError("method", method, f"one of {', '.join(get_args(Method))}")
    allowed_states = checks.integer("most_states", most_states, 1)
    place = choose_device(device)
    given = {"jd": jd, "lam_left": lam_left, "lam_right": lam_right}
    if isinstance(network, Network):
        for name, value in given.items():
            if value is not None:
                raise InvalidInputError(name, value, "left out: the network has its own")
        given = {name: getattr(network, name) for name in given}
        check_spins(network.n, network.layers, method)
        number = checks.integer("sample", sample, 0)
        couplings = checked_couplings(draw_couplings(network, seed, number))
    else:
        if jd is None:
            raise InvalidInputError("jd", "nothing", "given with J")
        couplings = checked_couplings(network)
    diagonal, left, right = (
        _coupling(name, 0.0 if value is None else value) for name, value in given.items()
    )
    layers, n, _ = couplings.shape
    check_spins(n, layers, method)
    if method == "branch-and-bound":
        fields = (diagonal, left, right)
        return search_checked(couplings, *fields, keep_states, force, allowed_states)
    if not force:
        check_nodes(2.0 ** (n * layers - 1), n, layers, method=method)
    K, diagonal = scaled_up(blocks(couplings, left, right), diagonal)
    started = time.perf_counter()
    count, packed, nodes, near_ties = search_dense(K, diagonal, place, keep_states, allowed_states)
    seconds = time.perf_counter() - started
    return FixedPoints(n, layers, count, packed, nodes, near_ties, method, seconds)


def search_checked(
    couplings: Array,
    jd: float,
    lam_left: float,
    lam_right: float,
    keep_states: bool,
    force: bool = True,
    most_states: int = MOST_STATES,
) -> FixedPoints:
    """Enumerate by branch and bound couplings (layers, n, n) that are checked or drawn."""
    layers, n, _ = couplings.shape
    K, diagonal = scaled_up(blocks(couplings, lam_left, lam_right), jd)
    started = time.perf_counter()
    order = greedy_order(K, diagonal)
    if not force and 2.0 ** K.shape[0] > MOST_NODES:  # else a forecast is not worth its time
        check_nodes(forecast_nodes(K, diagonal, order, _DESCENTS), n, layers)
    count, packed, nodes, near_ties = search(K, diagonal, keep_states, most_states, order)
    seconds = time.perf_counter() - started
    return FixedPoints(n, layers, count, packed, nodes, near_ties, "branch-and-bound", seconds)


def draw_couplings(network: Network, seed: int, k: int) -> Array:
    """Draw the dense couplings (layers, n, n) of sample k in float64."""
    drawn = draw_dense(network, checked_seed(seed), range(k, k + 1), dtype=torch.float64)
    return drawn.matrices[0].numpy()


def check_spins(n: int, layers: int, method: Method = "branch-and-bound") -> None:
    """Refuse networks whose states do not fit into one integer; `force` does not help."""
    most = MOST_SPINS if method == "branch-and-bound" else MOST_SPINS_DENSE
    if n * layers > most:
        allowed = f"such that n times layers is at most {most}: more spins cannot be enumerated"
        raise InvalidInputError("n", n, f"{allowed} (layers = {layers})")


def check_nodes(
    nodes: float, n: int, layers: int, samples: int = 1, method: Method = "branch-and-bound"
) -> None:
    """Refuse work that takes too long, with its expected duration and how to run it anyway."""
    if nodes > MOST_NODES:
        what = f"{samples} samples of " if samples > 1 else ""
        time_needed = duration(nodes / NODES_PER_SECOND[method])
        cost = f"{nodes:.1g} nodes, {time_needed} on one core"
        raise InvalidInputError(
            "n", n,
            f"smaller, or forced (force=True, --force): {what}{n * layers} spins with these "
            f"couplings need about {cost} (the limit is {MOST_NODES:.0e} nodes)",
        )  # fmt: skip


def forecast(J: ArrayLike, jd: float, lam_left: float = 0.0, lam_right: float = 0.0) -> float:
    """Nodes that branch and bound will visit for one sample, to some 15 %."""
    K, diagonal = scaled_up(coupling_matrix(J, lam_left, lam_right), jd)
    return forecast_nodes(K, diagonal, greedy_order(K, diagonal), _DESCENTS)


def _coupling(name: str, value: object) -> float:
    """Return J_D or a lambda, as large as the entries of J may be."""
    number = float(checks.exact_real(name, value))
    if not abs(number) <= LARGEST:
        raise InvalidInputError(name, number, f"at most {LARGEST} in size")
    return number


def duration(seconds: float) -> str:
    """Say a time in the unit that suits it.

    Examples
    --------
    >>> duration(40), duration(7300), duration(1e7)
    ('40 s', '2 h', '116 days')
    """
    for limit, unit, name in ((100, 1, "s"), (6000, 60, "min"), (1e5, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.2g} {name}"
    days = seconds / 86400
    return f"{days:.0f} days" if days < 1e4 else "many years"


# Every state, by products on any device.

#: Largest number of spins whose states are indices of a tensor.
MOST_SPINS_DENSE = 62

#: Logarithm of the states of a block: the cache of a core, or enough work for a GPU, which waits
#: for the survivors once per block.
_BLOCK_BITS = {"cpu": 15, "cuda": 21}


def search_dense(
    K: Array,
    jd: float,
    device: torch.device,
    keep: bool,
    most_states: int,
    first: int = 0,
    last: int | None = None,
) -> tuple[int, Packed | None, int, int]:
    """Find all fixed points of the network K by visiting all states.

    Parameters
    ----------
    K, jd, keep, most_states
        As for :func:`rmsim.enumeration.branch_and_bound.search`.
    device : torch.device
        Where the products run.
    first, last : int
        Visit only the states of these numbers (their bits; the last spin is +1), by default all
        2^(M-1): a share of the work for one device of several, or for a measurement.

    Returns
    -------
    count, states, nodes, near_ties
        As for :func:`rmsim.enumeration.branch_and_bound.search`; nodes are the states visited.
    """
    spins = K.shape[0]
    last = 1 << (spins - 1) if last is None else last
    dtype = screening_dtype(device)
    size = np.abs(K).sum(axis=1) + abs(jd)
    size[size == 0] = 1.0
    # A state goes on unless a margin, in units of its size, lies below zero by more than the
    # rounding of the terms and of their sum.
    threshold = -2.0 * (spins + 3) * torch.finfo(dtype).eps
    couplings = torch.as_tensor(K / size[:, None], dtype=dtype, device=device)
    own = torch.as_tensor(jd / size[:, None], dtype=dtype, device=device)
    low = min(_BLOCK_BITS.get(device.type, _BLOCK_BITS["cuda"]), spins - 1)
    block = 1 << low
    # One state per column. The lower spins run through all states, the same in every block.
    states = _signs(torch.arange(block, device=device), low, dtype)
    states = torch.cat([states, torch.ones((spins - low, block), dtype=dtype, device=device)])
    fields = torch.empty_like(states)
    tolerance = tolerances(K, jd)
    top = 1 << (spins - 1)
    kept: list[Packed] = []
    count = near_ties = 0
    for start in range(first - first % block, last, block):
        upper = torch.tensor([(start | top) >> low], device=device)
        states[low:] = _signs(upper, spins - low, dtype)
        torch.mm(couplings, states, out=fields)
        alive = fields.mul_(states).add_(own).amin(dim=0) > threshold
        numbers = torch.nonzero(alive)[:, 0].cpu().numpy() + start
        numbers = numbers[(numbers >= first) & (numbers < last)]
        words = numbers.astype(np.uint64) | np.uint64(top)
        good, close = judge(K, jd, words, tolerance)
        near_ties += int(close)
        count += int(good.sum())
        if keep:
            kept.append(words[good])
            if 2 * count > most_states:
                raise TooManyStatesError(
                    f"more than {most_states} fixed points; count them without keeping them, "
                    f"or raise most_states"
                )
    packed = None
    if keep:
        half = np.concatenate([np.empty(0, dtype=np.uint64), *kept])
        packed = np.concatenate([half, half ^ np.uint64((1 << spins) - 1)])
    return 2 * count, packed, last - first, near_ties


def screening_dtype(device: torch.device) -> torch.dtype:
    """float32, unless torch may multiply it on `device` with fewer digits than it has."""
    backend = torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn
    if hasattr(backend.matmul, "fp32_precision"):  # torch 2.9 and later
        exact = backend.matmul.fp32_precision in ("none", "ieee")
    else:
        exact = torch.get_float32_matmul_precision() == "highest"
    return torch.float32 if exact else torch.float64


def _signs(numbers: torch.Tensor, bits: int, dtype: torch.dtype) -> torch.Tensor:
    """The lowest `bits` of every number as spins, one number per column."""
    shifts = torch.arange(bits, device=numbers.device)
    return ((numbers >> shifts[:, None]) & 1).to(dtype).mul_(2).sub_(1)


# Many disorder samples of one network, one core per sample.

#: Pieces of work for every process: enough that none waits long for the last.
_PIECES = 8

#: Samples of few spins that are drawn together: drawing one takes longer than its search.
_TOGETHER, _SMALL = 32, 20


@dataclass(frozen=True, eq=False)
class SampleCounts:
    """The number of fixed points of every sample.

    Parameters
    ----------
    network : Network
        What was enumerated.
    seed : int
        Sample k draws its couplings from ``generator(seed, k, 0)``.
    counts : ndarray of int
        Fixed points of every sample.
    histograms : ndarray of int or None
        Ordered pairs of fixed points of every sample at every distance, (samples, N L + 1).
    nodes : int
        Nodes visited, all samples together.
    near_ties : int
        States judged with twice the digits.
    search_time : float
        Seconds of the searches, added over the processes.
    """

    network: Network
    seed: int
    counts: Counts
    histograms: Counts | None
    nodes: int
    near_ties: int
    search_time: float

    def to_xarray(self) -> xr.Dataset:
        """Return the counts as a data set over sample, with pairs over distance if there are any.

        Examples
        --------
        >>> import rmsim as rs
        >>> drawn = rs.enumerate_samples(rs.Network(10, rs.Chain(1, jd=0.5)), 3, seed=0)
        >>> again = SampleCounts.from_xarray(drawn.to_xarray())
        >>> bool((again.counts == drawn.counts).all()), again.network == drawn.network
        (True, True)
        """
        import xarray as xr  # here, because workers import this module and do without

        values: dict[str, Any] = {
            "counts": ("sample", self.counts, {"long_name": "fixed points"}),
        }
        if self.histograms is not None:
            meaning = {"long_name": "ordered pairs of fixed points"}
            values["histograms"] = (("sample", "distance"), self.histograms, meaning)
        about = {"network": json.dumps(self.network.parameters()), "seed": self.seed}
        about |= {name: getattr(self, name) for name in ("nodes", "near_ties", "search_time")}
        return xr.Dataset(values, attrs=about)

    @classmethod
    def from_xarray(cls, data: xr.Dataset) -> SampleCounts:
        """Return the counts that :meth:`to_xarray` made into a data set, also after a file.

        Raises
        ------
        UnreadableDataError
            If it is another data set: naming what is missing or does not fit.
        """
        try:
            about = parse_json(data.attrs["network"])
            chain = Chain(*(about[name] for name in ("layers", "jd")), **_lambdas(about))
            network = Network(about["n"], chain, about["rho"], about["symmetric"])
            pairs = data.get("histograms")
            arrays: dict[str, tuple[xr.DataArray, tuple[str, ...]]] = {
                "counts": (data["counts"], ("sample",))
            }
            if pairs is not None:
                arrays["histograms"] = (pairs, ("sample", "distance"))
            for name, (array, dims) in arrays.items():
                if array.dims != dims:
                    raise ValueError(f"{name} are over {', '.join(map(str, array.dims))}")
                if array.dtype.kind not in "iu" or bool((array < 0).any()):
                    raise ValueError(f"{name} have entries that are not counts")
            return cls(
                *(network, int(data.attrs["seed"]), data["counts"].values),
                None if pairs is None else pairs.values,
                *(int(data.attrs["nodes"]), int(data.attrs["near_ties"])),
                float(data.attrs["search_time"]),
            )
        except (*MALFORMED, InvalidInputError) as problem:
            raise UnreadableDataError(f"the data set is not sample counts: {problem}") from None


def _lambdas(about: Mapping[str, Any]) -> dict[str, float]:
    names = ("lam_left", "lam_right")
    return {name: about[name] for name in names} if about["layers"] > 1 else {}


def expected_seconds(network: Network, samples: int = 1, seed: int = 0, jobs: int = 1) -> float:
    """Return about how long :func:`enumerate_samples` will take, from a forecast of one sample.

    Nodes are forecast to some 15 %, but differ between samples, and processors visit some 1e7 to
    3e7 of them in a second: it is right within a factor of three. Where it cannot take a
    second nothing is forecast, and it is 0.

    Examples
    --------
    >>> import rmsim as rs
    >>> expected_seconds(rs.Network(12, rs.Chain(1, jd=0.5)), samples=100)
    0.0
    >>> 1 < expected_seconds(rs.Network(34, rs.Chain(1, jd=0.4)), samples=10) < 100
    True
    """
    rate = NODES_PER_SECOND["branch-and-bound"]
    if network.rho != 1 or samples * 2.0 ** (network.n * network.layers) < rate:
        return 0.0  # diluted couplings are refused
    check_spins(network.n, network.layers)
    return samples * _forecast_of(network, seed) / (rate * min(jobs, samples))


def _forecast_of(network: Network, seed: int) -> float:
    """Return the nodes that the first sample needs, about."""
    J = draw_couplings(network, seed, 0)
    return forecast(J, network.jd, network.lam_left, network.lam_right)


def enumerate_samples(
    network: Network,
    samples: int,
    seed: int,
    *,
    jobs: int = 1,
    force: bool = False,
    histogram: bool = False,
    progress: Callable[[int], None] | None = None,
) -> SampleCounts:
    """Count the fixed points of `samples` disorder samples.

    Parameters
    ----------
    network : Network
        Size and couplings, dense; symmetric ones too, but the theory is not for them.
    samples, seed : int
        Samples 0, 1, ... of this seed.
    jobs : int
        Processes.
    force : bool
        Start however long it will take.
    histogram : bool
        Also count the pairs of fixed points at every distance.
    progress : callable, optional
        Called with the number of samples done.

    Examples
    --------
    >>> import rmsim as rs
    >>> rs.enumerate_samples(rs.Network(10, rs.Chain(1, jd=0.5)), 4, seed=0).counts.shape
    (4,)
    """
    wanted = checks.integer("samples", samples, 1)
    processes = min(checks.integer("jobs", jobs, 1), wanted)
    root = checked_seed(seed)
    check_spins(network.n, network.layers)
    if network.rho != 1:
        raise InvalidInputError("rho", network.rho, "1: only dense couplings are enumerated")
    if not force and wanted * 2.0 ** (network.n * network.layers) > MOST_NODES:
        each = _forecast_of(network, root)
        check_nodes(wanted * each, network.n, network.layers, wanted)
    if processes == 1:
        _load_machine_code()
        pieces = []
        together = _TOGETHER if network.n * network.layers <= _SMALL else 1
        for first in range(0, wanted, together):
            last = min(first + together, wanted)
            pieces.append(_piece(network, root, first, last, histogram))
            if progress is not None:
                progress(last)
    else:
        step = math.ceil(wanted / (_PIECES * processes))
        starts = range(0, wanted, step)
        work = [(network, root, k, min(k + step, wanted), histogram) for k in starts]
        finished: dict[int, tuple[Counts, Counts | None, int, int, float]] = {}
        with as_finished(_remote_piece, work, jobs=processes) as outcomes:
            for outcome in outcomes:
                finished[outcome.index] = outcome.result()
                if progress is not None:
                    progress(min(len(finished) * step, wanted))
        pieces = [finished[index] for index in range(len(work))]
    counts, histograms, nodes, near_ties, seconds = zip(*pieces, strict=True)
    return SampleCounts(
        network,
        root,
        np.concatenate(counts),
        np.concatenate([rows for rows in histograms if rows is not None]) if histogram else None,
        sum(nodes),
        sum(near_ties),
        sum(seconds),
    )


def _remote_piece(
    network: Network, seed: int, first: int, last: int, histogram: bool
) -> tuple[Counts, Counts | None, int, int, float]:
    _load_machine_code()
    return _piece(network, seed, first, last, histogram)


def _load_machine_code() -> None:
    """Search something small, so that no measured time includes the loading of the loops."""
    enumerate_fixed_points(np.zeros((1, 2, 2)), 0.5, force=True)


def _piece(
    network: Network, seed: int, first: int, last: int, histogram: bool
) -> tuple[Counts, Counts | None, int, int, float]:
    """Counts, histograms, nodes, near ties and seconds of samples `first` to `last` - 1."""
    counts, rows, nodes, near_ties, seconds = [], [], 0, 0, 0.0
    drawn = draw_dense(network, seed, range(first, last), dtype=torch.float64)
    jd, left, right = float(network.jd), float(network.lam_left), float(network.lam_right)
    for J in drawn.matrices.numpy():
        couplings = J if network.given is None else checked_couplings(J)
        points = search_checked(couplings, jd, left, right, keep_states=histogram)
        counts.append(points.count)
        nodes += points.nodes
        near_ties += points.near_ties
        seconds += points.seconds
        if histogram:
            rows.append(distance_histogram(points))
    return np.array(counts), np.array(rows) if histogram else None, nodes, near_ties, seconds
