"""The surroundings of one fixed point: margins, local entropy, neighbours, and their theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rmsim.couplings.chains import DenseChain, draw_dense
from rmsim.dynamics.sweeps import check_margins
from rmsim.network import Network
from rmsim.search.neighbours import Neighbours, count_neighbours, neighbour_seconds
from rmsim.search.tap_entropy import (
    GAMMAS,
    SOURCES,
    LocalEntropy,
    local_entropy_around,
    reference_point,
)
from rmsim.studies.compare import TheoryEntropies, local_entropies
from rmsim.tensors import Numbers, checked_seed, checked_states, choose_device
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Distances at which the theory is drawn.
_DRAWN = tuple(np.round(np.geomspace(0.01, 0.45, 14), 4).tolist())


@dataclass(frozen=True, eq=False)
class CheckedStates:
    """Whether states are fixed points of one network, judged in float64.

    Parameters
    ----------
    min_margin : ndarray
        Least s h over the neurons of each state.
    unsatisfied : ndarray of int
        Neurons of each state against their field (or without one).
    """

    min_margin: np.ndarray[Any, np.dtype[np.float64]]
    unsatisfied: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def fixed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of the states are fixed points: all margins positive."""
        return np.asarray(self.min_margin > 0)


def check_fixed_points(network: Network, states: Numbers, *, seed: int = 0) -> CheckedStates:
    """Return the margins of states in a network, its couplings given or drawn as sample 0.

    Parameters
    ----------
    network : Network
        Dense.
    states : array_like, Tensor or path of an .npy file
        The states, +1 and -1: (count, layers, n) or (layers, n); for one layer (count, n) or (n,).
    seed : int
        Seed of drawn couplings.

    Examples
    --------
    >>> import rmsim as rs
    >>> network = rs.Network.from_array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], jd=0.5)
    >>> check_fixed_points(network, [[1, 1, 1], [1, -1, 1]]).fixed
    array([ True, False])
    """
    spins = states_of(network, "states", states)
    couplings = draw_dense(network, checked_seed(seed), range(1), dtype=torch.float64)
    margin, unsatisfied = check_margins(couplings, spins.cpu().double()[None])
    return CheckedStates(margin[0].cpu().numpy(), unsatisfied[0].cpu().numpy())


def states_of(network: Network, name: str, states: Numbers) -> torch.Tensor:
    """Return states of the user's own, (count, layers, n), at least one; refuse other shapes."""
    spins = checked_states(name, states)
    shape = tuple(spins.shape)
    size = (network.layers, network.n)
    known = [("count", *size), size]
    if network.layers == 1:
        known = [("count", *size), ("count", network.n), (network.n,)]
    if not spins.numel() or not any(
        len(shape) == len(one) and all(b in ("count", a) for a, b in zip(shape, one, strict=True))
        for one in known
    ):
        allowed = "of shape " + " or ".join(str(one).replace("'", "") for one in known)
        allowed += "" if spins.numel() else ", with one state or more"
        raise InvalidInputError(name, f"of shape {shape}", allowed)
    return spins.reshape(-1, *size)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """What surrounds one fixed point, the reference point.

    Parameters
    ----------
    network : Network
        The network.
    source : str
        Where the reference point comes from.
    state : Tensor of int8, (layers, n)
        The reference point.
    min_margin : float
        Its least margin s h.
    neighbours : tuple of Neighbours
        Fixed points at distance 1, 2, ...
    curve : LocalEntropy
        S(d) by TAP, d the distance from the reference point.
    """

    network: Network
    source: str
    state: torch.Tensor
    min_margin: float
    neighbours: tuple[Neighbours, ...]
    curve: LocalEntropy

    def to_dict(self, distances: Sequence[float], *, theory: bool = False) -> dict[str, Any]:
        """Return all that was measured as JSON values, S at these `distances` among it.

        With `theory`, also what :meth:`against_theory` gives.
        """
        curve = self.curve
        return {
            "parameters": self.network.parameters() | {"reference": self.source},
            **neighbour_counts(self.neighbours),
            **self.at(distances),
            **(self.against_theory(distances) if theory else {}),
            "curve": {
                "gamma": curve.gamma.tolist(),
                "d": curve.d.tolist(),
                "entropy": curve.entropy.tolist(),
                "mutual": curve.mutual.tolist(),
                "metastable": curve.metastable.tolist(),
            },
            "failed": [{"gamma": value, "status": why} for value, why in curve.failed],
            "least_distance": float(curve.d[-1]),
            "min_margin": self.min_margin,
        }

    def at(self, distances: Sequence[float]) -> dict[str, list[float | None]]:
        """Return S at distances from the reference point, and how far two of them are apart."""
        pairs = [self.curve.with_error(d) for d in distances]
        answer: dict[str, list[float | None]] = {"distances": list(distances)}
        for k, name in enumerate(("entropies", "mutual_distances")):
            for place, end in enumerate(("", "_error")):
                answer[name + end] = [
                    None if (x := pair[k]) is None else x[place] for pair in pairs
                ]
        return answer

    def against_theory(self, distances: Sequence[float]) -> dict[str, list[float | None]]:
        """Return S of theory for regions as wide as those at `distances` from the reference point.

        The reference point of theory is one of many in its region, so that its d is the distance
        between two of them: the values belong to `mutual_distances` of :meth:`at`, whose errors
        times the slope are part of theirs.
        """
        demand_drawn(self.network)
        mutual = [self.curve.with_error(d)[1] for d in distances]
        wanted = sorted({x for x, _ in filter(None, mutual) if 0 < x < 0.5})
        answer: dict[str, list[float | None]] = {}
        theory = local_entropies(self.network.chain, wanted) if wanted else None
        for name in ("densest", "typical"):
            values, errors = [], []
            for pair in mutual:
                value = error = math.nan
                if theory is not None and pair is not None and pair[0] in wanted:
                    k = wanted.index(pair[0])
                    value, slope = (getattr(theory, name + end)[k] for end in ("", "_slope"))
                    error = getattr(theory, f"{name}_error")[k] + abs(slope) * pair[1]
                known = math.isfinite(value)
                values.append(float(value) if known else None)
                errors.append(float(error) if known else None)
            answer |= {f"theory_{name}": values, f"theory_{name}_error": errors}
        return answer


def demand_drawn(network: Network) -> None:
    """Refuse a comparison with theory for couplings that are given."""
    if network.given is not None:
        allowed = "absent with couplings of your own: the theory is that of random couplings"
        raise InvalidInputError("against_theory", True, allowed)


def neighbour_counts(neighbours: Sequence[Neighbours]) -> dict[str, float | None]:
    """Return counts by distance as JSON values; those that were estimated have an error."""
    counts: dict[str, float | None] = {}
    for one in neighbours:
        counts[f"at_distance_{one.distance}"] = one.count
        if not one.exact:
            counts[f"at_distance_{one.distance}_error"] = one.error
    return counts


def survey_neighbourhood(
    network: Network,
    reference: str | Path | Numbers = "planted",
    *,
    gammas: Sequence[float] = GAMMAS,
    most: int = 2,
    seed: int = 0,
    device: str | torch.device = "auto",
    progress: Callable[[int], None] | None = None,
) -> Neighbourhood:
    """Find or read a fixed point, and return what surrounds it.

    Parameters
    ----------
    network : Network
        Dense and not symmetric; couplings drawn (sample 0 of the seed) or of your own.
    reference : str, path or array_like
        Source of the reference point, one of :data:`rmsim.search.tap_entropy.SOURCES`, or a fixed
        point of your own: an array (layers, n) or the path of an .npy file, whose first state is
        taken.
    gammas : sequence of float
        Fields of the scan, as for :func:`rmsim.search.tap_entropy.local_entropy_around`.
    most : int
        Largest distance at which neighbours are counted or estimated.
    seed : int
        Seed of couplings, starts and estimates.
    device : str or torch.device
        Where message passing runs.
    progress : callable, optional
        Called with the number of fields that are done.
    """
    number, place = checked_seed(seed), choose_device(device)
    reach = checks.integer("most", most, 1, network.n * network.layers)
    if isinstance(reference, str) and not reference.endswith(".npy"):
        source = reference
        if network.given is not None and source == "planted":
            allowed = "dynamics, rbp, likelihood or an .npy file: a planted point draws its own J"
            raise InvalidInputError("reference", source, allowed)
        if source not in SOURCES:
            allowed = f"one of {', '.join(SOURCES)}, or an .npy file"
            raise InvalidInputError("reference", source, allowed)
        drawn, state = reference_point(network, source, seed=number, device=place)
    else:
        source = str(reference) if isinstance(reference, (str, Path)) else "given"
        state = states_of(network, "reference", reference)[0].to(torch.int8).cpu()
        drawn = draw_dense(network, number, range(1), dtype=torch.float64, device=place)
    exact = DenseChain(drawn.matrices.double(), drawn.jd, drawn.lam_left, drawn.lam_right)
    margin, _ = check_margins(exact, state.to(exact.device).double()[None, None])
    if not float(margin) > 0:
        raise InvalidInputError("reference", source, "a fixed point of these couplings")
    J = drawn.matrices[0].double().cpu().numpy()
    counts = count_neighbours(J, state.numpy(), network, reach, seed=number)
    curve = local_entropy_around(drawn, state, gammas, progress=progress)
    return Neighbourhood(network, source, state, float(margin), counts, curve)


#: Seconds per field of a scan, and per field and coupling, measured on one core.
_FIELD, _FIELD_COUPLING = 0.018, 3e-8


def survey_seconds(network: Network, fields: int, most: int) -> float:
    """Return about how many CPU-seconds :func:`survey_neighbourhood` takes after its search.

    Examples
    --------
    >>> import rmsim as rs
    >>> 0.5 < survey_seconds(rs.Network(400, rs.Chain(1, jd=0.8)), 61, 2) < 5
    True
    """
    scan = fields * (_FIELD + _FIELD_COUPLING * network.layers * network.n**2)
    return scan + neighbour_seconds(network.n * network.layers, most)


def plot_neighbourhood(
    surroundings: Neighbourhood, title: str, theory: TheoryEntropies | None = None
) -> Figure:
    """Draw S against the distance from the reference point, or against theory's distance.

    Parameters
    ----------
    surroundings : Neighbourhood
        What was measured.
    title : str
        Title of the picture.
    theory : TheoryEntropies, optional
        Drawn besides, from :func:`theory_to_draw`; the abscissa is then the distance between two of
        the fixed points, for both.
    """
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=(3.6, 2.8), layout="constrained")
    axis = picture.subplots()
    curve = surroundings.curve
    if theory is None:
        axis.plot(curve.d, curve.entropy, ".-", ms=3, lw=1)
        axis.set_xlabel("distance $d$ from the reference point")
    else:
        axis.plot(*theory.smooth("densest"), "-", lw=1, label="theory, densest $S_I^*$")
        if not np.isnan(theory.typical).all():
            axis.plot(*theory.smooth("typical"), "--", lw=1, label="theory, typical")
        axis.plot(curve.mutual, curve.entropy, ".", ms=3, label=f"around {surroundings.source}")
        axis.set_xlabel("distance between two of the fixed points")
        axis.legend(fontsize=6)
    axis.set(ylabel="$S$ (nat per neuron)", xlim=(0, 0.5))
    axis.set_title(title, fontsize=6)
    return picture


def theory_to_draw(network: Network) -> TheoryEntropies:
    """Return the curves of theory for :func:`plot_neighbourhood`."""
    return local_entropies(network.chain, _DRAWN)
