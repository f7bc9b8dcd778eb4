r"""The site: the L spins that have the same index in a chain, with their own constraints.

.. math:: Z = \sum_{s_1 \dots s_L} \prod_l e^{c_l s_l} P(a_l), \qquad
    a_l = \frac{J_D + \lambda_L s_{l-1} s_l + \lambda_R s_l s_{l+1} + s_l \omega_l}{\sqrt{V_l}},
    \qquad s_0 = s_{L+1} = 0,

P the normal distribution function: spin l takes the field c_l from all other sites, which in turn
act on it by a Gaussian field of mean omega_l and variance V_l. The sum runs over the pairs
(s_l, s_{l+1}) by their transfer matrix, forwards and backwards; a single layer is its shortest
case. Everything is kept as logarithms and as the hazard n(a)/P(a), which do not underflow.

Fields have the shape (..., layers, n). The states of a spin are on leading axes, +1 first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from rmsim.tensors import cheap_to_read

#: Least variance: below it a Gaussian field is a sharp one.
LEAST_VARIANCE = 1e-12

#: Largest argument of P: its square is within float32.
_MOST_ARGUMENT = 1e9

#: Below this argument 1 - n(n + aP)/P^2 is taken from its series; products would cancel.
_TAIL = -30.0


#: Above minus this, P(a) itself does not underflow, and is faster than its scaled form.
_NEAR = 8.0


class Bonds(NamedTuple):
    """Couplings within a site: J_D, to the previous and to the next layer."""

    jd: float
    lam_left: float = 0.0
    lam_right: float = 0.0


@dataclass(frozen=True, eq=False)
class Factors:
    """P(a_l) for all states of the spins l-1, l, l+1: what a site needs of omega and V.

    Parameters
    ----------
    log_p, hazard, argument : tuple of Tensor, one per layer
        log P(a), n(a)/P(a) and a, of shape (states of l-1, 2, states of l+1, ..., n); beyond the
        ends of the chain there is one state.
    deviation : Tensor, (..., layers, n)
        sqrt(V).
    """

    log_p: tuple[torch.Tensor, ...]
    hazard: tuple[torch.Tensor, ...]
    argument: tuple[torch.Tensor, ...]
    deviation: torch.Tensor


@dataclass(frozen=True, eq=False)
class Site:
    """A summed site.

    Parameters
    ----------
    log_z : Tensor, (..., n)
        log Z.
    h : Tensor, (..., layers, n)
        Half the log odds of the spins: m = d log Z/dc = tanh h.
    g, dg : Tensor, (..., layers, n)
        First and second derivative of log Z by omega.
    pair : Tensor, (..., layers - 1, n)
        Mean of s_l s_{l+1}.
    """

    log_z: torch.Tensor
    h: torch.Tensor
    g: torch.Tensor
    dg: torch.Tensor
    pair: torch.Tensor

    @property
    def m(self) -> torch.Tensor:
        """Magnetisations."""
        return self.h.tanh()


def sum_site(c: torch.Tensor, omega: torch.Tensor, v: torch.Tensor, bonds: Bonds) -> Site:
    """Sum the states of every site.

    Parameters
    ----------
    c, omega : Tensor, (..., layers, n)
        Fields on the spins, means of the Gaussian fields.
    v : Tensor, broadcastable to them
        Variances.
    bonds : Bonds
        Couplings within the site.

    Examples
    --------
    >>> zero = torch.zeros(1, 1, dtype=torch.float64)
    >>> site = sum_site(zero, zero, torch.ones_like(zero), Bonds(0.0))
    >>> print(f"{float(site.log_z):.6f} {float(site.m):.1f}")  # two states, P(0) = 1/2
    0.000000 0.0
    """
    factors = factors_of(omega, v, bonds)
    joint = _joint(factors, c)
    log_z = _add_states(joint[0])
    g, dg = _responses(factors, joint)
    return Site(log_z, _log_odds(joint), g, dg, _pairs(joint))


def factors_of(omega: torch.Tensor, v: torch.Tensor, bonds: Bonds) -> Factors:
    """Return the constraints of all layers for given Gaussian fields."""
    layers = omega.shape[-2]
    deviation = v.clamp(min=LEAST_VARIANCE).sqrt().expand(omega.shape)
    log_p, hazards, arguments = [], [], []
    spin = _spin(omega)
    for layer in range(layers):
        a = _drift(bonds, omega, layer) + spin * omega[..., layer, :]
        a = a.div_(deviation[..., layer, :]).clamp_(-_MOST_ARGUMENT, _MOST_ARGUMENT)
        logarithm, hazard = _normal(a)
        log_p.append(logarithm)
        hazards.append(hazard)
        arguments.append(a)
    return Factors(tuple(log_p), tuple(hazards), tuple(arguments), deviation)


def responses(factors: Factors, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return g and dg only."""
    return _responses(factors, _joint(factors, c))


def log_odds(factors: Factors, c: torch.Tensor) -> torch.Tensor:
    """Return h only."""
    return _log_odds(_joint(factors, c))


def log_partition(factors: Factors, c: torch.Tensor) -> torch.Tensor:
    """Return log Z only."""
    return _add_states(_joint(factors, c)[0])


def _spin(like: torch.Tensor) -> torch.Tensor:
    """Return the states of the spin l, on axis 1."""
    if torch.compiler.is_compiling():
        return _traced_table((1.0, -1.0), (1, 2, 1), like)
    return _table((1.0, -1.0), (1, 2, 1), like.dim(), like.dtype, like.device)


def _drift(bonds: Bonds, like: torch.Tensor, layer: int) -> torch.Tensor:
    """Return J_D + lambda_L s_{l-1} s_l + lambda_R s_l s_{l+1}, the spins on axes 0, 1, 2."""
    both, none = (1.0, -1.0), (0.0,)
    before = both if layer > 0 else none
    after = both if layer < like.shape[-2] - 1 else none
    left, right = bonds.lam_left, bonds.lam_right
    drift = tuple(
        bonds.jd + s * (left * b + right * a) for b in before for s in both for a in after
    )
    shape = len(before), 2, len(after)
    if torch.compiler.is_compiling():
        return _traced_table(drift, shape, like)
    return _table(drift, shape, like.dim(), like.dtype, like.device)


@lru_cache(maxsize=64)
def _table(
    values: tuple[float, ...],
    shape: tuple[int, int, int],
    dims: int,
    dtype: torch.dtype,
    device: torch.device,
) -> torch.Tensor:
    """Return a tensor over the states of l-1, l, l+1; kept, since sending it stalls a GPU."""
    with torch.inference_mode(False):
        table = torch.tensor(values, dtype=dtype, device=device)
    return table.view(*shape, *(1,) * (dims - 1))


def _traced_table(
    values: tuple[Any, ...], shape: tuple[int, int, int], like: torch.Tensor
) -> torch.Tensor:
    """Return the same in a graph: numbers are constants of it, tensors are given to it."""
    numbers = [x if isinstance(x, torch.Tensor) else torch.full((), x) for x in values]
    table = torch.stack([x.to(dtype=like.dtype, device=like.device) for x in numbers])
    return table.view(*shape, *(1,) * (like.dim() - 1))


def _normal(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log P(a) and n(a)/P(a), each without cancellation in the lower tail."""
    if _all_above(a, -_NEAR):
        x = a * -math.sqrt(0.5)
        twice = x.erfc()  # 2 P(a)
        hazard = x.square().neg_().add_(0.5 * math.log(2 / math.pi)).exp_() / twice
        return twice.log().sub_(math.log(2)), hazard
    exponent = -0.5 * a * a
    density = exponent.exp() / math.sqrt(2 * math.pi)
    low = a < 0
    scaled = torch.special.erfcx(a.abs() * math.sqrt(0.5))
    upper = math.sqrt(0.5 * math.pi) * scaled * density
    log_p = torch.where(low, (0.5 * scaled).log() + exponent, torch.log1p(-upper))
    hazard = torch.where(low, math.sqrt(2 / math.pi) / scaled, density / (1 - upper))
    return log_p, hazard


def _all_above(a: torch.Tensor, limit: float) -> bool:
    """Return whether a shorter formula suffices, where reading the tensor is cheap."""
    cheap = cheap_to_read(a.device) and not torch.compiler.is_compiling()
    return cheap and bool(a.amin() > limit)


def _joint(factors: Factors, c: torch.Tensor) -> list[torch.Tensor]:
    """Return the log weights of the states of every three neighbours (l-1, l, l+1)."""
    layers = len(factors.log_p)
    spin = _spin(c)
    local = [log_p + spin * c[..., layer, :] for layer, log_p in enumerate(factors.log_p)]
    joint = list(local)
    message = None
    for layer in range(layers - 1):
        message = _add(joint[layer], 0)  # over s_{l-1}: a function of (s_l, s_{l+1})
        joint[layer + 1] = joint[layer + 1] + message.unsqueeze(2)
    message = None
    for layer in range(layers - 1, 0, -1):
        weight = local[layer] if message is None else local[layer] + message.unsqueeze(0)
        message = _add(weight, 2)  # over s_{l+1}: a function of (s_{l-1}, s_l)
        joint[layer - 1] = joint[layer - 1] + message.unsqueeze(0)
    return joint


def _responses(factors: Factors, joint: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return g = <x> and dg = <(x - g)^2> - <b>/V, with x = s n/(P sqrt V), b = n(n + aP)/P^2.

    As a spread plus a number in (0, 1), so that the squares of large hazards never cancel.
    """
    spin = _spin(factors.deviation)
    first, second = [], []
    for layer, (weights, hazard, a) in enumerate(
        zip(joint, factors.hazard, factors.argument, strict=True)
    ):
        weight = _probability(weights)
        x = spin * hazard
        mean = (weight * x).sum((0, 1, 2))
        curve = (weight * (x - mean).square().sub_(_bend(a, hazard))).sum((0, 1, 2))
        deviation = factors.deviation[..., layer, :]
        first.append(mean / deviation)
        second.append(curve / deviation.square())
    return torch.stack(first, -2), torch.stack(second, -2)


def _bend(a: torch.Tensor, hazard: torch.Tensor) -> torch.Tensor:
    """Return -d^2 log P(a)/da^2 = hazard (hazard + a), which lies between 0 and 1."""
    if _all_above(a, _TAIL):
        return hazard * (hazard + a)
    inverse = a.clamp(max=_TAIL).square().reciprocal()
    tail = 1 - inverse * (1 - inverse * (6 - 50 * inverse))
    return torch.where(a < _TAIL, tail, hazard * (hazard + a))


def _log_odds(joint: list[torch.Tensor]) -> torch.Tensor:
    odds = []
    for weights in joint:
        up, down = _add(_add(weights, 2), 0).unbind(0)
        odds.append(0.5 * (up - down))
    return torch.stack(odds, -2)


def _pairs(joint: list[torch.Tensor]) -> torch.Tensor:
    shape = joint[0].shape[3:]
    overlaps = joint[0].new_zeros((*shape[:-1], len(joint) - 1, shape[-1]))
    for layer, weights in enumerate(joint[:-1]):
        (both, up), (down, neither) = _probability(weights).sum(0)
        overlaps[..., layer, :] = both - up - down + neither
    return overlaps


def _probability(weights: torch.Tensor) -> torch.Tensor:
    """Return the probabilities of the states; log Z, rounded, would not normalise huge weights."""
    return weights.flatten(0, 2).softmax(0).view(weights.shape)


def _add_states(weights: torch.Tensor) -> torch.Tensor:
    return _add(_add(_add(weights, 2), 1), 0)


def _add(weights: torch.Tensor, axis: int) -> torch.Tensor:
    """Sum exponentials over an axis of one or two states."""
    if weights.shape[axis] == 1:
        return weights.squeeze(axis)
    first, second = weights.unbind(axis)
    return torch.logaddexp(first, second)
