"""The attractors of a network under its inputs, as :mod:`rmsim.landscape` asks for them."""

from __future__ import annotations

from dataclasses import replace

import torch

from rmsim.dynamics.step import synchronous
from rmsim.landscape import Evolve, Relax
from rmsim.learning import Parameters, State, infer
from rmtheory import checks
from rmtheory.errors import InvalidInputError
from rmtheory.wording import counted

#: Sweeps after which a state counts as the attractor, fixed point or not.
MOST_SWEEPS = 200

#: Inputs relaxed together.
_TOGETHER = 512


def attractors_of(
    parameters: Parameters, state: State, most_sweeps: int = MOST_SWEEPS
) -> tuple[Relax, Evolve]:
    """Return the maps from inputs to attractors, from s = 0 and from given states.

    Parameters
    ----------
    parameters, state
        A network of one layer, its neurons updated together.
    most_sweeps : int
        Where there is no fixed point, as without self-coupling, the state after so many sweeps.
    """
    if parameters.layers != 1 or parameters.p < 1:
        got = f"{counted(parameters.layers, 'layer')}, p = {parameters.p:g}"
        raise InvalidInputError("network", got, "one layer without masks")
    checks.integer("most_sweeps", most_sweeps, 1)
    until = replace(parameters, stop="converged", inference=most_sweeps)

    def relax(inputs: torch.Tensor) -> torch.Tensor:
        shape = inputs.shape[:-1]
        s = infer(until, state, inputs.reshape(-1, inputs.shape[-1]), together=_TOGETHER)
        return s.reshape(*shape, -1)

    def evolve(states: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        field = state.w_in.field(inputs.to(state.dtype)).view(1, len(inputs), 1, -1)
        s = states.to(state.dtype).view_as(field)
        moving = torch.arange(len(inputs))
        for _ in range(most_sweeps):
            if not len(moving):
                break
            before = s[:, moving]
            after = synchronous(state.couplings, before, field[:, moving])
            s[:, moving] = after
            moving = moving[(after != before).flatten(2).any(2)[0]]
        return s[0, :, 0].to(torch.int8)

    return relax, evolve
