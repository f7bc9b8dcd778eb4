r"""Local entropy around a given fixed point of a single network, by the TAP free entropy.

Fixed points s are weighted by their overlap with the given one, sigma:

.. math:: \Phi(\gamma) = \log \sum_{s\ \text{fixed}} e^{\gamma \sigma \cdot s}, \qquad
    1 - 2d = \frac{\langle \sigma \cdot s \rangle}{N}, \qquad
    S(d) = \frac{\Phi - \gamma \langle \sigma \cdot s \rangle}{N}, \qquad
    \frac{dS}{dd} = 2 \gamma .

Message passing with the field gamma sigma gives Phi and the magnetisations (see
:mod:`rmsim.messages.free_entropy`); gamma is scanned upwards from 0, where d = 1/2 and S is the
entropy of all fixed points. The sum contains sigma itself, so that S >= 2 gamma d; where message
passing stays below, it follows the fixed points at d although sigma alone outweighs them all: Phi
is that of this metastable branch, S(d) is still their entropy. Close to an isolated fixed point the
equations do not converge: the curve ends there, and says so. A few flips away TAP may be off by a
factor of two: at distances 1 and 2 count the fixed points instead,
:func:`rmsim.planted.neighbours_at`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicHermiteSpline

from rmsim.couplings.dense import DenseChain
from rmsim.dynamics.verify import least_margins
from rmsim.messages.amp import belief_propagation
from rmsim.messages.outcome import Outcome
from rmtheory import checks
from rmtheory.errors import InvalidInputError, NotConvergedError

Array = NDArray[np.float64]

#: Fields that are scanned by default; d is below 0.001 at the last ones.
GAMMAS = tuple(round(0.05 * k, 2) for k in range(61))

#: Fields in a row without convergence after which larger ones are not tried.
_PATIENCE = 3

#: Largest residual that counts as convergence: far below the errors of TAP itself.
_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class LocalEntropy:
    """S(d) around a fixed point, where message passing converged.

    Parameters
    ----------
    gamma, d, entropy : ndarray
        Field, distance per neuron, and entropy per neuron; gamma grows, d falls.
    mutual : ndarray
        Distance (1 - <m^2>)/2 between two of the fixed points at d, which is the d of the theory's
        S_I*(d); at most 2d(1 - d).
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
        d, s, gamma = self.d[::-1], self.entropy[::-1], self.gamma[::-1]
        if not d[0] <= distance <= d[-1]:
            return None
        if len(d) == 1:
            return float(s[0])
        return float(CubicHermiteSpline(d, s, 2 * gamma)(distance))


def local_entropy(
    couplings: DenseChain,
    state: ArrayLike | torch.Tensor,
    gammas: Sequence[float] = GAMMAS,
    *,
    variances: str = "rank-one",
    max_iterations: int = 300,
) -> LocalEntropy:
    """Return S(d) around the fixed point `state` of one network.

    Parameters
    ----------
    couplings : DenseChain
        The network, a single sample; everything is computed in float64.
    state : array_like, (layers, n)
        The fixed point.
    gammas : sequence of float
        Fields, finite and at least 0, in any order.
    variances : str
        ``rank-one`` or ``exact``, see :mod:`rmsim.messages.products`.
    max_iterations : int
        The cap at every field.

    Raises
    ------
    NotConvergedError
        If message passing converges at no field.
    """
    if couplings.samples != 1:
        raise InvalidInputError("couplings", f"{couplings.samples} samples", "a single sample")
    fields = _checked(gammas)
    cap = checks.integer("max_iterations", max_iterations, 1)
    exact = DenseChain(
        couplings.matrices.double(), couplings.jd, couplings.lam_left, couplings.lam_right
    )
    sigma = torch.as_tensor(state, device=couplings.device).double()
    if sigma.numel() != exact.layers * exact.n:
        allowed = f"of shape {(exact.layers, exact.n)}"
        raise InvalidInputError("state", str(tuple(sigma.shape)), allowed)
    sigma = sigma.reshape(1, exact.layers, exact.n)
    if not bool((sigma.abs() == 1).all() & (least_margins(exact, sigma[None]) > 0).all()):
        raise InvalidInputError("state", "another state", "a fixed point of these couplings")
    return _scan(exact, sigma, fields, variances, cap)


def _scan(
    couplings: DenseChain, sigma: torch.Tensor, fields: list[float], variances: str, cap: int
) -> LocalEntropy:
    """Follow the solution as the field grows, each from the one before."""
    start = torch.zeros_like(sigma)
    found: list[tuple[float, float, float, float]] = []
    failed: list[tuple[float, str]] = []
    in_a_row = 0
    for gamma in fields:
        beliefs = belief_propagation(
            couplings,
            start=start,
            field=gamma * sigma,
            variances=variances,
            max_iterations=cap,
            tolerance=_TOLERANCE,
        )
        if not bool(beliefs.converged):
            failed.append((gamma, Outcome(int(beliefs.status)).label))
            in_a_row += 1
            if in_a_row == _PATIENCE:
                break
            continue
        in_a_row, start = 0, beliefs.messages.h
        d = float((1 - (sigma * beliefs.m).mean()) / 2)
        if found and d >= found[-1][1]:  # dd/dgamma < 0 for any measure: another solution
            failed.append((gamma, "not monotonic"))
            continue
        mutual = float((1 - beliefs.m.square().mean()) / 2)
        found.append((gamma, d, float(beliefs.entropy) / sigma.numel(), mutual))
    if not found:
        raise NotConvergedError(f"message passing around the fixed point: {failed[-1][1]}")
    gamma, d, entropy, mutual = np.array(found).T
    return LocalEntropy(gamma, d, entropy, mutual, tuple(failed))


def _checked(gammas: Sequence[float]) -> list[float]:
    values = sorted({float(checks.exact_real("gamma", gamma)) for gamma in gammas})
    if not values or values[0] < 0:
        raise InvalidInputError("gamma", str(list(gammas)), "fields that are at least 0")
    return values
