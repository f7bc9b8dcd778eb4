"""Are the signs of the magnetisations a fixed point? What every search asks, and how it answers."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rmsim.couplings.dense import DenseChain
from rmsim.couplings.local import add_chain_terms
from rmsim.dynamics.verify import least_margins
from rmsim.messages.search import Search

#: Standard deviations by which J m may miss the field of the signs.
_DEVIATIONS = 5.0

#: Mean of m^2 below which a search that failed had no magnetisation.
PARAMAGNET = 1e-4


def are_fixed_point(
    couplings: DenseChain,
    h: torch.Tensor,
    jm: torch.Tensor,
    names: Sequence[int] | None = None,
    external: torch.Tensor | None = None,
    waiting: torch.Tensor | None = None,
) -> torch.Tensor:
    """Tell for which networks the signs of h are a fixed point, every margin positive in float64.

    Asks the device: products are made for hopeful networks only, in the type of the couplings,
    and then in float64 for those that pass.

    Parameters
    ----------
    couplings : DenseChain
        The networks.
    h, jm : Tensor, (active samples, layers, n)
        Fields of the spins, m = tanh h, and J m, or J times the m of an iteration before.
    names : sequence of int, optional
        The networks of h; all by default.
    external : Tensor, optional
        External field of the dynamics, of the shape of h.
    waiting : Tensor of bool, optional
        Networks whose signs seemed to be a fixed point before, hopeful whatever `jm` is.
    """
    s = _signs(h)
    hopeful = _hopeful(couplings, s, h, jm, external)
    if waiting is not None:
        hopeful = hopeful | waiting
    for exact in (False, True):
        chosen = hopeful.nonzero()[:, 0]
        if not len(chosen):
            return hopeful
        some, active = s[chosen], chosen.tolist()
        if names is not None:
            active = [names[k] for k in active]
        field = None if external is None else external[chosen].unsqueeze(1)
        if exact:
            margin = least_margins(couplings, some, field, active=active)[:, 0]
        else:
            margin = (some * couplings.field(some, field, active=active)).flatten(1).amin(1)
        hopeful = hopeful.index_copy(0, chosen, margin > 0)
    return hopeful


def seem_fixed_point(
    couplings: DenseChain,
    h: torch.Tensor,
    jm: torch.Tensor,
    names: Sequence[int] | None = None,
    external: torch.Tensor | None = None,
) -> torch.Tensor:
    """Tell the same in the type of the couplings, without asking the device; arguments as above."""
    s = _signs(h)
    field = None if external is None else external.unsqueeze(1)
    margin = (s * couplings.field(s, field, active=names)).flatten(1).amin(1)
    return _hopeful(couplings, s, h, jm, external) & (margin > 0)


def _signs(h: torch.Tensor) -> torch.Tensor:
    """Return the signs as states of one start each, (samples, 1, layers, n)."""
    return torch.where(h >= 0, 1.0, -1.0).to(h.dtype).unsqueeze(1)


def _hopeful(
    couplings: DenseChain,
    s: torch.Tensor,
    h: torch.Tensor,
    jm: torch.Tensor,
    external: torch.Tensor | None,
) -> torch.Tensor:
    """Tell where J m does not exclude a fixed point.

    J (s - m) has the deviation |s - m|: a network that J m misses by more is not worth a product.
    """
    near = jm.unsqueeze(1).clone()
    add_chain_terms(near, s, couplings.jd, couplings.lam_left, couplings.lam_right, None)
    if external is not None:
        near += external.unsqueeze(1)
    doubt = (1 - h.tanh().abs()).square().mean(-1).amax(-1).sqrt()
    return (s * near).flatten(1).amin(1) > -_DEVIATIONS * (doubt + 1e-3)


def magnetisation(h: torch.Tensor) -> torch.Tensor:
    """Return the mean of m^2 of every network."""
    return h.double().tanh().square().mean((-1, -2))


def search_result(
    couplings: DenseChain,
    status: torch.Tensor,
    iterations: torch.Tensor,
    attempts: torch.Tensor,
    h: torch.Tensor,
    seed: int,
    external: torch.Tensor | None = None,
) -> Search:
    """Return how all searches ended, with the margins of the final signs in float64."""
    s = torch.where(h >= 0, 1, -1).to(torch.int8)
    field = None if external is None else external.unsqueeze(1)
    margin = least_margins(couplings, s.unsqueeze(1), field)[:, 0]
    return Search(
        status.cpu(),
        iterations.cpu(),
        attempts.cpu(),
        margin.cpu(),
        magnetisation(h).cpu(),
        s.cpu(),
        seed,
        str(couplings.device),
    )
