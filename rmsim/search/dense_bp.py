r"""Belief propagation with one message along every edge: the reference for AMP.

Site i sends u_ij to spin j of every layer, and spin j answers with its magnetisation in the
absence of that message; sums over the many other spins are Gaussian:

.. math::
    m_{j\to i} &= \tanh(h_j - u_{ij}), \qquad
    \omega_i = \sum_{j \ne i} J_{ij} m_{j\to i}, \qquad
    V_i = \sum_{j \ne i} J_{ij}^2 (1 - m_{j\to i}^2), \\
    u_{ij} &= \tfrac12 \log \frac{Z_i(\omega_{i\setminus j} + J_{ij}, V_{i\setminus j}, c_i)}
        {Z_i(\omega_{i\setminus j} - J_{ij}, V_{i\setminus j}, c_i)}, \qquad
    c_j = f_j + \sum_{i \ne j} u_{ij}, \\
    \Phi &= \sum_i \log Z_i - \sum_{i \ne j} \log(\cosh u_{ij} + m_{j\to i} \sinh u_{ij}) .

No Onsager terms: nothing is approximated but the Gaussian. Memory is O(L N^2) and an iteration
O(2^3 L^2 N^2), for a few hundred spins. Networks are computed one after another.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rmsim.couplings.chains import DenseChain
from rmsim.dynamics.active import ActiveSet, PerNetwork, Search
from rmsim.dynamics.status import Status
from rmsim.search.amp import (
    MOST_FIELD,
    Beliefs,
    Messages,
    beliefs_of,
    bonds_of,
    checked_tolerance,
    fitted_fields,
)
from rmsim.search.chain_site import (
    Bonds,
    Factors,
    factors_of,
    log_odds,
    log_partition,
    responses,
)
from rmsim.tensors import checked_sync_interval
from rmtheory.base import checks


def dense_belief_propagation(
    couplings: DenseChain,
    *,
    start: torch.Tensor | None = None,
    field: torch.Tensor | None = None,
    external: torch.Tensor | None = None,
    max_iterations: int = 500,
    tolerance: float | None = None,
    sync_interval: int | None = None,
) -> Beliefs:
    """Iterate the messages of every network until they converge, or the cap.

    Parameters
    ----------
    couplings, start, field, external, max_iterations, tolerance, sync_interval
        As for :func:`rmsim.search.amp.belief_propagation`.

    Returns
    -------
    Beliefs
        As of AMP, with the sums over the messages along the edges in the place of its messages;
        cycles are not detected, and the residual is the last change of m.
    """
    limit = checked_tolerance(tolerance, couplings.dtype)
    cap = checks.integer("max_iterations", max_iterations, 1)
    h, pull, shift = fitted_fields(couplings, start, field, external)
    moved = torch.zeros_like(h) if shift is None else shift
    bonds = bonds_of(couplings)
    every = checked_sync_interval(couplings.device, sync_interval)
    runs = []
    for J, first, *own in zip(couplings.asymmetric_matrices(), h, pull, moved, strict=True):
        run = _DenseBP(_Edges(J, bonds, *own), first, limit)
        run.run(cap, every)
        runs.append(run)
    status, iterations, residual = (
        torch.cat([getattr(run, name) for run in runs])
        for name in ("status", "iterations", "residual")
    )
    columns = zip(*(run.sums() for run in runs), strict=True)
    c, g, omega, v = (torch.stack(column) for column in columns)
    fields = torch.cat([run.active.final.h for run in runs])
    value = torch.stack([run.free_entropy() for run in runs])
    return beliefs_of(
        couplings,
        status,
        iterations,
        residual,
        torch.zeros_like(iterations),
        Messages(fields, c, g, omega, v, pull),
        value,
        (pull, shift),
        limit,
    )


@dataclass(frozen=True, eq=False)
class _Edges:
    """One network: couplings (layers, n, n), bonds, field on the spins, external field."""

    J: torch.Tensor
    bonds: Bonds
    field: torch.Tensor
    external: torch.Tensor

    def answer(self, h: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        """Return m_{j->i}, (layers, i, j)."""
        return (h.unsqueeze(-2) - u).tanh()

    def gaussian(self, m: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return omega and V."""
        return (self.J * m).sum(-1), (self.J.square() * (1 - m * m)).sum(-1)

    def send(
        self, m: torch.Tensor, omega: torch.Tensor, v: torch.Tensor, c: torch.Tensor
    ) -> torch.Tensor:
        """Return u_ij, (layers, i, j)."""
        layers, n = omega.shape
        sent = torch.empty_like(self.J)
        for layer in range(layers):
            J, answers = self.J[layer].T, m[layer].T  # (j, i): sites last, as in a site
            cavity = omega[layer] - J * answers
            variance = v[layer] - J.square() * (1 - answers.square())
            mean, spread = (x.expand(n, layers, n).clone() for x in (omega, v))
            spread[:, layer] = variance
            signed = []
            for sign in (1, -1):
                mean[:, layer] = cavity + sign * J
                factors = factors_of(mean + self.external, spread, self.bonds)
                signed.append(log_partition(factors, c.expand(n, layers, n)))
            sent[layer] = 0.5 * (signed[0] - signed[1]).T
        return sent

    def log_odds(self, omega: torch.Tensor, v: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        """Return h of every spin."""
        return log_odds(self.factors(omega, v), c).clamp(-MOST_FIELD, MOST_FIELD)

    def factors(self, omega: torch.Tensor, v: torch.Tensor) -> Factors:
        """Return the constraints of all sites."""
        return factors_of(omega + self.external, v, self.bonds)

    def free_entropy(self, h: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        """Return Phi, in float64."""
        m = self.answer(h, u)
        omega, v = self.gaussian(m)
        factors = self.factors(omega, v)
        sites = log_partition(factors, self.field + u.sum(-2)).double().sum()
        # An edge is log(cosh u + tanh k sinh u), k = h - u; as a quotient it never is log 0.
        whole, sent = h.double().unsqueeze(-2), u.double()
        return sites - (_log_cosh(whole) - _log_cosh(whole - sent)).sum()


def _log_cosh(x: torch.Tensor) -> torch.Tensor:
    """Return log cosh x = |x| + log((1 + e^{-2|x|})/2), which does not overflow."""
    size = x.abs()
    return size + torch.log1p(torch.expm1(-2 * size) / 2)


@dataclass(frozen=True, eq=False)
class _EdgeMessages(PerNetwork):
    """One network, on the first axis: h and c of the spins, u of the edges, omega and V."""

    h: torch.Tensor
    c: torch.Tensor
    u: torch.Tensor
    omega: torch.Tensor
    v: torch.Tensor


class _DenseBP(Search[_EdgeMessages]):
    """BP along the edges of one network."""

    def __init__(self, edges: _Edges, h: torch.Tensor, limit: float) -> None:
        self.edges, self.limit = edges, limit
        start = (h, h, torch.zeros_like(edges.J), torch.zeros_like(h), torch.ones_like(h))
        self.active: ActiveSet[_EdgeMessages] = ActiveSet(
            _EdgeMessages(*(tensor[None] for tensor in start))
        )
        self.status = torch.full((1,), int(Status.CAP), dtype=torch.int8, device=h.device)
        self.iterations = torch.zeros(1, dtype=torch.int64, device=h.device)
        self.residual = torch.zeros(1, dtype=torch.float64, device=h.device)

    def advance(self, iteration: int, sync: bool) -> None:
        """Send the messages once."""
        edges, active = self.edges, self.active
        old, running = active.here, ~active.ended
        m = edges.answer(old.h[0], old.u[0])
        omega, v = edges.gaussian(m)
        u = edges.send(m, omega, v, old.c[0])
        c = edges.field + u.sum(-2)
        h = edges.log_odds(omega, v, c)
        new = _EdgeMessages(*(tensor[None] for tensor in (h, c, u, omega, v)))
        fine = active.take(new, active.ended)
        change = (new.h.tanh() - old.h.tanh()).abs().flatten(1).amax(1).double()
        active.write(self.iterations, running, iteration)
        active.write(self.residual, running & fine, change)
        active.end(self.status, running & fine & (change < self.limit), Status.CONVERGED)
        active.end(self.status, running & ~fine, Status.DIVERGED)

    def sums(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return c without the field, g, omega and V of the last messages, as AMP has them."""
        end, edges = self.active.final, self.edges
        g, _ = responses(edges.factors(end.omega[0], end.v[0]), end.c[0])
        return end.c[0] - edges.field, g, end.omega[0], end.v[0]

    def free_entropy(self) -> torch.Tensor:
        """Return Phi at the last messages."""
        return self.edges.free_entropy(self.active.final.h[0], self.active.final.u[0])
