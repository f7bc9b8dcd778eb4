r"""The plasticity rule and the readout (paper, eqs. plasticity_rule-general, -win and -wout).

.. math:: \Delta J_{ij} = \text{rate}\sum_b g^b_i\,s^b_j, \qquad
    \Delta W^{in}_{ik} = \text{rate}\sum_b g^b_i\,x^b_k, \qquad
    g_i = s^*_i\,w(s^*_i h_i)

with w(m) = 1[m <= kappa] (perceptron) or [1 - tanh(gamma (m - kappa))]/2 (smooth; the paper prints
the opposite sign, which would lower the margins). J_D, lambda and absent couplings stay as they
are.
The symmetric rules replace the product of J by g_i g_j (sym1) or (g_i s_j + s_i g_j)/2 (sym2).
"""

from __future__ import annotations

import torch

from rmsim.couplings import AdjacencyCouplings, DenseChain
from rmsim.couplings.local import add_chain_terms
from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import Phases, without
from rmsim.learning.projection import entry_products, rows_of_entries
from rmsim.learning.state import Internal, State


def update_field(parameters: Parameters, state: State, ends: Phases) -> torch.Tensor:
    """Return the field h of s* that the rule tests."""
    couplings = without(state.couplings, jd=not parameters.test_jd, right=not parameters.test_right)
    external = torch.zeros_like(ends.input_field)
    if parameters.test_input:
        external += ends.input_field
    if parameters.test_labels:
        external += ends.label_field
    if ends.product is None or isinstance(couplings, AdjacencyCouplings):
        return couplings.field(ends.s_star.unsqueeze(0), external.unsqueeze(0))[0]
    h, s = ends.product.unsqueeze(0).clone(), ends.s_star.unsqueeze(0)
    add_chain_terms(h, s, couplings.jd, couplings.lam_left, couplings.lam_right, None)
    return h[0] + external


def weight(parameters: Parameters, margin: torch.Tensor, kappa: float) -> torch.Tensor:
    """Return w, how much a neuron (or output) with this margin learns.

    Examples
    --------
    >>> weight(Parameters(n=2), torch.tensor([-1.0, 1.4, 1.5]), 1.4).tolist()
    [1.0, 1.0, 0.0]
    """
    if parameters.rule == "perceptron":
        return (margin <= kappa).to(margin.dtype)
    return (1 - torch.tanh(parameters.gamma * (margin - kappa))) / 2


def learn_(
    parameters: Parameters, state: State, ends: Phases, x: torch.Tensor, code: torch.Tensor
) -> None:
    """Update J, W_in and W_back of `state` in place by one batch, then let J and W_in decay."""
    s = ends.s_star
    samples = len(s)
    margin = s * update_field(parameters, state, ends)
    if parameters.eta_j > 0:
        g = s * weight(parameters, margin, parameters.kappa_j)
        reinforce_(parameters, state.couplings, g, s, parameters.rate("j", fan_in(state), samples))
    if parameters.eta_in > 0:
        g = (s * weight(parameters, margin, parameters.kappa_in)).flatten(1)
        rate = parameters.rate("in", state.inputs, samples)
        state.w_in.reinforce_(g * state.a_in, x, rate)
    if parameters.eta_back > 0:
        g = (s * weight(parameters, margin, parameters.kappa_back)).flatten(1)
        rate = parameters.rate("back", state.classes, samples)
        state.w_back.reinforce_(g * state.a_back, code, rate)
    decay_(parameters, state)


def learn_readout_(
    parameters: Parameters, state: State, s: torch.Tensor, signs: torch.Tensor
) -> None:
    """Update W_out of `state` in place: outputs y_c o_c <= kappa_out learn."""
    seen = s.flatten(1) * state.a_out
    margin = signs * (seen @ state.w_out.T)
    g = signs * (margin <= parameters.kappa_out)
    neurons = seen.shape[1]
    state.w_out.addmm_(g.T, seen, alpha=parameters.rate("out", neurons, len(s)))
    if parameters.decay_out > 0:
        state.w_out.mul_(parameters.decay("out", neurons))


def reinforce_(
    parameters: Parameters, couplings: Internal, g: torch.Tensor, s: torch.Tensor, rate: float
) -> None:
    """Add the rule's products to the couplings that exist, off the diagonal."""
    if isinstance(couplings, DenseChain):
        for layer, matrix in enumerate(couplings.matrices[0]):
            _reinforce_dense_(parameters, matrix, g[:, layer], s[:, layer], rate)
        return
    rows = couplings.rows
    g, s = (x.reshape(len(x), rows.groups, rows.size) for x in (g, s))
    for group in range(rows.groups):
        bounds, columns, values = rows.entries(0, group)
        places = (rows_of_entries(bounds), columns)
        post, pre = g[:, group], s[:, group]
        if parameters.symmetry == "sym1":
            values.add_(entry_products(*places, post, post), alpha=rate)
        elif parameters.symmetry == "sym2":
            product = entry_products(*places, post, pre)
            product += entry_products(*places, pre, post)
            values.add_(product, alpha=rate / 2)
        else:
            values.add_(entry_products(*places, post, pre), alpha=rate)


def _reinforce_dense_(
    parameters: Parameters, matrix: torch.Tensor, g: torch.Tensor, s: torch.Tensor, rate: float
) -> None:
    if parameters.symmetry in ("sym1", "sym2"):
        product = g.T @ (g if parameters.symmetry == "sym1" else s)
        matrix.add_(product + product.T, alpha=rate / 2)  # symmetric to the last bit
    else:
        matrix.addmm_(g.T, s, alpha=rate)
    matrix.diagonal().zero_()  # J_D is kept apart


def decay_(parameters: Parameters, state: State) -> None:
    """Shrink J off the diagonal and W_in."""
    if parameters.decay_j > 0:
        state.j.mul_(parameters.decay("j", fan_in(state)))
    if parameters.decay_in > 0:
        state.w_in.values.mul_(parameters.decay("in", state.inputs))


def fan_in(state: State) -> int:
    """Return the neurons that a row of J ranges over: n, or all N under an adjacency matrix."""
    couplings = state.couplings
    return couplings.n if isinstance(couplings, DenseChain) else couplings.rows.size
