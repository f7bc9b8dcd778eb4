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

**How it is computed.** Paths on a circle of several 1/f sweeps with correlation c are drawn by the
fast Fourier transform and drive the site at the coupling of the iteration. If the states flip at
the rate r, the coupling at which they would flip at the rate f is
:math:`x - \log(r/f)/\kappa`, with
:math:`\kappa = \partial\log r/\partial x` at fixed fields. Their correlation, with time stretched
by r/f so that the next field moves at the rate f again, is the next c: without that the time scale,
which no equation fixes, would wander. After a transient c and coupling are averaged over
iterations. Independent repetitions give the error.

**The limit f -> 0 itself.** A path that is seen at all times needs no overshoot: between two
points of the grid at the distances m, m' > 0 from the barrier a Brownian path of variance
:math:`\sigma^2` has met it with probability :math:`e^{-2mm'/\sigma^2}`, and the relay switches.
With this rule (`continuous`) the coupling tends to :math:`J_{dyn}` without the term in
:math:`\sqrt f`; f is the spacing of the grid in units of the time between two flips of a neuron.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft, integrate

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.statistics import mean

Floats = NDArray[np.float64]
Paths = NDArray[np.float32]

#: c is kept up to this time, in units of 1/f; twice as far where it has not decayed there.
_MEMORY, _LONGEST_MEMORY = 4.0, 16.0

#: Correlations at the end of the memory that are taken for 0.
_DECAYED = 0.03

#: Numbers in the paths of one iteration; the memory taken is some thirty times as many bytes.
_PATH_NUMBERS = 2**21

#: Numbers that are transformed at a time.
_BLOCK = 2**17

#: Iterations that forget the first guess of c, and those whose mean is the answer.
_TRANSIENT, _AVERAGED = 8, 20

#: Coupling step of the derivative at fixed fields, and the largest change per iteration.
_STEP, _LARGEST_STEP = 0.04, 0.1


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
    undecayed : float
        What is left of c after the longest memory, 16/f sweeps; 0 if it has decayed. The error of
        the coupling and its method contain it.
    """

    flip_rate: float
    coupling: Estimate
    response: float
    correlation: Floats
    undecayed: float = 0.0

    @property
    def systematic(self) -> float:
        """The part of the coupling's error that no repetition reduces, from `undecayed`."""
        return self.undecayed / abs(self.response)


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
    continuous: bool = False,
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
        Independent solutions; their spread is the error, which grows as :math:`f^{-1/2}` at equal
        work: that many flips are seen.
    iterations : int
        Iterations averaged in each.
    continuous : bool
        One layer, p = 1: the relay sees its path at all times; `flip_rate` is then the spacing of
        the grid on which the path is drawn, and the coupling tends to the freezing point with it.

    Raises
    ------
    NotConvergedError
        If no coupling near `guess` has this rate.

    Examples
    --------
    >>> state = stationary(0.15, lambda jd: (jd, 0.0, 0.0), 0.35, repetitions=2, iterations=1)
    >>> 0.33 < state.coupling.value < 0.39
    True
    """
    if not 0 < flip_rate < 0.5:
        raise InvalidInputError("flip_rate", flip_rate, "a number between 0 and 1/2")
    if continuous and (layers > 1 or p < 1):
        raise InvalidInputError("continuous", True, "false for several layers or masked updates")
    checks.integer("repetitions", repetitions, 2)
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    solved: list[float] = []
    responses: list[float] = []
    correlations: list[Floats] = []
    memory, undecayed = _MEMORY, 0.0
    for child in sequence.spawn(repetitions):
        search = _Search(
            flip_rate, family, layers, p, np.random.default_rng(child), continuous, memory
        )
        coupling, response, c = search.run(
            guess if not solved else float(np.mean(solved)), iterations
        )
        memory, undecayed = search.memory, max(undecayed, search.undecayed)
        solved.append(coupling)
        responses.append(response)
        correlations.append(c)
    # A later repetition may have needed a longer memory than the first.
    shortest = min(c.shape[1] for c in correlations)
    kept = [c[:, :shortest] for c in correlations]
    pooled = mean(solved)
    # Few repetitions: a t-distribution's 68 % instead of a Gaussian's.
    error = pooled.error * (1 + 1 / (repetitions - 1))
    method = f"stationary correlation, {repetitions} x {iterations} iterations"
    response = float(np.mean(responses))
    if undecayed:
        # The field lacks this part of its variance at late times, and log(r/f) about as much: the
        # systematic part of the error.
        error = math.hypot(error, undecayed / abs(response))
        method += f", c still {undecayed:.2g} after {memory:g}/f sweeps"
    value = Estimate(pooled.value, error, Tier.ESTIMATED, method)
    return Stationary(flip_rate, value, response, np.mean(kept, axis=0), undecayed)


def sustained(
    flip_rate: float,
    couplings: tuple[float, float, float],
    *,
    layers: int = 1,
    p: float = 1.0,
    seed: int | np.random.SeedSequence = 0,
    repetitions: int = 4,
    iterations: int = 16,
    continuous: bool = False,
) -> Estimate:
    r"""Return log R at given couplings: whether neurons flip as often as their field supposes.

    A field that changes as if neurons flipped at the rate f drives the site, whose states flip at
    the rate R f; their correlation, with time stretched by R, is that of the field. R > 1: such
    activity grows, and the stationary flip rate is above f. R < 1: it is below f.

    Parameters
    ----------
    flip_rate : float
        f.
    couplings : tuple
        :math:`J_D, \lambda_L, \lambda_R`.
    layers, p, seed, repetitions, iterations, continuous
        As for :func:`stationary`. A relay that sees its path at all times flips more often than one
        that sees it once per sweep, and at the rate of the limit f -> 0.

    Examples
    --------
    >>> low, high = (
    ...     sustained(0.1, (jd, 0.0, 0.0), repetitions=2, iterations=2).value for jd in (0.3, 0.6)
    ... )
    >>> low > 0 > high  # 0.1 is the stationary rate at J_D = 0.45
    True
    """
    if not 0 < flip_rate < 0.5:
        raise InvalidInputError("flip_rate", flip_rate, "a number between 0 and 1/2")
    checks.integer("repetitions", repetitions, 2)
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    ratios, left = [], 0.0
    for child in sequence.spawn(repetitions):
        search = _Search(
            flip_rate, lambda _: couplings, layers, p, np.random.default_rng(child), continuous
        )
        ratios.append(search.log_ratio(0.0, iterations))
        left = max(left, search.undecayed)
    pooled = mean(ratios)
    error = math.hypot(pooled.error * (1 + 1 / (repetitions - 1)), left)
    path = "path seen at all times, " if continuous else ""
    method = (
        f"log of the rate of flips over the rate {flip_rate:g} of their field, {path}"
        f"{repetitions} x {iterations} iterations"
    )
    return Estimate(pooled.value, error, Tier.ESTIMATED, method)


class _Search:
    """One solution: correlation and coupling in turn, every iteration with new paths."""

    def __init__(
        self,
        f: float,
        family: Family,
        layers: int,
        p: float,
        generator: np.random.Generator,
        continuous: bool = False,
        memory: float = _MEMORY,
    ) -> None:
        self.f, self.family, self.layers, self.p = f, family, layers, p
        self.generator, self.continuous = generator, continuous
        #: What is left of c at the end of the longest memory, 0 if it has decayed.
        self.undecayed = 0.0
        self._remember(memory)

    def _remember(self, memory: float) -> None:
        """Keep c up to `memory` / f, on a circle of twice this length."""
        self.memory = memory
        self.length = max(64, 2 ** math.ceil(math.log2(2 * memory / self.f)))
        self.paths = max(64, _PATH_NUMBERS // (self.length * self.layers))

    def run(self, coupling: float, iterations: int) -> tuple[float, float, Floats]:
        """Return coupling, response and c(tau), averaged over `iterations` after a transient."""
        c = self._first()
        responses: list[float] = []
        for _ in range(_TRANSIENT):
            phi = self._draw(c)
            y, measured = self._excess(phi, coupling)
            other = coupling + math.copysign(_STEP, y)
            response = (self._excess(phi, other)[0] - y) / (other - coupling)
            responses.append(response)
            # A rate that does not fall with the coupling gives no Newton step: walk.
            step = -y / response if response < 0 else math.copysign(_LARGEST_STEP, y)
            coupling += min(max(step, -_LARGEST_STEP), _LARGEST_STEP)
            c = measured
        if self._remembers_longer(c):
            return self.run(coupling, iterations)
        response = float(np.median(responses[_TRANSIENT // 2 :]))
        if response >= 0:
            raise self._none(coupling)
        total = np.zeros_like(c)
        couplings: list[float] = []
        for k in range(iterations):
            y, measured = self._excess(self._draw(c), coupling)
            if abs(y) > 1:
                raise self._none(coupling)
            couplings.append(coupling - y / response)
            total += measured
            # The first few iterations still lose the noise of the last one of the transient.
            c = total / (k + 1) if k > 2 else measured
            coupling = float(np.mean(couplings))
        return coupling, response, total / iterations

    def log_ratio(self, coupling: float, iterations: int) -> float:
        """Return log(r/f) at this coupling, averaged over `iterations` after a transient.

        c follows the states as in :meth:`run`; the coupling stays.
        """
        c = self._first()
        for _ in range(_TRANSIENT):
            c = self._excess(self._draw(c), coupling)[1]
        if self._remembers_longer(c):
            return self.log_ratio(coupling, iterations)
        total, ratios = np.zeros_like(c), []
        for k in range(iterations):
            y, measured = self._excess(self._draw(c), coupling)
            ratios.append(y)
            total += measured
            c = total / (k + 1) if k > 2 else measured
        return float(np.mean(ratios))

    def _first(self) -> Floats:
        """A first guess of c."""
        tau = np.arange(self.length // 2 + 1)
        return self._window(np.tile(np.exp(-2 * self.f * tau), (self.layers, 1)))

    def _remembers_longer(self, c: Floats) -> bool:
        """Double the memory if c has not decayed, as long as possible; note what is left."""
        half = c.shape[1]
        left = float(np.abs(c[:, int(0.6 * half) : int(0.75 * half)]).mean())
        longer = left > _DECAYED and 2 * self.memory <= _LONGEST_MEMORY
        if longer:
            self._remember(2 * self.memory)
        self.undecayed = left if left > _DECAYED else 0.0
        return longer

    def _none(self, coupling: float) -> NotConvergedError:
        return NotConvergedError(
            f"no stationary state with the flip rate {self.f:g} near the coupling {coupling:.3g}"
        )

    def _window(self, c: Floats) -> Floats:
        """Let c go to 0 over the last quarter of the memory."""
        fraction = np.arange(c.shape[1]) / (c.shape[1] - 1)
        return np.asarray(c * np.clip(4 * (1 - fraction), 0, 1))

    def _draw(self, c: Floats) -> Paths:
        """Return paths on the circle with correlation c, (layers, length, paths).

        Sampling noise makes some weights of the spectrum negative; they are set to 0 and the
        variance is restored.
        """
        circle = np.concatenate([c, c[:, -2:0:-1]], axis=1)
        spectrum = np.maximum(fft.rfft(circle, axis=1).real, 0)
        spectrum /= fft.irfft(spectrum, axis=1)[:, :1]
        out = np.empty((self.layers, self.length, self.paths), dtype=np.float32)
        for layer in range(self.layers):
            amplitude = np.sqrt(spectrum[layer]).astype(np.float32)
            for some in self._blocks():
                shape = (some.stop - some.start, self.length)
                white = self.generator.standard_normal(shape, dtype=np.float32)
                out[layer, :, some] = fft.irfft(fft.rfft(white, axis=1) * amplitude, axis=1).T
        return out

    def _blocks(self) -> list[slice]:
        """Paths that are transformed together: arrays that stay in the cache."""
        size = max(1, _BLOCK // self.length)
        return [slice(k, min(k + size, self.paths)) for k in range(0, self.paths, size)]

    def _excess(self, phi: Paths, x: float) -> tuple[float, Floats]:
        """Return log(r/f) of the states that `phi` drives at the coupling x, and the next c."""
        # Half a turn before the measured one forgets the first state.
        around = np.concatenate([phi[:, self.length // 2 :], phi], axis=1)
        step = 2 * math.sqrt(self.f) if self.continuous else 0.0
        states = drive(
            around, *self.family(x), p=self.p, generator=self.generator, continuous_step=step
        )[:, -self.length :]
        rate = float((states[:, 1:] != states[:, :-1]).mean())
        if rate == 0:
            return -10.0, np.ones((self.layers, self.length // 2 + 1))
        return math.log(rate / self.f), self._correlation(states, rate)

    def _correlation(self, states: NDArray[np.int8], rate: float) -> Floats:
        half = self.length // 2 + 1
        tau = np.arange(half)
        out = np.empty((self.layers, half))
        for layer in range(self.layers):
            power = np.zeros(half)
            for some in self._blocks():
                late = states[layer, :, some].T.astype(np.float32, order="C")
                wave = fft.rfft(late, axis=1)
                power += (wave.real**2 + wave.imag**2).sum(axis=0, dtype=np.float64)
            c = fft.irfft(power / self.paths)[:half] / self.length
            out[layer] = np.interp(tau * self.f / rate, tau, c)
        return self._window(out)


def drive(
    phi: Paths,
    jd: float,
    lam_left: float,
    lam_right: float,
    *,
    p: float = 1.0,
    generator: np.random.Generator,
    continuous_step: float = 0.0,
) -> NDArray[np.int8]:
    r"""Return the states that the fields `phi` (layers, sweeps, paths) produce, one per sweep.

    With a `continuous_step` :math:`\sigma > 0` a neuron also flips where a Brownian path of
    deviation :math:`\sigma` between two sweeps would have met its barrier.
    """
    layers, sweeps, paths = phi.shape
    states = np.empty(phi.shape, dtype=np.int8)
    s = np.where(phi[:, 0] >= 0, np.float32(1), np.float32(-1))
    states[:, 0] = s
    for t in range(1, sweeps):
        h = np.float32(jd) * s
        if layers > 1:
            h[1:] += np.float32(lam_left) * s[:-1]
            h[:-1] += np.float32(lam_right) * s[1:]
        margin = (phi[:, t] + h) * s
        flip = margin < 0
        if continuous_step:
            before = (phi[:, t - 1] + h) * s
            met = np.exp(np.minimum(margin * before * np.float32(-2 / continuous_step**2), 0))
            flip |= generator.random(met.shape, dtype=np.float32) < met
        if p < 1:
            flip &= generator.random((layers, paths), dtype=np.float32) < p
        states[:, t] = s = np.where(flip, -s, s)
    return states
