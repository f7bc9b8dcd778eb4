r"""Belief propagation on large dense networks: AMP iterated to its fixed point, many at a time.

See :mod:`rmsim.messages.step` for the iteration, :mod:`rmsim.messages.free_entropy` for what it
makes stationary. Whether it converged is part of the result: networks finish one by one, and each
says how. For one layer and small m the mean of m^2 changes by

.. math:: \gamma^2 e^{2\,\mathrm{arsinh}(|J_D|/2)}, \qquad \gamma = n(J_D)/P(J_D),

an iteration, which is below 1 while gamma^2 + |J_D| gamma < 1: m = 0 is stable for all
J_D > -0.178.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rmsim.couplings.dense import DenseChain
from rmsim.device import question_interval
from rmsim.messages.free_entropy import free_entropy
from rmsim.messages.outcome import Outcome
from rmsim.messages.products import Products
from rmsim.messages.site import LEAST_VARIANCE, site
from rmsim.messages.step import Messages, bonds_of, first_messages, step
from rmsim.messages.underway import Underway
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: Largest change of m and g that counts as none.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}

#: Magnetisations below so many tolerances are zero.
SMALL = 100


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Where belief propagation went, for every network.

    Parameters
    ----------
    status : Tensor of int8, (samples,)
        An :class:`Outcome`: CONVERGED, PARAMAGNET (converged to m = 0), POLARISED (to |m| = 1,
        where no variance is left), CYCLING, UNCONVERGED or DIVERGED. Anything but the first two
        is no solution.
    iterations : Tensor of int64, (samples,)
        Iterations made.
    residual : Tensor, (samples,), float64
        Last change of m, or of g relative to 1 + |g|.
    period : Tensor of int64, (samples,)
        Period of a cycle of the messages, 0 if there is none.
    messages : Messages
        The last ones, all finite.
    free_entropy, entropy : Tensor, (samples,), float64
        Phi and S = Phi - f m; estimates of log counts only where `converged`. Phi is 0 where
        it diverged.
    pair : Tensor, (samples, layers - 1)
        Overlap of consecutive layers, the mean of s^l_i s^{l+1}_i.
    """

    status: torch.Tensor
    iterations: torch.Tensor
    residual: torch.Tensor
    period: torch.Tensor
    messages: Messages
    free_entropy: torch.Tensor
    entropy: torch.Tensor
    pair: torch.Tensor

    @property
    def m(self) -> torch.Tensor:
        """Magnetisations, (samples, layers, n)."""
        return self.messages.m

    @property
    def converged(self) -> torch.Tensor:
        """Tell which networks have a solution."""
        return (self.status == Outcome.CONVERGED) | (self.status == Outcome.PARAMAGNET)


def belief_propagation(
    couplings: DenseChain,
    *,
    start: torch.Tensor | None = None,
    field: torch.Tensor | None = None,
    external: torch.Tensor | None = None,
    variances: str = "rank-one",
    max_iterations: int = 500,
    tolerance: float | None = None,
    check_every: int | None = None,
) -> Beliefs:
    """Iterate AMP in every network until it converges, cycles, diverges, or the cap.

    Parameters
    ----------
    couplings : DenseChain
        The networks; J_ij and J_ji independent.
    start : Tensor, (samples, layers, n), optional
        Fields h to start from, 0 by default; without a field m = 0 is a solution, stable or not.
    field : Tensor, optional
        Field on the spins in the measure, weight e^{field s}, broadcastable to the start.
    external : Tensor, optional
        External field of the dynamics, broadcastable to the start.
    variances : str
        ``rank-one`` (two products an iteration) or ``exact`` (four, for small networks).
    max_iterations : int
        The cap.
    tolerance : float, optional
        Largest residual that counts as convergence: 1e-5 in float32, 1e-10 in float64.
    check_every : int, optional
        Iterations between two looks at which networks have ended; 1 on a CPU, 16 on a GPU. The
        result does not depend on it: networks that end are frozen.
    """
    shape = (couplings.samples, couplings.layers, couplings.n)
    limit = checked_tolerance(tolerance, couplings.dtype)
    cap = checks.integer("max_iterations", max_iterations, 1)
    zero = torch.zeros(shape, dtype=couplings.dtype, device=couplings.device)
    h = zero if start is None else fitted("start", start, zero)
    pull = zero if field is None else fitted("field", field, zero)
    shift = None if external is None else fitted("external", external, zero)
    products = Products(couplings, variances)
    run = _Run(first_messages(h), limit)
    run.go(products, pull, shift, cap, question_interval(couplings.device, check_every))
    final = run.underway.final
    value = free_entropy(products, final, pull, shift)
    value = value.masked_fill(run.status == Outcome.DIVERGED, 0.0)  # its squares may overflow
    entropy = value - (pull.double() * final.m.double()).sum((-1, -2))
    shifted = final.omega if shift is None else final.omega + shift
    pair = site(final.c + pull, shifted, final.v, bonds_of(couplings)).pair.mean(-1)
    unmagnetised = final.m.flatten(1).abs().amax(1) < SMALL * limit
    paramagnet = (run.status == Outcome.CONVERGED) & unmagnetised
    certain = (run.status == Outcome.CONVERGED) & (final.v.flatten(1).amax(1) < LEAST_VARIANCE)
    status = run.status.masked_fill(certain, int(Outcome.POLARISED))
    status = status.masked_fill(paramagnet, int(Outcome.PARAMAGNET))
    return Beliefs(status, run.iterations, run.residual, run.period, final, value, entropy, pair)


def fitted(name: str, value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a field expanded to the shape (samples, layers, n) of `like`, in its type."""
    try:
        found = value.to(dtype=like.dtype, device=like.device).expand(like.shape)
    except RuntimeError:
        allowed = f"broadcastable to {tuple(like.shape)}"
        raise InvalidInputError(name, str(tuple(value.shape)), allowed) from None
    if not bool(found.isfinite().all()):
        raise InvalidInputError(name, "a number that is not finite", "finite")
    return found


def checked_tolerance(tolerance: float | None, dtype: torch.dtype) -> float:
    """Return the tolerance, or that of the type."""
    if tolerance is None:
        return TOLERANCE[dtype]
    value = float(checks.exact_real("tolerance", tolerance))
    if not 0 < value < 1:
        raise InvalidInputError("tolerance", tolerance, "above 0 and below 1")
    return value


class _Run:
    """How the networks ended, filled in as they do."""

    def __init__(self, messages: Messages, limit: float) -> None:
        self.underway, self.limit = Underway(messages), limit
        samples, device = len(messages.h), messages.h.device
        self.status = torch.full(
            (samples,), int(Outcome.UNCONVERGED), dtype=torch.int8, device=device
        )
        self.iterations, self.period = torch.zeros(
            (2, samples), dtype=torch.int64, device=device
        ).unbind(0)
        self.residual = torch.zeros(samples, dtype=torch.float64, device=device)
        self.anchor, self.anchored = messages, 0

    def go(
        self,
        products: Products,
        pull: torch.Tensor,
        external: torch.Tensor | None,
        cap: int,
        every: int,
    ) -> None:
        """Iterate until all have ended, or the cap; ask who has ended `every` iterations."""
        underway = self.underway
        for iteration in range(1, cap + 1):
            old = underway.here
            shift = None if external is None else underway.of(external)
            new = step(products, old, underway.of(pull), shift, active=underway.names)
            self._watch(old, underway.take(new), iteration)
            if iteration == cap:
                underway.ended = torch.ones_like(underway.ended)
            if iteration == cap or (iteration % every == 0 and bool(underway.ended.any())):
                self.anchor = self.anchor.pick(underway.leave())
            if not len(underway.rows):
                return
            if iteration & (iteration - 1) == 0:  # Brent: remember the powers of two
                self.anchor, self.anchored = underway.here, iteration

    def _watch(self, old: Messages, fine: torch.Tensor, iteration: int) -> None:
        """Write down where the networks are, and freeze those that have ended."""
        underway = self.underway
        runs = ~underway.ended
        change = _change(old, underway.here)
        done = runs & fine & (change < self.limit)
        cyclic = runs & fine & (_change(self.anchor, underway.here) < self.limit)
        cyclic &= change > 10 * self.limit
        lost = runs & ~fine
        underway.write(self.iterations, runs, iteration)
        underway.write(self.residual, runs & fine, change)
        underway.write(self.period, cyclic, iteration - self.anchored)
        for mask, outcome in (
            (done, Outcome.CONVERGED),
            (cyclic, Outcome.CYCLING),
            (lost, Outcome.DIVERGED),
        ):
            underway.write(self.status, mask, int(outcome))
        underway.ended = underway.ended | done | cyclic | lost


def _change(old: Messages, new: Messages) -> torch.Tensor:
    """Return the largest change of m, or of g relative to 1 + |g|, in float64."""
    m = (new.m - old.m).flatten(1).abs().amax(1)
    g = ((new.g - old.g).abs() / (1 + new.g.abs())).flatten(1).amax(1)
    return torch.maximum(m, g).double()
