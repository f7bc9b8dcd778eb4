r"""Dense networks on the CPU: only what flips is multiplied.

After the first sweep few neurons flip, 1 in 30 and then fewer. So the field of a state is not
computed anew but corrected,

.. math:: (Js)_i \leftarrow (Js)_i + \sum_{j\ \text{flipped}} J_{ij}\,(s^{new}_j - s^{old}_j),

column by column; a sweep in which many flip takes the matrix product instead. Columns have to be
contiguous: :func:`by_columns` stores J that way. The field differs from that of the product by
rounding, some 1e-6.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from rmsim.compiled_loops import compiled, run_parts, shares, thread_count
from rmsim.couplings import PlasticCouplings
from rmsim.learning.state import State

#: Neurons worth a thread of their own.
_GRAIN = 2**18
#: Samples whose products stay in the cache while the columns pass.
_SAMPLES = 16
#: Share of the neurons above which their flips cost more than a product.
_MANY = 0.25


def by_columns(state: State) -> State:
    """Return the same state with the columns of a dense J contiguous; for the CPU only."""
    return replace(state, couplings=state.couplings.by_columns())


def by_rows(state: State) -> State:
    """Return the same state with its weights in the usual order of memory."""
    return replace(state, couplings=state.couplings.by_rows())


class Flips:
    """States of a batch under one dense network, from s = 0, with their fields J s.

    Parameters
    ----------
    couplings : PlasticCouplings
        One network, its columns contiguous.
    samples : int
        States.
    sequential : bool
        Update layer after layer.
    """

    def __init__(self, couplings: PlasticCouplings, samples: int, sequential: bool) -> None:
        self.couplings = couplings
        layers = couplings.layers
        self._groups = [(k, k + 1) for k in range(layers)] if sequential else [(0, layers)]
        shape = (samples, couplings.layers, couplings.n)
        columns = couplings.columns
        assert columns is not None
        self.columns = columns
        self.s = torch.zeros(shape, dtype=couplings.dtype)
        self.product = torch.zeros(shape, dtype=couplings.dtype)
        self._new = torch.empty(shape, dtype=couplings.dtype)
        kind = self.columns.numpy().dtype.type
        chain = (couplings.jd, *(couplings.homologous.get(step, 0.0) for step in (-1, 1)))
        self._chain = tuple(kind(x) for x in chain)
        self._most = int(_MANY * samples * couplings.n)
        #: Whether sweeps of all neurons can be done by :meth:`run`.
        self.synchronous = not sequential or layers == 1
        self._rest = True

    def run(self, external: torch.Tensor, sweeps: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Do at most `sweeps` synchronous sweeps of all neurons, each sample until it is fixed.

        Returns
        -------
        Tensor of int, (samples)
            Sweeps that began at a state that was not a fixed point.
        Tensor of bool, (samples)
            Whether the state is a fixed point.
        """
        samples = len(self.s)
        used = torch.zeros(samples, dtype=torch.int64)
        fixed = torch.zeros(samples, dtype=torch.bool)
        if self._rest and sweeps > 0:  # from s = 0 all neurons change: one product
            self.sweep(external, None)
            used += 1
            sweeps -= 1
        arrays = (self.columns, self.product, self.s, external.contiguous())
        given = (*(x.numpy() for x in arrays), self._chain, sweeps, used.numpy(), fixed.numpy())
        parts = shares(samples, min(samples, thread_count(self.s.numel() * (sweeps + 1), _GRAIN)))
        run_parts(_run, [(*given, part) for part in parts])
        return used, fixed

    def sweep(self, external: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Do one sweep; see :class:`rmsim.learning.phases.Motion`."""
        self._rest = False
        samples = len(self.s)
        unstable = torch.zeros(samples, dtype=torch.bool)
        flips = np.zeros((samples, self.s.shape[1]), np.int64)
        product, s, new = self.product.numpy(), self.s.numpy(), self._new.numpy()
        columns, field = self.columns.numpy(), external.contiguous().numpy()
        allowed = (unstable.view(-1, 1, 1) if mask is None else mask).numpy()
        masked, against = mask is not None, unstable.numpy()
        parts = shares(samples, min(samples, thread_count(s.size, _GRAIN)))
        for group in self._groups:
            states = (product, s, new, field, self._chain, allowed, masked, group, against, flips)
            run_parts(_follow, [(*states, part) for part in parts])
            for layer in range(*group):
                if flips[:, layer].sum() <= self._most:
                    run_parts(_flip, [(columns, product, s, new, layer, part) for part in parts])
                    continue
                self.s[:, layer] = self._new[:, layer]
                torch.mm(self.s[:, layer], self.columns[layer], out=self.product[:, layer])
        return unstable


@compiled
def _run(
    columns: Any,
    product: Any,
    s: Any,
    external: Any,
    chain: Any,
    sweeps: int,
    used: Any,
    fixed: Any,
    part: Any,
) -> None:
    """Sweep the samples of a part one by one: state and product of a sample stay in the cache."""
    jd, left, right = chain
    one = s.dtype.type(1)
    layers, n = s.shape[1], s.shape[2]
    new = np.empty((layers, n), s.dtype)
    for b in range(part[0], part[1]):
        for sweep in range(sweeps + 1):
            flips = 0
            for layer in range(layers):
                here, there = s[b, layer], new[layer]
                total, field = product[b, layer], external[b, layer]
                before, after = s[b, max(layer - 1, 0)], s[b, min(layer + 1, layers - 1)]
                from_left = left if layer > 0 else left * 0
                from_right = right if layer < layers - 1 else right * 0
                for i in range(n):
                    h = total[i] + jd * here[i]
                    h = h + from_left * before[i] + from_right * after[i] + field[i]
                    there[i] = one if h >= 0 else -one
                for i in range(n):
                    flips += there[i] != here[i]
            if flips == 0:
                fixed[b] = True
                break
            if sweep == sweeps:  # this one only checked
                break
            used[b] += 1
            for layer in range(layers):
                here, there, total = s[b, layer], new[layer], product[b, layer]
                for j in range(n):
                    if there[j] != here[j]:
                        change, column = there[j] - here[j], columns[layer, j]
                        for i in range(n):
                            total[i] += change * column[i]
                        here[j] = there[j]


@compiled
def _follow(
    product: Any,
    s: Any,
    new: Any,
    external: Any,
    chain: Any,
    mask: Any,
    masked: bool,
    group: Any,
    unstable: Any,
    flips: Any,
    part: Any,
) -> None:
    """Write the signs of the fields of some layers into `new`, for a part of the samples.

    Adds to `unstable` which states disagree with their field, and sets the number of `flips`,
    (samples, layers).
    """
    jd, left, right = chain
    one = s.dtype.type(1)
    last = s.shape[1] - 1
    for b in range(part[0], part[1]):
        for layer in range(group[0], group[1]):
            here, there = s[b, layer], new[b, layer]
            before, after = s[b, max(layer - 1, 0)], s[b, min(layer + 1, last)]
            from_left = left if layer > 0 else left * 0
            from_right = right if layer < last else right * 0
            disagree = count = 0
            for i in range(s.shape[2]):
                h = product[b, layer, i] + jd * here[i]
                h = h + from_left * before[i] + from_right * after[i] + external[b, layer, i]
                wanted = one if h >= 0 else -one
                disagree += wanted != here[i]
                there[i] = wanted if not masked or mask[b, layer, i] else here[i]
                count += there[i] != here[i]
            unstable[b] |= disagree > 0
            flips[b, layer] = count


@compiled
def _flip(columns: Any, product: Any, s: Any, new: Any, layer: int, part: Any) -> None:
    """Let the neurons of a layer flip, and correct the products of a part of the samples."""
    n = s.shape[2]
    for first in range(part[0], part[1], _SAMPLES):
        last = min(part[1], first + _SAMPLES)
        for j in range(n):
            for b in range(first, last):
                change = new[b, layer, j] - s[b, layer, j]
                if change != 0:
                    column, total = columns[layer, j], product[b, layer]
                    for i in range(n):
                        total[i] += change * column[i]
                    s[b, layer, j] = new[b, layer, j]
