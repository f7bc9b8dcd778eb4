r"""How a chain learns pairs x -> y: fields, phases and the plasticity rule.

.. math::
    h^l = J^l s^l + \lambda s^{l-1} + \lambda s^{l+1}, \qquad
    J^l_{ij} \mathrel{+}= \eta \sum_\mu s_i s_j\, 1[s_i \tilde h_i \le \kappa],
    \quad \eta = \frac{\eta_0}{\sqrt{N B}},

with :math:`\lambda_x x` in the place of :math:`\lambda s^0` and, while the target is shown,
:math:`\lambda_y y` in the place of :math:`\lambda s^{L+1}`; J_ii = J_D is never changed. The
capacity is that of the last layer, whose state is compared with y.

The paper gives no settings for this task. Two protocols are named here:

``printed``
    The paper's words: the target is removed and a free phase follows, the rule stabilises what it
    ends in, in the whole field, and at inference all layers act on each other. Neurons are updated
    with probability p, as the paper does in chains.
``reconstruction``
    What shows the paper's growth of capacity with depth: no free phase, and the field from the
    right, :math:`\lambda s^{l+1}`, is left out of :math:`\tilde h` and of inference.
"""

from __future__ import annotations

from dataclasses import dataclass

from rmtheory import checks
from rmtheory.errors import InvalidInputError


@dataclass(frozen=True)
class Protocol:
    """All choices of the protocol.

    Parameters
    ----------
    name : str
        Under which it is known.
    right_in_rule, right_at_inference : bool
        Whether the field from the right counts in the rule and acts at inference.
    free_sweeps : int
        Sweeps without target after those with it; 0 for no free phase.
    p : float
        Chance of a neuron to be updated in a sweep.
    lam, lam_x, lam_y, jd, kappa, eta : float
        Couplings of layers, input and target, self-coupling, margin, rate before scaling.
    batch : int
        Patterns learnt together.
    clamped_sweeps, inference_sweeps : int
        Most sweeps with target, and at inference, where L more are made.
    check_every, max_epochs : int
        Epochs between looks at the overlaps, and at most.
    enough : float
        Training ends once the 5th percentile of the overlaps reaches it.
    """

    name: str
    right_in_rule: bool
    right_at_inference: bool
    free_sweeps: int
    p: float = 1.0
    lam: float = 1.5
    lam_x: float = 2.0
    lam_y: float = 4.0
    jd: float = 0.1
    kappa: float = 1.5
    eta: float = 0.03
    batch: int = 16
    clamped_sweeps: int = 12
    inference_sweeps: int = 36
    check_every: int = 10
    max_epochs: int = 300
    enough: float = 0.99

    def __post_init__(self) -> None:
        for name, least in (
            ("free_sweeps", 0),
            ("batch", 1),
            ("clamped_sweeps", 1),
            ("inference_sweeps", 1),
            ("check_every", 1),
            ("max_epochs", 1),
        ):
            checks.integer(name, getattr(self, name), least)
        if not 0 < self.p <= 1:
            raise InvalidInputError("p", self.p, "a probability above 0, at most 1")


RECONSTRUCTION = Protocol(
    "reconstruction", right_in_rule=False, right_at_inference=False, free_sweeps=0
)
PRINTED = Protocol("printed", right_in_rule=True, right_at_inference=True, free_sweeps=12, p=0.8)

PROTOCOLS = {protocol.name: protocol for protocol in (RECONSTRUCTION, PRINTED)}


def protocol_named(name: str) -> Protocol:
    """Return the protocol called `name`."""
    if name not in PROTOCOLS:
        raise InvalidInputError("protocol", name, f"one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
