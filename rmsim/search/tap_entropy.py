r"""Local entropy around a given fixed point of a single network, by the TAP free entropy.

Fixed points s are weighted by their overlap with the given one, sigma:

.. math:: \Phi(\gamma) = \log \sum_{s\ \text{fixed}} e^{\gamma \sigma \cdot s}, \qquad
    1 - 2d = \frac{\langle \sigma \cdot s \rangle}{N}, \qquad
    S(d) = \frac{\Phi - \gamma \langle \sigma \cdot s \rangle}{N}, \qquad
    \frac{dS}{dd} = 2 \gamma .

Message passing with the field gamma sigma gives Phi and the magnetisations (see
:func:`rmsim.search.amp.functional`); gamma is scanned upwards from 0, where d = 1/2 and S is the
entropy of all fixed points. The sum contains sigma itself, so that S >= 2 gamma d; where message
passing stays below, it follows the fixed points at d although sigma alone outweighs them all: Phi
is that of this metastable branch, S(d) is still their entropy. Close to an isolated fixed point the
equations do not converge: the curve ends there, with the fields in `failed`. A few flips away TAP
may be off by a factor of two: at distances 1 and 2 count the fixed points instead,
:func:`rmsim.search.neighbours.count_neighbours`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from rmsim.couplings.chains import DenseChain, draw_dense
from rmsim.dynamics.status import Status
from rmsim.dynamics.sweeps import least_margins
from rmsim.network import Network
from rmsim.search.amp import belief_propagation, check_independent, dense_couplings
from rmsim.search.methods import find_fixed_point
from rmsim.search.planted import plant
from rmsim.tensors import (
    Numbers,
    checked_seed,
    checked_states,
    choose_device,
    choose_dtype,
    generator,
)
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, NotConvergedError, UnreadableDataError
from rmtheory.runtime.untrusted import MALFORMED, parse_json

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]

#: Fields that are scanned by default; d is below 0.001 at the last ones.
GAMMAS = tuple(round(0.05 * k, 2) for k in range(61))

#: Fields in a row without convergence after which larger ones are not tried.
_PATIENCE = 3

#: Where a reference point may come from.
SOURCES = ("dynamics", "rbp", "likelihood", "planted")

#: New starts of a method that fails to give a reference point.
_RESTARTS = 20

#: Largest residual that counts as convergence: far below the errors of TAP itself.
_TOLERANCE = 1e-8


#: A value and its error.
Pair = tuple[float, float]


@dataclass(frozen=True, eq=False)
class LocalEntropy:
    """S(d) around a fixed point, where message passing converged.

    Parameters
    ----------
    gamma, d, entropy : ndarray
        Field, distance per neuron from the reference point, and entropy per neuron; gamma grows, d
        falls.
    mutual : ndarray
        Distance (1 - <m^2>)/2 between two of the fixed points at d, at most 2d(1 - d). This, not
        `d`, is the d of the theory's S_I*(d): compare at equal `mutual`.
    failed : tuple of (float, str)
        Fields that were tried without convergence, and what happened there.
    """

    gamma: Array
    d: Array
    entropy: Array
    mutual: Array
    failed: tuple[tuple[float, str], ...]

    @property
    def metastable(self) -> NDArray[np.bool_]:
        """Where sigma alone outweighs the fixed points at d: S < 2 gamma d."""
        return np.asarray(self.entropy < 2 * self.gamma * self.d)

    def at(self, distance: float) -> float | None:
        """Return S at a distance, None if the curve does not reach it.

        Between two fields S is the cubic with the slopes 2 gamma, which are exact.
        """
        value = self.with_error(distance)[0]
        return None if value is None else value[0]

    def mutual_at(self, distance: float) -> float | None:
        """Return the distance between two of the fixed points at a distance, None beyond the curve.

        Between two fields it is interpolated monotonically.
        """
        value = self.with_error(distance)[1]
        return None if value is None else value[0]

    def with_error(self, distance: float) -> tuple[Pair | None, Pair | None]:
        """Return S and the mutual distance at a distance, each with the error of interpolation.

        That is how much they change if every second field is left out, and the tolerance of the
        messages; that of TAP itself, of order 1/N, is not contained.

        Examples
        --------
        >>> import numpy as np
        >>> gamma = np.linspace(0, 3, 61)
        >>> d = 1 / (1 + np.exp(2 * gamma))  # independent spins: all states are fixed points
        >>> S = -d * np.log(d) - (1 - d) * np.log(1 - d)
        >>> (value, error), (mutual, its) = LocalEntropy(
        ...     gamma, d, S, 2 * d * (1 - d), ()
        ... ).with_error(0.1)
        >>> abs(value - 0.3250829733914482) < error < 1e-6, abs(mutual - 0.18) < its < 1e-3
        (True, True)
        """
        d = self.d[::-1]
        if not d[0] <= distance <= d[-1]:
            return None, None
        if len(d) == 1:
            return (float(self.entropy[0]), _TOLERANCE), (float(self.mutual[0]), _TOLERANCE)
        fine, coarse = self._interpolated(distance, 1), self._interpolated(distance, 2)
        entropy, mutual = (
            (x, abs(x - other) + _TOLERANCE) for x, other in zip(fine, coarse, strict=True)
        )
        return entropy, mutual

    def _interpolated(self, distance: float, step: int) -> tuple[float, float]:
        """Return S and the mutual distance from every `step`-th field and the two ends."""
        chosen = np.union1d(np.arange(0, len(self.d), step), len(self.d) - 1)[::-1]
        d = self.d[chosen]
        entropy = CubicHermiteSpline(d, self.entropy[chosen], 2 * self.gamma[chosen])(distance)
        return float(entropy), float(PchipInterpolator(d, self.mutual[chosen])(distance))

    def to_xarray(self) -> xr.Dataset:
        """Return the curve as a data set over gamma."""
        import xarray as xr  # here, because workers import this module and do without

        values = {
            name: ("gamma", getattr(self, name), {"long_name": what, "units": unit})
            for name, what, unit in (
                ("d", "distance per neuron from the reference point", "1"),
                ("entropy", "entropy per neuron", "nat"),
                ("mutual", "distance per neuron between two fixed points at d", "1"),
            )
        }
        return xr.Dataset(values, {"gamma": self.gamma}, {"failed": json.dumps(self.failed)})

    @classmethod
    def from_xarray(cls, data: xr.Dataset) -> LocalEntropy:
        """Return the curve that :meth:`to_xarray` made into a data set, also after a file.

        Raises
        ------
        UnreadableDataError
            If it is another data set: naming what is missing or does not fit.

        Examples
        --------
        >>> import numpy as np
        >>> curve = LocalEntropy(*np.ones((4, 2)), failed=((0.5, "cap"),))
        >>> LocalEntropy.from_xarray(curve.to_xarray()).failed
        ((0.5, 'cap'),)
        """
        try:
            names = ("gamma", "d", "entropy", "mutual")
            for name in names:
                if data[name].dims != ("gamma",):
                    raise ValueError(f"{name} is over {', '.join(map(str, data[name].dims))}")
            failed = tuple((float(g), str(why)) for g, why in parse_json(data.attrs["failed"]))
            parts = {name: np.asarray(data[name].values, np.float64) for name in names}
            return cls(**parts, failed=failed)
        except MALFORMED as problem:
            raise UnreadableDataError(f"the data set is not a local entropy: {problem}") from None


def local_entropy_around(
    network: Network | DenseChain,
    state: Numbers,
    gammas: Sequence[float] = GAMMAS,
    *,
    sample: int = 0,
    seed: int = 0,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "auto",
    variances: str = "rank-one",
    max_iterations: int = 300,
    progress: Callable[[int], None] | None = None,
) -> LocalEntropy:
    """Return S(d) around the fixed point `state` of one network.

    Parameters
    ----------
    network : Network or DenseChain
        A network, whose couplings are drawn or your own (:meth:`Network.from_array`), or the dense
        couplings of a single sample.
    state : array_like, Tensor or path of an .npy file, (layers, n)
        The fixed point.
    gammas : sequence of float
        Fields, finite and at least 0, in any order.
    sample, seed : int
        Which disorder sample of a network.
    dtype, device
        Precision and place of the couplings of a network, as in the search for the fixed point;
        everything is computed in float64.
    variances : str
        ``rank-one`` or ``exact``, see :class:`rmsim.search.amp.Products`.
    max_iterations : int
        The cap at every field.
    progress : callable, optional
        Called with the number of fields that are done.

    Raises
    ------
    NotConvergedError
        If message passing converges at no field.

    Examples
    --------
    >>> import rmsim as rs
    >>> network = rs.Network(400, rs.Chain(1, jd=0.8))
    >>> result = rs.find_fixed_point(network, "rbp")
    >>> entropy = rs.local_entropy_around(network, result.state[0], [0, 0.5, 1.0])
    >>> bool(entropy.d[0] > 0.45), bool((entropy.entropy > 0).all())  # gamma = 0: all of them
    (True, True)
    """
    number = checks.integer("sample", sample, 0)
    couplings = dense_couplings(network, range(number, number + 1), seed, dtype, device)
    if couplings.samples != 1:
        raise InvalidInputError("couplings", f"{couplings.samples} samples", "a single sample")
    fields = _checked(gammas)
    cap = checks.integer("max_iterations", max_iterations, 1)
    exact = DenseChain(
        couplings.matrices.double(), couplings.jd, couplings.lam_left, couplings.lam_right
    )
    sigma = checked_states("state", state).to(couplings.device).double()
    if sigma.numel() != exact.layers * exact.n:
        allowed = f"of shape {(exact.layers, exact.n)}"
        raise InvalidInputError("state", str(tuple(sigma.shape)), allowed)
    sigma = sigma.reshape(1, exact.layers, exact.n)
    if not bool((least_margins(exact, sigma[None]) > 0).all()):
        raise InvalidInputError("state", "another state", "a fixed point of these couplings")
    return _scan(exact, sigma, fields, variances, cap, progress)


def _scan(
    couplings: DenseChain,
    sigma: torch.Tensor,
    fields: list[float],
    variances: str,
    cap: int,
    progress: Callable[[int], None] | None,
) -> LocalEntropy:
    """Follow the solution as the field grows, each from the one before."""
    start = torch.zeros_like(sigma)
    points: list[tuple[float, float, float, float]] = []
    failed: list[tuple[float, str]] = []
    in_a_row = 0
    for done, gamma in enumerate(fields):
        if progress is not None:
            progress(done)
        beliefs = belief_propagation(
            couplings,
            start=start,
            field=gamma * sigma,
            variances=variances,
            max_iterations=cap,
            tolerance=_TOLERANCE,
        )
        if not bool(beliefs.converged):
            failed.append((gamma, Status(int(beliefs.status)).label))
            in_a_row += 1
            if in_a_row == _PATIENCE:
                break
            continue
        in_a_row, start = 0, beliefs.messages.h
        d = float((1 - (sigma * beliefs.m).mean()) / 2)
        if points and d >= points[-1][1]:  # dd/dgamma < 0 for any measure: another solution
            failed.append((gamma, "not monotonic"))
            continue
        mutual = float((1 - beliefs.m.square().mean()) / 2)
        points.append((gamma, d, float(beliefs.entropy) / sigma.numel(), mutual))
    if progress is not None:
        progress(len(fields))
    if not points:
        raise NotConvergedError(f"message passing around the fixed point: {failed[-1][1]}")
    gamma, d, entropy, mutual = np.array(points).T
    return LocalEntropy(gamma, d, entropy, mutual, tuple(failed))


def _checked(gammas: Sequence[float]) -> list[float]:
    values = sorted({float(checks.exact_real("gamma", gamma)) for gamma in gammas})
    if not values or values[0] < 0:
        raise InvalidInputError("gamma", str(list(gammas)), "fields that are at least 0")
    return values


def reference_point(
    network: Network,
    source: str = "planted",
    *,
    seed: int = 0,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "auto",
) -> tuple[DenseChain, torch.Tensor]:
    """Return the couplings of one network and a fixed point (layers, n) of it: the reference point.

    A planted one is typical: it has its own couplings, in float64, drawn on the CPU. The methods
    search disorder sample 0, all the same one. The couplings are on the device, the state is on
    the CPU.

    Parameters
    ----------
    network : Network
        Dense and not symmetric.
    source : str
        One of :data:`SOURCES`.
    seed : int
        Seed of couplings and starts.
    dtype, device
        Precision and place of drawn couplings.

    Raises
    ------
    NotConvergedError
        If the method finds no fixed point.
    """
    if source not in SOURCES:
        raise InvalidInputError("reference", source, f"one of {', '.join(SOURCES)}")
    check_independent(network)
    number, place, kind = checked_seed(seed), choose_device(device), choose_dtype(dtype)
    if source == "planted":
        sample = plant(network, generator(number, 0, 0))
        matrices = torch.as_tensor(sample.J, device=place)[None]
        couplings = DenseChain(matrices, network.jd, network.lam_left, network.lam_right)
        return couplings, torch.as_tensor(sample.state)
    couplings = draw_dense(network, number, range(1), dtype=kind, device=place)
    result = find_fixed_point(couplings, source, seed=number, restarts=_RESTARTS)
    if not bool(result.solved):
        status = Status(int(result.status))
        reason = f"{status.label} after {int(result.iterations)} iterations, {_RESTARTS} restarts"
        raise NotConvergedError(f"{source} reached no fixed point: {reason}")
    return couplings, result.state[0]
