r"""The stationary state of the effective process, and where it ceases to exist: the freezing point.

At long times the flip rate settles at :math:`f_\infty`, and :math:`C(t,t')` depends on the time
between only, :math:`c(\tau)`. The stationary state is a fixed point in the space of correlation
functions: a Gaussian process with correlation c drives the site, and the correlation of the states
it produces is c again.

**Why the flip rate is given and the coupling is solved for.** By definition :math:`c(1) = 1 -
2f`, so that :math:`\phi` changes by an amount of variance :math:`2(1 - c(1)) = 4f` per sweep. Two
flips of a neuron are separated by a way of :math:`2 J_D` of its field and do not cluster:
:math:`1 - c(\tau) \simeq 2 f \tau` for :math:`f\tau \ll 1`, and on these scales :math:`\phi` is a
Brownian path. The neuron is a relay: s = 1 switches where :math:`\phi` falls below :math:`-J_D`,
s = -1 where it rises above :math:`J_D`. A relay in continuous time has no time scale: if
:math:`c(\tau)` is a solution, so is :math:`c(a\tau)`. The rate f is therefore no parameter in the
limit f -> 0, and the one condition that the states flip as often as their field supposes,
:math:`c'(0) = -2f`, fixes the coupling instead: the freezing point :math:`J_{dyn}`. At finite f the
relay sees the path once per sweep and switches late. To first order in the step
:math:`\sigma = 2\sqrt f` a barrier seen at discrete times acts like one that is farther away by
:math:`\rho\sigma`, where :math:`\rho` is the mean overshoot of a random walk over a distant
barrier,

.. math:: J_{dyn} = J_D + 2\rho\sqrt{f_\infty} + O(f_\infty), \qquad
    \rho = -\frac{\zeta(1/2)}{\sqrt{2\pi}} = 0.5826, \qquad
    f_\infty \simeq \Big(\frac{J_{dyn} - J_D}{1.1652}\Big)^2 .

So the coupling at given f is well conditioned, f at given coupling is not. A site that is updated
with probability p sees the path after a geometric number of sweeps: variance 4f/p between two
updates, and a :math:`\rho` that depends on p (:func:`overshoot`). The limit f -> 0 does not depend
on p: one layer freezes at the same coupling for all p. In a chain a flip changes the field of its
neighbours at once by :math:`2\lambda`, and the order of the updates matters.

**How it is computed.** Paths of length T with correlation c are drawn by the fast Fourier
transform; the coupling is adjusted on these paths until the states flip at the rate f; their
correlation is the next c. After a transient c and the coupling are averaged over iterations.
Independent repetitions give the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import fft, integrate

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier

Floats = NDArray[np.float64]
Paths = NDArray[np.float32]

#: c has decayed after this many flips of a neuron: lengths are chosen in units of 1/f.
_MEMORY = 4.0

#: Numbers in the paths of one iteration; the memory taken is some ten times as many bytes.
_PATH_NUMBERS = 2**21

#: Iterations that forget the first guess of c, and those whose mean is the answer.
_TRANSIENT, _AVERAGED = 6, 10

#: The place of a jump of the flip rate is bisected to this width; errors are 1e-3 and more.
_RESOLUTION = 1e-4


def overshoot(p: float = 1.0) -> float:
    r"""Return the mean overshoot :math:`\rho` of a random walk over a distant barrier.

    In units of the standard deviation of the walk between two updates, when each of its normal
    steps is followed by an update with probability p.

    With the characteristic function :math:`\chi` of the way between two updates, variance 1
    (Spitzer's identity),

    .. math:: \rho = -\frac1\pi \int_0^\infty \frac{dk}{k^2}
        \log\frac{2\,(1 - \chi(k))}{k^2} , \qquad
        \chi(k) = \frac{p\, e^{-p k^2/2}}{1 - (1-p)\, e^{-p k^2/2}} .

    Examples
    --------
    >>> round(overshoot(), 6), round(overshoot(1e-9), 6)
    (0.582597, 0.707107)
    """

    def integrand(k: float) -> float:
        # A step is a sum of G normal ones of variance p, G geometric of mean 1/p.
        one = -math.expm1(-k * k * p / 2)
        tail = one / (p + (1 - p) * one)
        return -math.log(2 * tail / (k * k)) / (k * k)

    # Near 0 the integrand tends to (2 - p)/4 but loses digits.
    edge = 1e-2
    value, _ = integrate.quad(integrand, edge, math.inf, limit=200, epsabs=1e-12)
    return (value + edge * (2 - p) / 4) / math.pi


@dataclass(frozen=True, eq=False)
class Stationary:
    """A stationary state.

    Parameters
    ----------
    flip_rate : float
        f, given.
    coupling : Estimate
        The coupling at which a neuron flips at this rate.
    response : float
        Derivative of log f in the coupling at fixed fields: negative.
    correlation : array, (layers, times)
        c(tau) of every layer, tau = 0, 1, ...
    """

    flip_rate: float
    coupling: Estimate
    response: float
    correlation: Floats


#: The couplings (J_D, lambda_L, lambda_R) as a function of the one that is solved for.
Family = Callable[[float], tuple[float, float, float]]


def stationary(
    flip_rate: float,
    family: Family,
    guess: float,
    *,
    layers: int = 1,
    p: float = 1.0,
    seed: int | np.random.SeedSequence = 0,
    repetitions: int = 4,
    iterations: int = _AVERAGED,
) -> Stationary:
    """Return the stationary state in which a neuron flips with probability `flip_rate` per sweep.

    Parameters
    ----------
    flip_rate : float
        f, between 0 and 1/2.
    family : callable
        The couplings as a function of the one that is solved for. The flip rate must fall with it.
    guess : float
        Where the search begins.
    layers : int
        Length of the chain.
    p : float
        Probability that a neuron is updated in a sweep.
    seed : int
        Repetition k draws from the k-th child of this seed.
    repetitions : int
        Independent solutions; their spread is the error.
    iterations : int
        Iterations averaged in each.

    Examples
    --------
    >>> state = stationary(0.15, lambda jd: (jd, 0.0, 0.0), 0.35, repetitions=2, iterations=1)
    >>> 0.33 < state.coupling.value < 0.39
    True
    """
    if not 0 < flip_rate < 0.5:
        raise InvalidInputError("flip_rate", flip_rate, "a number between 0 and 1/2")
    checks.integer("repetitions", repetitions, 2)
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    solved: list[float] = []
    responses: list[float] = []
    correlations: list[Floats] = []
    for child in sequence.spawn(repetitions):
        search = _Search(flip_rate, family, layers, p, np.random.default_rng(child))
        coupling, response, c = search.run(
            guess if not solved else float(np.mean(solved)), iterations
        )
        solved.append(coupling)
        responses.append(response)
        correlations.append(c)
    error = float(np.std(solved, ddof=1)) / math.sqrt(repetitions)
    # Few repetitions: a t-distribution's 68 % instead of a Gaussian's.
    error *= 1 + 1 / (repetitions - 1)
    method = f"stationary correlation, {repetitions} x {iterations} iterations"
    value = Estimate(float(np.mean(solved)), error, Tier.ESTIMATED, method)
    return Stationary(flip_rate, value, float(np.mean(responses)), np.mean(correlations, axis=0))


class _Search:
    """One solution: correlation and coupling in turn, every iteration with new paths."""

    def __init__(
        self, f: float, family: Family, layers: int, p: float, generator: np.random.Generator
    ) -> None:
        self.f, self.family, self.layers, self.p = f, family, layers, p
        self.generator = generator
        # States are correlated over some 1/f sweeps: paths are several times as long, and there
        # are as many of them as the memory allows.
        self.length = max(256, 2 ** math.ceil(math.log2(4 * _MEMORY / f)))
        self.paths = max(64, _PATH_NUMBERS // (self.length * layers))

    def run(self, coupling: float, iterations: int) -> tuple[float, float, Floats]:
        """Return coupling, response and c(tau), averaged over `iterations` after a transient."""
        c = np.tile(np.exp(-2 * self.f * np.arange(self.length)), (self.layers, 1))
        averaged = 0
        couplings, responses = [], []
        for k in range(_TRANSIENT + iterations):
            phi = self._draw(c)
            coupling, response, states = self._adjust(phi, coupling)
            measured = self._correlation(states)
            if k >= _TRANSIENT:
                couplings.append(coupling)
                responses.append(response)
            averaged = 1 if k < _TRANSIENT else averaged + 1
            c += (measured - c) / averaged
        return float(np.mean(couplings)), float(np.mean(responses)), c

    def _draw(self, c: Floats) -> Paths:
        """Return paths of the process with correlation c, (layers, length, paths).

        c is continued symmetrically to a circle of twice its length. Sampling noise makes some
        weights of its spectrum negative; they are set to 0 and the variance restored.
        """
        n = self.length
        circle = np.concatenate([c, c[:, :1] * 0, c[:, :0:-1]], axis=1)
        spectrum = np.maximum(fft.rfft(circle, axis=1).real, 0)
        spectrum /= fft.irfft(spectrum, axis=1)[:, :1]
        out = np.empty((self.layers, n, self.paths), dtype=np.float32)
        for layer in range(self.layers):
            white = self.generator.standard_normal((2 * n, self.paths), dtype=np.float32)
            amplitude = np.sqrt(spectrum[layer]).astype(np.float32)[:, None]
            out[layer] = fft.irfft(fft.rfft(white, axis=0) * amplitude, axis=0)[:n]
        return out

    def _adjust(self, phi: Paths, coupling: float) -> tuple[float, float, NDArray[np.int8]]:
        """Return the coupling at which the states driven by `phi` flip at the rate f.

        With it the derivative of log f there, from the last two steps, and the states.
        """
        masks = int(self.generator.integers(0, 2**63))
        seen = self.f * self.layers * self.paths * (self.length - self.length // 4)
        # One flip more or less changes the logarithm by 1 / (number of flips).
        tolerance = max(2e-3, 2 / seen)
        x0, y0 = coupling, self._excess(phi, coupling, masks)[0]
        x1 = coupling + 0.02 * (1 if y0 > 0 else -1)
        tried = [(x0, y0)]
        for _ in range(12):
            y1, states = self._excess(phi, x1, masks)
            tried.append((x1, y1))
            if y1 == y0:
                break
            slope = (y1 - y0) / (x1 - x0)
            if abs(y1) < tolerance:
                return x1, slope, states
            x0, y0, x1 = x1, y1, x1 - float(np.clip(y1 / slope, -0.2, 0.2))
        return self._bisect(phi, masks, sorted(tried))

    def _bisect(
        self, phi: Paths, masks: int, tried: list[tuple[float, float]]
    ) -> tuple[float, float, NDArray[np.int8]]:
        """Halve the interval of couplings in which the rate passes f.

        On given paths the rate is a step function of the coupling, and it may jump past f by
        several flips: then no coupling meets the tolerance, and the place of the jump is the
        answer. A slope between two points so close means nothing; it is fitted to all of them.
        """
        passes = [
            (x, y) for (x, above), (y, below) in pairwise(tried) if above > 0 >= below and x < y
        ]
        if not passes:
            raise NotConvergedError(
                f"no coupling between {tried[0][0]:.3g} and {tried[-1][0]:.3g} makes the neurons "
                f"flip at the rate {self.f:g}"
            )
        low, high = passes[0]
        while high - low > _RESOLUTION:
            middle = (low + high) / 2
            excess, _ = self._excess(phi, middle, masks)
            low, high = (middle, high) if excess > 0 else (low, middle)
        couplings, excesses = np.array(tried).T
        slope = float(np.polyfit(couplings, excesses, 1)[0])
        return high, slope, self._excess(phi, high, masks)[1]

    def _excess(self, phi: Paths, x: float, masks: int) -> tuple[float, NDArray[np.int8]]:
        states = drive(phi, *self.family(x), p=self.p, seed=masks)
        late = states[:, self.length // 4 :]
        rate = float((late[:, 1:] != late[:, :-1]).mean())
        return math.log(max(rate, 1e-9) / self.f), states

    def _correlation(self, states: NDArray[np.int8]) -> Floats:
        late = states[:, self.length // 4 :].astype(np.float32)
        n = late.shape[1]
        power = (np.abs(fft.rfft(late, 2 * n, axis=1)) ** 2).mean(axis=2, dtype=np.float64)
        c = fft.irfft(power, axis=1)[:, :n] / (n - np.arange(n))
        out = np.zeros((self.layers, self.length))
        out[:, :n] = c
        # Beyond half the length the mean is over few pairs, and c has long decayed.
        tau = np.arange(self.length)
        return np.asarray(out * np.clip(2 - 4 * tau / self.length, 0, 1))


def drive(
    phi: Paths, jd: float, lam_left: float, lam_right: float, *, p: float = 1.0, seed: int = 0
) -> NDArray[np.int8]:
    """Return the states that the fields `phi` (layers, sweeps, paths) produce, one per sweep."""
    layers, sweeps, paths = phi.shape
    generator = np.random.default_rng(seed)
    states = np.empty(phi.shape, dtype=np.int8)
    s = np.where(phi[:, 0] >= 0, np.float32(1), np.float32(-1))
    for t in range(sweeps):
        h = phi[:, t] + np.float32(jd) * s
        if layers > 1:
            h[1:] += np.float32(lam_left) * s[:-1]
            h[:-1] += np.float32(lam_right) * s[1:]
        new = np.copysign(np.float32(1), h)
        if p < 1:
            keep = generator.random((layers, paths), dtype=np.float32) >= p
            new = np.where(keep, s, new)
        states[:, t] = s = new
    return states
