"""The learning step written out with loops in float64, and small tasks to try it on.

Nothing here is shared with the package: matrices are full, J_D is on the diagonal.
"""

from typing import Any

import numpy as np
import torch

from rmsim.learning import Parameters, State

Matrix = np.ndarray[Any, np.dtype[np.float64]]


def task(
    samples: int, inputs: int, classes: int, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy prototypes, +-1, and their classes."""
    draw = torch.Generator().manual_seed(seed)
    prototypes = torch.randn(classes, inputs, generator=draw)
    labels = torch.randint(classes, (samples,), generator=draw)
    noise = 0.7 * torch.randn(samples, inputs, generator=draw)
    return torch.where(prototypes[labels] + noise > 0, 1, -1).to(torch.int8), labels


def identity_chain(n: int, layers: int) -> Parameters:
    """A chain whose first layer sees x and whose last sees the code y, neuron by neuron."""
    return Parameters.of(
        n=n,
        layers=layers,
        jd=0.1,
        lam_left=1.5,
        lam_right=1.5,
        lambda_x=2.0,
        lambda_y=4.0,
        warmup=layers,
        clamped=12,
        inference=36 + layers,
        stop="converged",
        scheme="approximate",
        test_right=False,
        right_in_inference=False,
        eta_j=0.03,
        eta_in=0.0,
        eta_out=0.0,
        kappa_j=1.5,
        input_kind="identity",
        back_kind="identity",
        readout="none",
    )


class Naive:
    """One network, one sample at a time, all layers as one big matrix."""

    def __init__(self, parameters: Parameters, state: State) -> None:
        self.parameters = parameters
        n, layers = parameters.couplings.n, parameters.couplings.layers
        self.j = np.zeros((n * layers, n * layers))
        self.learns = np.zeros_like(self.j, dtype=bool)
        present = state.dense_j().double().numpy()
        for layer in range(layers):
            block = slice(layer * n, (layer + 1) * n)
            self.j[block, block] = present[layer]
            self.learns[block, block] = present[layer] != 0
        self.fixed = np.zeros_like(self.j)
        self.right = np.zeros_like(self.j)
        for i in range(n * layers):
            self.fixed[i, i] = parameters.couplings.jd
            if i >= n:
                self.fixed[i, i - n] = parameters.couplings.lam_left
            if i + n < n * layers:
                self.right[i, i + n] = parameters.couplings.lam_right
        self.w_in = state.w_in.to_dense().double().numpy().copy()
        self.w_back = state.w_back.to_dense().double().numpy().copy()
        self.w_out = state.w_out.double().numpy().copy()
        self.present_in = self.w_in != 0

    def field(self, s: Matrix, x: Matrix, y: Matrix | None) -> Matrix:
        h = (self.j + self.fixed + self.right) @ s + self.w_in @ x
        return h if y is None else h + self.w_back @ y

    def present(self, x: Matrix, label: int) -> tuple[Matrix, Matrix]:
        """s' and s* of one sample."""
        code = np.full(self.w_back.shape[1], self.parameters.w_back.label_other)
        code[label] = self.parameters.w_back.label_true
        s = np.zeros(len(self.j))
        plan = [(self.parameters.phases.warmup, None), (self.parameters.phases.clamped, code)]
        for sweeps, y in plan:
            for _ in range(sweeps):
                s = np.where(self.field(s, x, y) >= 0, 1.0, -1.0)
        s_prime = s.copy()
        for _ in range(
            self.parameters.phases.free if self.parameters.phases.scheme == "full" else 0
        ):
            s = np.where(self.field(s, x, None) >= 0, 1.0, -1.0)
        return s_prime, s

    def weight(self, margin: float, kappa: float) -> float:
        if self.parameters.rule.kind == "perceptron":
            return 1.0 if margin <= kappa else 0.0
        return 0.5 - 0.5 * float(np.tanh(self.parameters.rule.gamma * (margin - kappa)))

    def learn(self, x: Matrix, label: int) -> Matrix:
        """One presentation, online: the rules of the paper entry by entry. Returns s*."""
        _, s = self.present(x, label)
        margin = s * self.field(s, x, None)
        parameters, (neurons, inputs) = self.parameters, self.w_in.shape
        n = parameters.couplings.n
        rate_j = parameters.j.eta / n**0.5
        rate_in = parameters.w_in.eta * parameters.w_in.strength / inputs**0.5
        rate_out = parameters.readout.eta / neurons**0.5
        for i in range(neurons):
            for j in range(neurons):
                if self.learns[i, j]:
                    own = self.weight(margin[i], parameters.j.kappa)
                    other = self.weight(margin[j], parameters.j.kappa)
                    gate = {"sym1": own * other, "sym2": (own + other) / 2}
                    gates = gate.get(parameters.couplings.symmetry, own)
                    self.j[i, j] += rate_j * s[i] * s[j] * gates
            for k in range(inputs):
                if self.present_in[i, k]:
                    gate_in = self.weight(margin[i], parameters.w_in.kappa)
                    self.w_in[i, k] += rate_in * s[i] * x[k] * gate_in
        output = self.w_out @ s
        for c in range(len(self.w_out)):
            y = 1.0 if c == label else -1.0
            if y * output[c] <= parameters.readout.kappa:
                self.w_out[c] += rate_out * y * s * (self.w_out[c] != 0)
        return s
