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
O(2^3 L^2 N^2), for a few hundred spins. Networks are done one after another.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rmsim.couplings.dense import DenseChain
from rmsim.messages.amp import SMALL, checked_tolerance, fitted
from rmsim.messages.outcome import Outcome
from rmsim.messages.site import LEAST_VARIANCE, Bonds, factors_of, log_odds, log_partition
from rmsim.messages.step import MOST_FIELD, bonds_of
from rmtheory import checks


@dataclass(frozen=True, eq=False)
class EdgeBeliefs:
    """Where dense BP went, for every network.

    Parameters
    ----------
    status : Tensor of int8, (samples,)
        An :class:`Outcome`: CONVERGED, PARAMAGNET, POLARISED, UNCONVERGED or
        DIVERGED.
    iterations : Tensor of int64, (samples,)
        Iterations made.
    residual : Tensor, (samples,), float64
        Last change of m.
    m : Tensor, (samples, layers, n)
        Magnetisations, of the last finite iteration.
    free_entropy, entropy : Tensor, (samples,), float64
        Phi and S = Phi - f m.
    """

    status: torch.Tensor
    iterations: torch.Tensor
    residual: torch.Tensor
    m: torch.Tensor
    free_entropy: torch.Tensor
    entropy: torch.Tensor

    @property
    def converged(self) -> torch.Tensor:
        """Tell which networks have a solution."""
        return (self.status == Outcome.CONVERGED) | (self.status == Outcome.PARAMAGNET)


def dense_belief_propagation(
    couplings: DenseChain,
    *,
    start: torch.Tensor | None = None,
    field: torch.Tensor | None = None,
    external: torch.Tensor | None = None,
    max_iterations: int = 500,
    tolerance: float | None = None,
) -> EdgeBeliefs:
    """Iterate the messages of every network until they converge, or the cap.

    Parameters
    ----------
    couplings, start, field, external, max_iterations, tolerance
        As for :func:`rmsim.messages.amp.belief_propagation`.
    """
    shape = (couplings.samples, couplings.layers, couplings.n)
    limit = checked_tolerance(tolerance, couplings.dtype)
    cap = checks.integer("max_iterations", max_iterations, 1)
    zero = torch.zeros(shape, dtype=couplings.dtype, device=couplings.device)
    h = zero if start is None else fitted("start", start, zero)
    pull = zero if field is None else fitted("field", field, zero)
    shift = zero if external is None else fitted("external", external, zero)
    bonds = bonds_of(couplings)
    each = [
        _solve(_Edges(J, bonds, *own), first, cap, limit)
        for J, first, *own in zip(couplings.matrices, h, pull, shift, strict=True)
    ]
    status, iterations, residual, m, phi = (list(column) for column in zip(*each, strict=True))
    value, marginals = torch.stack(phi), torch.stack(m)
    return EdgeBeliefs(
        torch.tensor(status, dtype=torch.int8),
        torch.tensor(iterations),
        torch.tensor(residual, dtype=torch.float64),
        marginals,
        value,
        value - (pull.double() * marginals.double()).sum((-1, -2)),
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
        factors = factors_of(omega + self.external, v, self.bonds)
        return log_odds(factors, c).clamp(-MOST_FIELD, MOST_FIELD)

    def free_entropy(self, h: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        """Return Phi, in float64."""
        m = self.answer(h, u)
        omega, v = self.gaussian(m)
        factors = factors_of(omega + self.external, v, self.bonds)
        sites = log_partition(factors, self.field + u.sum(-2)).double().sum()
        # An edge is log(cosh u + tanh k sinh u), k = h - u; as a quotient it never is log 0.
        whole, sent = h.double().unsqueeze(-2), u.double()
        return sites - (_log_cosh(whole) - _log_cosh(whole - sent)).sum()


def _log_cosh(x: torch.Tensor) -> torch.Tensor:
    """Return log cosh x = |x| + log((1 + e^{-2|x|})/2), which does not overflow."""
    size = x.abs()
    return size + torch.log1p(torch.expm1(-2 * size) / 2)


def _solve(
    edges: _Edges, h: torch.Tensor, cap: int, limit: float
) -> tuple[int, int, float, torch.Tensor, torch.Tensor]:
    """Return status, iterations, residual, m and Phi of one network."""
    u, c = torch.zeros_like(edges.J), h
    residual, done, status = 0.0, 0, Outcome.UNCONVERGED
    while status == Outcome.UNCONVERGED and done < cap:
        done += 1
        m = edges.answer(h, u)
        omega, v = edges.gaussian(m)
        new_u = edges.send(m, omega, v, c)
        new_c = edges.field + new_u.sum(-2)
        new_h = edges.log_odds(omega, v, new_c)
        if not bool((new_h.sum() + new_u.sum()).isfinite()):
            status = Outcome.DIVERGED
            continue
        residual = float((new_h.tanh() - h.tanh()).abs().amax())
        h, u, c = new_h, new_u, new_c
        if residual < limit:
            small = bool(h.tanh().abs().amax() < SMALL * limit)
            certain = not small and bool(v.amax() < LEAST_VARIANCE)
            status = Outcome.PARAMAGNET if small else Outcome.CONVERGED
            status = Outcome.POLARISED if certain else status
    return int(status), done, residual, h.tanh(), edges.free_entropy(h, u)
