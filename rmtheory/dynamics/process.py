r"""The effective process of one site as N -> infinity, solved by self-consistent sampling.

The couplings are independent in both directions, :math:`E[J_{ij} J_{ji}] = 0`. Averaging the
generating functional of

.. math:: s^l_i(t+1) = \mathrm{sgn}\Big(\sum_j J^l_{ij} s^l_j(t) + J_D s^l_i(t)
    + \lambda_L s^{l-1}_i(t) + \lambda_R s^{l+1}_i(t) + b^l_i(t)\Big)

over J therefore leaves no retarded self-interaction. For a start and fields b that do not depend on
J the sites become independent copies of

.. math:: s^l(t+1) = \mathrm{sgn}\big(\phi^l(t) + J_D s^l(t) + \lambda_L s^{l-1}(t)
    + \lambda_R s^{l+1}(t) + b^l(t)\big), \qquad
    E[\phi^l(t)\phi^l(t')] = C_l(t,t') = \langle s^l(t) s^l(t')\rangle,

with Gaussian :math:`\phi^l` of mean 0, independent between layers. A masked sweep updates every
neuron with probability p; the others keep their state. C(t, .) is known once s(t) is: the
theory is a recursion in time without a saddle point (docs: Theory of the dynamics).

:class:`Process` carries M copies of the process forward. C is measured over these copies, so an
average has a statistical error of order :math:`M^{-1/2}` and a bias of order 1/M. Independent
batches of copies give the first, batches of half the size the second. States are kept as bits: C(t,
t') for all t' is one exclusive or and a bit count. The Gaussian numbers behind :math:`\phi` are
kept in single precision for one batch at a time, which bounds the memory by (layers x sweeps x
copies of one batch) numbers of four bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Floats = NDArray[np.float64]
Spins = NDArray[np.int8]

#: Below this variance a field is a linear function of those before it: nothing new is drawn.
_NO_NEW_VARIANCE = 1e-12


class _Field:
    r"""phi of one layer: a Gaussian process whose covariance becomes known sweep by sweep.

    The rows of its Cholesky factor A are appended one at a time:
    :math:`\phi(t) = \sum_{k \le t} A_{tk} z_k` with independent normal z.
    """

    def __init__(self, sweeps: int, copies: int, generator: np.random.Generator) -> None:
        self._factor = np.zeros((sweeps, sweeps))
        self._normal = np.empty((sweeps, copies), dtype=np.float32)
        self._states = np.empty((sweeps, (copies + 63) // 64), dtype=np.uint64)
        self._copies, self._generator = copies, generator
        self.time = 0

    def reseed(self, generator: np.random.Generator) -> None:
        """Draw from `generator` from now on."""
        self._generator = generator

    def draw(self, s: Spins) -> tuple[NDArray[np.float32], Floats]:
        """Return phi(t) given the state s(t), and C(t, t') for t' = 0 ... t."""
        t = self.time
        self._states[t] = _bits(s)
        differ = np.bitwise_count(self._states[: t + 1] ^ self._states[t])
        correlation = 1.0 - 2.0 * differ.sum(axis=1, dtype=np.int64) / self._copies
        row = np.zeros(t + 1)
        if t:
            # A field that depends linearly on earlier ones has a zero on the diagonal: its own
            # normal number was never used, and its coefficient stays 0.
            used = np.flatnonzero(np.diag(self._factor)[:t])
            row[used] = solve_triangular(
                self._factor[np.ix_(used, used)], correlation[used], lower=True, check_finite=False
            )
        variance = 1.0 - float(row[:t] @ row[:t])
        row[t] = math.sqrt(variance) if variance > _NO_NEW_VARIANCE else 0.0
        self._factor[t, : t + 1] = row
        self._generator.standard_normal(out=self._normal[t], dtype=np.float32)
        self.time += 1
        return row.astype(np.float32) @ self._normal[: t + 1], correlation


def _bits(s: Spins) -> NDArray[np.uint64]:
    packed = np.packbits(s > 0)
    return np.concatenate([packed, np.zeros(-len(packed) % 8, dtype=np.uint8)]).view(np.uint64)


@dataclass
class Process:
    """M copies of the site, their states and their fields.

    Parameters
    ----------
    jd, lam_left, lam_right : float
        Couplings.
    s : array of int8, (layers, M)
        The states at time 0, independent between copies.
    sweeps : int
        Largest number of sweeps.
    generator : numpy.random.Generator
        The only source of random numbers.
    """

    jd: float
    lam_left: float
    lam_right: float
    s: Spins
    sweeps: int
    generator: np.random.Generator
    _fields: list[_Field] = field(init=False, repr=False)
    #: The local fields h in the last sweep, (layers, M).
    h: NDArray[np.float32] = field(init=False, repr=False)
    #: C_l(t, t') of the state that the last sweep started from, t' = 0 ... t, (layers, t + 1).
    correlation: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        layers, copies = self.s.shape
        self._fields = [_Field(self.sweeps, copies, self.generator) for _ in range(layers)]

    def sweep(
        self, external: NDArray[np.float32] | None = None, p: float = 1.0
    ) -> NDArray[np.bool_]:
        """Update the states once; return which neurons disagreed with their field, (layers, M)."""
        drawn = [one.draw(s) for one, s in zip(self._fields, self.s, strict=True)]
        h = np.stack([phi for phi, _ in drawn])
        self.correlation = np.stack([row for _, row in drawn])
        h += np.float32(self.jd) * self.s
        h[1:] += np.float32(self.lam_left) * self.s[:-1]
        h[:-1] += np.float32(self.lam_right) * self.s[1:]
        if external is not None:
            h += external
        unstable: NDArray[np.bool_] = (h >= 0) != (self.s > 0)
        flip = unstable
        if p < 1:
            flip = unstable & (self.generator.random(h.shape, dtype=np.float32) < p)
        self.s = np.where(flip, -self.s, self.s)
        self.h = h
        return unstable

    def reseed(self, generator: np.random.Generator) -> None:
        """Draw from `generator` from now on; for copies that share a history."""
        self.generator = generator
        for one in self._fields:
            one.reseed(generator)
