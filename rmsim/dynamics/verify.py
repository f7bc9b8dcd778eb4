r"""Margins in float64: a state is a fixed point if every :math:`s_i h_i > 0`, strictly.

The couplings are taken as the exact numbers they are stored as, and turned to float64 a few rows
at a time. A state that float32 holds for stable may fail here; it is then no fixed point.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rmsim.couplings.protocol import Couplings

#: Bytes of states in float64 at a time, at least; large couplings may have a 32nd of theirs.
_SPACE = 2**20


def margins(
    couplings: Couplings,
    s: torch.Tensor,
    external: torch.Tensor | None = None,
    *,
    active: Sequence[int] | None = None,
) -> torch.Tensor:
    """Return s_i h_i in float64, in the shape of `s`."""
    exact = s.to(torch.float64)
    return couplings.field(exact, external, active=active).mul_(exact)


def least_margins(
    couplings: Couplings,
    s: torch.Tensor,
    external: torch.Tensor | None = None,
    *,
    active: Sequence[int] | None = None,
) -> torch.Tensor:
    """Return the least s_i h_i of every state, (samples, starts), in bounded memory.

    Parameters
    ----------
    couplings : Couplings
        The networks.
    s : Tensor, (samples, starts, layers, n)
        States of any type, or booleans that tell which neurons are up.
    external : Tensor, optional
        External field, of four dimensions, each 1 or that of `s`.
    active : sequence of int, optional
        The networks of `s`; all by default.
    """
    samples, starts = s.shape[:2]
    chosen = range(samples) if active is None else active
    found = torch.empty((samples, starts), dtype=torch.float64, device=s.device)
    size = couplings.layers * couplings.n * 8
    space = max(_SPACE, couplings.nbytes // 32)
    width = max(1, min(starts, space // size))
    height = max(1, space // (size * width))
    for top in range(0, samples, height):
        rows = slice(top, top + height)
        for left in range(0, starts, width):
            columns = slice(left, left + width)
            part = s[rows, columns]
            if part.dtype == torch.bool:
                part = part.to(torch.float64).mul_(2).sub_(1)
            field = external
            if field is not None:
                field = field[rows if field.shape[0] > 1 else slice(None)]
                field = field[:, columns if field.shape[1] > 1 else slice(None)]
            values = margins(couplings, part, field, active=chosen[rows])
            found[rows, columns] = values.flatten(2).amin(-1)
    return found
