"""Iterate the dynamics until a fixed point, a cycle, or the cap.

The device is asked for news every `check_every` sweeps only, since every question stalls a GPU; the
numbers of sweeps and the periods are exact all the same, because counters on the device keep them.
A state whose last sweep found no neuron against its field is a fixed point, once its margins are
positive in float64 (a masked sweep computes the full field, so that this holds under masks too).
"""

from __future__ import annotations

import torch

from rmsim.couplings.protocol import Couplings, aligned_external
from rmsim.device import question_interval
from rmsim.dynamics.batch import Batch
from rmsim.dynamics.masks import mask_keys
from rmsim.dynamics.result import Relaxation, Status, empty_result
from rmsim.dynamics.step import checked_update
from rmsim.dynamics.verify import least_margins
from rmsim.randomness import checked_seed
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: Bytes of states worked on at a time, if the couplings are small: a cache, or a busy GPU.
_LEAST_SPACE = {"cpu": 2**21, "cuda": 2**28}
#: States come in multiples of this, the lanes of the compiled products.
_LANES = 32


def relax(
    couplings: Couplings,
    start: torch.Tensor,
    *,
    update: str = "synchronous",
    p: float = 1.0,
    external: torch.Tensor | None = None,
    max_sweeps: int = 1000,
    check_every: int | None = None,
    seed: int = 0,
    first_sample: int = 0,
) -> Relaxation:
    """Relax every state of `start` and say where it went.

    Parameters
    ----------
    couplings : Couplings
        The networks.
    start : Tensor, (samples, starts, layers, n)
        States at sweep 0, +-1, of any type (int8 is the smallest).
    update : str
        ``synchronous`` or ``sequential`` (layer after layer).
    p : float
        Probability that a neuron is updated in a sweep, 0 < p <= 1. Below 1 the dynamics is
        random, and no cycle is looked for.
    external : Tensor, optional
        External field, broadcastable to the states; taken in the type of the couplings.
    max_sweeps : int
        The cap.
    check_every : int, optional
        Sweeps between two looks at which states have finished; 1 on a CPU, 16 on a GPU.
    seed, first_sample : int
        Masks of the first network come from ``generator(seed, first_sample, 2)``.
    """
    kind = couplings.device.type
    p, order = checked_p(p), checked_update(update)
    cap = checks.integer("max_sweeps", max_sweeps, 1)
    every = question_interval(couplings.device, check_every)
    _check_start(couplings, start)
    if external is not None:
        external = aligned_external(external, start.shape)
        external = external.to(dtype=couplings.dtype, device=couplings.device)
        if not bool(external.isfinite().all()):
            raise InvalidInputError("external", "a number that is not finite", "finite")
    samples, starts = start.shape[:2]
    result = empty_result(
        samples, starts, couplings.layers, couplings.n, checked_seed(seed), str(couplings.device)
    )
    keys = None
    if p < 1:
        keys = mask_keys(seed, range(first_sample, first_sample + samples), starts)
    row = samples * couplings.layers * couplings.n * couplings.dtype.itemsize
    space = max(couplings.nbytes // 16, _LEAST_SPACE.get(kind, 2**28))
    width = max(1, min(starts, space // row))
    if _LANES < width < starts:
        width -= width % _LANES
    for left in range(0, starts, width):
        part = slice(left, left + width)
        field = external
        if field is not None and field.shape[1] > 1:
            field = field[:, part]
        some = None if keys is None else keys[:, part]
        batch = Batch(couplings, start[:, part], field, some, p, order)
        _run(batch, cap, every, result, left)
    return result


def checked_p(p: object) -> float:
    """Return the update probability, 0 < p <= 1."""
    value = checks.exact_real("p", p)
    if not 0 < value <= 1:
        raise InvalidInputError("p", p, "a probability above 0 and at most 1")
    return float(value)


def _check_start(couplings: Couplings, start: torch.Tensor) -> None:
    wanted = (couplings.samples, couplings.layers, couplings.n)
    shape = tuple(start.shape)
    if len(shape) != 4 or (shape[0], *shape[2:]) != wanted or shape[1] < 1:
        allowed = f"of shape ({wanted[0]}, starts, {wanted[1]}, {wanted[2]})"
        raise InvalidInputError("start", str(shape), allowed)
    for part in start.unbind(0):  # one by one, to need little memory
        if not bool((part * part == 1).all()):
            raise InvalidInputError("start", "other values", "of +1 and -1")


def _run(batch: Batch, cap: int, every: int, result: Relaxation, left: int) -> None:
    """Advance the batch to its end and fill in `result`, whose starts begin at `left`."""
    while batch.sweep < cap:
        batch.advance()
        if batch.sweep % every and batch.sweep != cap:
            continue
        if _settle(batch, cap, result, left):
            if not bool(batch.live.any()):
                return
            batch.compact()


def _settle(batch: Batch, cap: int, result: Relaxation, left: int) -> bool:
    """Write down the members that have finished and mark them; return whether there were any."""
    last, period, closed = batch.progress()
    stable = batch.live & (last < batch.sweep)
    cyclic = batch.live & ~stable & (period > 0)
    chosen = batch.live if batch.sweep == cap else stable | cyclic
    if not bool(chosen.any()):
        return False
    rows, columns, real = batch.pick(chosen)
    down = torch.tensor(rows)[:, None]
    there = batch.s.device
    up = batch.up[down.to(there), columns.to(there)]
    field = batch.external_of(down.to(there), columns.to(there))
    margin = least_margins(batch.couplings, up, field, active=batch.names(rows)).cpu()[real]
    stable, cyclic, last, period, closed = (
        x[down, columns][real] for x in (stable, cyclic, last, period, closed)
    )
    # At the cap a state may have become stable in the very last sweep: its margins tell.
    fixed = (margin > 0) & ~cyclic
    status = torch.full(margin.shape, int(Status.CAP), dtype=torch.int8)
    status[stable] = int(Status.MARGINAL)
    status[cyclic] = int(Status.CYCLE)
    status[fixed] = int(Status.FIXED_POINT)
    sweeps = torch.where(stable, last, torch.where(cyclic, closed, batch.sweep))
    members = batch.members[down, columns][real]
    sample, start = members // batch.width, left + members % batch.width
    result.status[sample, start] = status
    result.sweeps[sample, start] = sweeps
    result.period[sample, start] = torch.where(fixed, 1, torch.where(cyclic, period, 0))
    result.min_margin[sample, start] = margin
    result.state[sample, start] = up.cpu()[real].to(torch.int8).mul_(2).sub_(1)
    batch.live &= ~chosen
    return True
