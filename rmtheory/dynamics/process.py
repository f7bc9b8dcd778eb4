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
batches of copies give the first, smaller ones the second. States are kept as
bits: C(t, t') for all t' is one exclusive or and a bit count. The Gaussian numbers behind
:math:`\phi` are kept in single precision for one batch at a time, which bounds the memory by
(layers x sweeps x copies of one batch) numbers of four bytes.

Where the copies are kept is a type of its own, :class:`Arrays`: numpy's here; the simulator has
those of a device of torch (:mod:`rmsim.studies.device_theory`), which this package does not import.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Floats = NDArray[np.float64]
Spins = NDArray[np.int8]

#: An array of numpy, or whatever :class:`Arrays` keeps copies in.
Array = Any

#: Below this variance a field is a linear function of those before it: nothing new is drawn.
_NO_NEW_VARIANCE = 1e-12


class Memory(ABC):
    """All states of M copies so far."""

    @abstractmethod
    def correlation(self, t: int, s: Array) -> Array:
        """Keep the state s(t); return C(t, t') for t' = 0 ... t in double precision."""


class Arrays(ABC):
    """Where copies are kept and computed, with its own source of random numbers.

    Operators, slices and in-place changes are those that numpy and torch have in common.
    """

    @abstractmethod
    def spins(self, shape: tuple[int, int]) -> Array:
        """Return independent states +-1, signed integers of one byte."""

    @abstractmethod
    def normal_(self, out: Array) -> None:
        """Fill `out` with independent normal numbers."""

    @abstractmethod
    def uniform(self, shape: tuple[int, int]) -> Array:
        """Return independent numbers from 0 to 1 in single precision."""

    @abstractmethod
    def zeros(self, shape: tuple[int, ...], *, double: bool = False) -> Array:
        """Return zeros in single or double precision."""

    @abstractmethod
    def single(self, values: Array) -> Array:
        """Return `values` in single precision."""

    @abstractmethod
    def stack(self, rows: Sequence[Array]) -> Array:
        """Return the rows as one array."""

    @abstractmethod
    def where(self, chosen: Array, yes: Any, no: Any) -> Array:
        """Return `yes` where `chosen`, `no` elsewhere."""

    @abstractmethod
    def mean(self, values: Array) -> Array:
        """Return the mean in double precision, not yet read."""

    @abstractmethod
    def solve(self, lower: Array, right: Array) -> Array:
        """Return x of lower x = right, a triangular system in double precision."""

    @abstractmethod
    def memory(self, sweeps: int, copies: int) -> Memory:
        """Return room for the states of so many sweeps."""

    @abstractmethod
    def read(self, values: Array) -> NDArray[Any]:
        """Return `values` as an array of numpy."""


class _Bits(Memory):
    """States as bits."""

    def __init__(self, sweeps: int, copies: int) -> None:
        self._states = np.empty((sweeps, (copies + 63) // 64), dtype=np.uint64)
        self._copies = copies

    def correlation(self, t: int, s: Spins) -> Floats:
        """One exclusive or and a bit count."""
        packed = np.packbits(s > 0)
        padding = np.zeros(-len(packed) % 8, dtype=np.uint8)
        self._states[t] = np.concatenate([packed, padding]).view(np.uint64)
        differ = np.bitwise_count(self._states[: t + 1] ^ self._states[t])
        return np.asarray(1.0 - 2.0 * differ.sum(axis=1, dtype=np.int64) / self._copies)


class NumpyArrays(Arrays):
    """Arrays of numpy.

    Parameters
    ----------
    generator : numpy.random.Generator
        The only source of random numbers.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    @classmethod
    def of_seed(cls, sequence: np.random.SeedSequence) -> NumpyArrays:
        """Return arrays with random numbers of their own."""
        return cls(np.random.default_rng(sequence))

    def spins(self, shape: tuple[int, int]) -> Spins:
        """Return independent states."""
        return (2 * self.generator.integers(0, 2, shape, dtype=np.int8) - 1).astype(np.int8)

    def normal_(self, out: Array) -> None:
        """Fill in single precision."""
        self.generator.standard_normal(out=out, dtype=np.float32)

    def uniform(self, shape: tuple[int, int]) -> Array:
        """Return numbers from 0 to 1."""
        return self.generator.random(shape, dtype=np.float32)

    def zeros(self, shape: tuple[int, ...], *, double: bool = False) -> Array:
        """Return zeros."""
        return np.zeros(shape, dtype=np.float64 if double else np.float32)

    def single(self, values: Array) -> Array:
        """Return `values` in single precision."""
        return values.astype(np.float32)

    def stack(self, rows: Sequence[Array]) -> Array:
        """Return the rows as one array."""
        return np.stack(rows)

    def where(self, chosen: Array, yes: Any, no: Any) -> Array:
        """Return `yes` or `no`."""
        return np.where(chosen, yes, no)

    def mean(self, values: Array) -> Array:
        """Return the mean."""
        return values.mean(dtype=np.float64)

    def solve(self, lower: Array, right: Array) -> Array:
        """Solve by LAPACK."""
        return solve_triangular(lower, right, lower=True, check_finite=False)

    def memory(self, sweeps: int, copies: int) -> Memory:
        """Return room for bits."""
        return _Bits(sweeps, copies)

    def read(self, values: Array) -> NDArray[Any]:
        """Return `values` as they are."""
        return np.asarray(values)


class _Field:
    r"""phi of one layer: a Gaussian process whose covariance becomes known sweep by sweep.

    The rows of its Cholesky factor A are appended one at a time:
    :math:`\phi(t) = \sum_{k \le t} A_{tk} z_k` with independent normal z. No number of it is read
    on the way, so that a device need not wait.
    """

    def __init__(self, sweeps: int, copies: int, arrays: Arrays) -> None:
        self._factor = arrays.zeros((sweeps, sweeps), double=True)
        #: 1 where a row of the factor has its own normal number, 0 elsewhere.
        self._used = arrays.zeros((sweeps,), double=True)
        self._normal = arrays.zeros((sweeps, copies))
        self._memory = arrays.memory(sweeps, copies)
        self._arrays = arrays
        self.time = 0

    def reseed(self, arrays: Arrays) -> None:
        """Draw from `arrays` from now on."""
        self._arrays = arrays

    def draw(self, s: Array) -> tuple[Array, Array]:
        """Return phi(t) given the state s(t), and C(t, t') for t' = 0 ... t."""
        t, arrays = self.time, self._arrays
        correlation = self._memory.correlation(t, s)
        arrays.normal_(self._normal[t])
        self.time += 1
        if t == 0:
            self._factor[0, 0] = self._used[0] = 1.0
            return arrays.single(self._normal[0]), correlation
        # A field that depends linearly on earlier ones has a zero on the diagonal of A: its own
        # normal number is never used. Its row here is that of the identity, and its right-hand
        # side 0, so that its coefficient is 0.
        row = arrays.solve(self._factor[:t, :t], correlation[:t] * self._used[:t])
        variance = 1.0 - (row * row).sum()
        new = variance > _NO_NEW_VARIANCE
        last = arrays.where(new, variance, 0.0) ** 0.5
        self._factor[t, :t] = arrays.where(new, row, 0.0)
        self._factor[t, t] = arrays.where(new, last, 1.0)
        self._used[t] = new
        phi = arrays.single(row) @ self._normal[:t]
        return phi + arrays.single(last) * self._normal[t], correlation


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
    arrays : Arrays
        What the copies are kept in, and the only source of random numbers.
    """

    jd: float
    lam_left: float
    lam_right: float
    s: Array
    sweeps: int
    arrays: Arrays
    _fields: list[_Field] = field(init=False, repr=False)
    #: The local fields h in the last sweep, (layers, M).
    h: Array = field(init=False, repr=False)
    #: C_l(t, t') of the state that the last sweep started from, t' = 0 ... t, (layers, t + 1).
    correlation: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        layers, copies = self.s.shape
        self._fields = [_Field(self.sweeps, copies, self.arrays) for _ in range(layers)]

    def sweep(self, external: Array | None = None, p: float = 1.0) -> Array:
        """Update the states once; return which neurons disagreed with their field, (layers, M)."""
        drawn = [one.draw(s) for one, s in zip(self._fields, self.s, strict=True)]
        h = self.arrays.stack([phi for phi, _ in drawn])
        self.correlation = self.arrays.stack([row for _, row in drawn])
        s = self.arrays.single(self.s)
        h += float(self.jd) * s
        h[1:] += float(self.lam_left) * s[:-1]
        h[:-1] += float(self.lam_right) * s[1:]
        if external is not None:
            h += external
        unstable = (h >= 0) != (self.s > 0)
        flip = unstable
        if p < 1:
            flip = unstable & (self.arrays.uniform(tuple(h.shape)) < p)
        self.s = self.arrays.where(flip, -self.s, self.s)
        self.h = h
        return unstable

    def reseed(self, arrays: Arrays) -> None:
        """Draw from `arrays` from now on; for copies that share a history."""
        self.arrays = arrays
        for one in self._fields:
            one.reseed(arrays)
