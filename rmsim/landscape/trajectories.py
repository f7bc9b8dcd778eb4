r"""Distances along the trajectory of attractors between two inputs.

.. math:: D(\tau_1, \tau_2) = d(s_{\tau_1}, s_{\tau_2}) / d(s^\mu, s^\nu).

The inputs of one trajectory lie on one random shortest path, so that D is |tau_1 - tau_2| where the
attractors move as far as the inputs do.
"""

from __future__ import annotations

import torch

from rmsim.landscape.inputs import Relax, hamming, path
from rmtheory.errors import NotConvergedError


def trajectory_distances(
    relax: Relax,
    start: torch.Tensor,
    end: torch.Tensor,
    taus: list[float],
    draw: torch.Generator,
) -> torch.Tensor:
    """Return D for every pair of inputs (pairs, D) and all pairs of `taus`: (pairs, taus, taus).

    Raises
    ------
    NotConvergedError
        If both inputs of a pair lead to the same attractor: there is no trajectory.
    """
    length = hamming(relax(start), relax(end))
    if not bool((length > 0).all()):
        raise NotConvergedError("both inputs of a pair lead to the same attractor")
    states = relax(path(start, end, taus, draw))
    return torch.stack(
        [hamming(states[k], states).transpose(0, -1) / length[..., None] for k in range(len(taus))],
        dim=-2,
    )
