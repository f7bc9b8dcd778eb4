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

from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import Phases
from rmsim.learning.state import State


def update_field(parameters: Parameters, state: State, ends: Phases) -> torch.Tensor:
    """Return the field h of s* that the rule tests."""
    rule = parameters.rule
    couplings = state.couplings.without(jd=not rule.test_jd, right=not rule.test_right)
    external = torch.zeros_like(ends.input_field)
    if rule.test_input:
        external += ends.input_field
    if rule.test_labels:
        external += ends.label_field
    s, external = ends.s_star.unsqueeze(0), external.unsqueeze(0)
    if ends.product is None:
        return couplings.field(s, external)[0]
    return couplings.field_of_product(ends.product.unsqueeze(0), s, external)[0]


def weight(parameters: Parameters, margin: torch.Tensor, kappa: float) -> torch.Tensor:
    """Return w, how much a neuron (or output) with this margin learns.

    Examples
    --------
    >>> weight(Parameters.of(n=2), torch.tensor([-1.0, 1.4, 1.5]), 1.4).tolist()
    [1.0, 1.0, 0.0]
    """
    if parameters.rule.kind == "perceptron":
        return (margin <= kappa).to(margin.dtype)
    return (1 - torch.tanh(parameters.rule.gamma * (margin - kappa))) / 2


def learn_(
    parameters: Parameters, state: State, ends: Phases, x: torch.Tensor, code: torch.Tensor
) -> None:
    """Update J, W_in and W_back of `state` in place by one batch, then let J and W_in decay."""
    s = ends.s_star
    samples = len(s)
    margin = s * update_field(parameters, state, ends)
    if parameters.j.eta > 0:
        g = s * weight(parameters, margin, parameters.j.kappa)
        rate = parameters.rate("j", state.couplings.fan_in, samples)
        pre = g if parameters.couplings.symmetry == "sym1" else s
        symmetric = parameters.couplings.symmetry in ("sym1", "sym2")
        state.couplings.reinforce_(g, pre, rate, symmetric=symmetric)
    if parameters.w_in.eta > 0:
        g = (s * weight(parameters, margin, parameters.w_in.kappa)).flatten(1)
        rate = parameters.rate("in", state.inputs, samples)
        state.w_in.reinforce_(g * state.a_in, x, rate)
    if parameters.w_back.eta > 0:
        g = (s * weight(parameters, margin, parameters.w_back.kappa)).flatten(1)
        rate = parameters.rate("back", state.classes, samples)
        state.w_back.reinforce_(g * state.a_back, code, rate)
    decay_(parameters, state)


def learn_readout_(
    parameters: Parameters, state: State, s: torch.Tensor, signs: torch.Tensor
) -> None:
    """Update W_out of `state` in place: outputs y_c o_c <= kappa_out learn."""
    seen = s.flatten(1) * state.a_out
    margin = signs * (seen @ state.w_out.T)
    g = signs * (margin <= parameters.readout.kappa)
    neurons = seen.shape[1]
    state.w_out.addmm_(g.T, seen, alpha=parameters.rate("out", neurons, len(s)))
    if parameters.readout.decay > 0:
        state.w_out.mul_(parameters.decay("out", neurons))


def label_signs(state: State, labels: torch.Tensor) -> torch.Tensor:
    """Return y of the readout, (samples, C): +1 for the class and -1 for the others."""
    if labels.dim() == 2:
        return labels.to(dtype=state.dtype, device=state.device).sign()
    signs = torch.full((len(labels), state.classes), -1.0, dtype=state.dtype, device=state.device)
    return signs.scatter_(1, labels.to(state.device).unsqueeze(1), 1.0)


def decay_(parameters: Parameters, state: State) -> None:
    """Shrink J off the diagonal and W_in."""
    if parameters.j.decay > 0:
        state.j.mul_(parameters.decay("j", state.couplings.fan_in))
    if parameters.w_in.decay > 0:
        state.w_in.values.mul_(parameters.decay("in", state.inputs))
