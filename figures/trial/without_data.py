"""Which runs decide the claims that need no data: fixed points, their clusters, and capacities.

As in :mod:`figures.trial.designs`, all of it is fixed before the runs start.
"""

from __future__ import annotations

from figures.trial.runs import (
    Association,
    Capacity,
    Cluster,
    Question,
    Search,
    Walks,
    question,
)

# Networks without input.

#: Samples of a stage -> seeds, such that 120 networks or more are there in the end: if all of 111
#: succeed, the chance of success is above 0.925 at three standard errors.
SHARE_SEEDS = {10: range(12), 20: range(6), 50: range(4)}

#: N, J_D, samples of a stage.
UNREACHABLE = (1000, 0.2, 50)
REACHABLE = (4000, 0.8, 20)
REINFORCED = (4000, 0.35, 10)

#: Method -> most iterations; reinforced BP with dr = 0.01 ends at r = 0.95.
ITERATIONS = {"dynamics": 1000, "rbp": 298, "likelihood": 500}

#: Method -> J_D at which success is measured for its 50 % point, and samples of a stage: at the
#: largest size that is affordable, in the windows of the figure at full scale.
LARGE_N, LARGE_SAMPLES = 4000, 10
WINDOWS = {
    "rbp": (0.15, 0.165, 0.18, 0.195, 0.21),
    "likelihood": (0.41, 0.43, 0.45, 0.47, 0.49),
    "dynamics": (0.66, 0.68, 0.70, 0.72, 0.74),
}

#: Their seeds, one stage each.
LARGE_SEEDS = range(4)

#: Sizes at which iterations of reinforced BP are compared, at the J_D of REINFORCED.
GROWING = (1000, 2000, 4000)


def search(cell: tuple[int, float, int], seed: int, method: str = "dynamics") -> Search:
    """Return networks that a method is to bring to a fixed point; rBP with dr = 0.01."""
    n, jd, samples = cell
    return Search(method, n, jd, samples, ITERATIONS[method], seed)


def searches(method: str, seed: int) -> tuple[Search, ...]:
    """Return the searches along the curve of success of a method, one for each J_D.

    Every J_D has networks of its own, since the fit takes them as independent.
    """
    window = WINDOWS[method]
    return tuple(
        search((LARGE_N, jd, LARGE_SAMPLES), seed * len(window) + place, method)
        for place, jd in enumerate(window)
    )


def growing(seed: int) -> tuple[Search, ...]:
    """Return the searches by reinforced BP at growing N."""
    cells = ((n, *REINFORCED[1:]) for n in GROWING)
    return tuple(search(cell, seed, "rbp") for cell in cells)


def searched() -> list[Question]:
    """Return the questions about what algorithms reach."""
    cells = (
        ("unreachable at small jd", "searches", UNREACHABLE, "dynamics"),
        ("success at 0.8", "dynamics_threshold", REACHABLE, "dynamics"),
        ("rbp at 0.35", "thresholds", REINFORCED, "rbp"),
    )
    curves = (
        ("threshold of rbp", "thresholds", "rbp"),
        ("threshold of the likelihood", "thresholds", "likelihood"),
        ("threshold of the dynamics", "dynamics_threshold", "dynamics"),
    )
    return [
        *(
            question(
                key, data, (key,), *((search(cell, seed, method),) for seed in SHARE_SEEDS[cell[2]])
            )
            for key, data, cell, method in cells
        ),
        *(
            question(key, data, (key,), *(searches(method, seed) for seed in LARGE_SEEDS))
            for key, data, method in curves
        ),
        question(
            "iterations of rbp",
            "thresholds",
            ("iterations of rbp",),
            *(growing(seed) for seed in LARGE_SEEDS),
        ),
    ]


#: N, J_D, pairs of a stage, and N of typical fixed points: their neighbours, 0.8 on average at
#: N = 400, become fewer as N e^{-c sqrt N}.
CLUSTER = (1000, 0.8, 20, 2000)


def cluster(seed: int) -> Cluster:
    """Return fixed points that the dynamics reaches, to be joined by single flips."""
    return Cluster(*CLUSTER, seed)


#: Walks between the two fixed points of a pair.
WALKS = 10


def walks(seed: int) -> Walks:
    """Return walks of single flips between the same fixed points, which only come nearer."""
    return Walks(*CLUSTER[:3], WALKS, seed)


def clusters() -> list[Question]:
    """Return the questions about fixed points that single flips join."""
    keys, seeds = ("typical fixed points", "connected cluster"), SHARE_SEEDS[20]
    return [
        question("clusters", "clusters", keys, *((cluster(seed),) for seed in seeds)),
        question(
            "branches", "clusters", ("branching cluster",), *((walks(seed),) for seed in seeds)
        ),
    ]


# Hetero-association.

#: Sizes of the chains, and depth -> load P/N at each from which P_max is searched for. They follow
#: trials at random loads, eight a cell up to N = 600, whose fits determined one P_max of eleven.
#: The paper's largest N is 2000, which takes days.
ASSOCIATION_N = (200, 400, 600, 1000)
STARTS = {
    2: (0.42, 0.46, 0.47, 0.49),
    3: (0.79, 0.85, 0.88, 0.9),
    5: (0.75, 0.85, 0.92, 0.95),
    7: (0.75, 0.85, 0.92, 0.95),
}

#: 1 - epsilon: 5th percentile of the overlaps from which pairs count as learnt.
LEARNT = 0.95

#: Networks of each size and depth, by stage.
ASSOCIATION_SEEDS = (range(3), range(3, 6))

#: Depths and sizes at which the protocol as printed is tried, over all loads.
PRINTED_LAYERS, PRINTED_N, PRINTED_LOADS = (2, 3, 5), (200, 400), (0.02, 1.0)
PRINTED_SEEDS = range(8)


def capacity(layers: int, n: int, seed: int) -> Capacity:
    """Return the search for the P_max of a chain, by the protocol that we reconstructed."""
    start = STARTS[layers][ASSOCIATION_N.index(n)]
    return Capacity("reconstruction", layers, n, start, seed)


#: Depth, N and load of the chain whose overlaps are read layer by layer: those of the paper, at a
#: load that an earlier version of this code learnt at N = 400, where P_max/N still grew with N.
CHAIN = (7, 2000, 0.8)

#: Networks of it, all in one stage: fewer have no error.
CHAIN_SEEDS = (0, 1, 2)


def chain_association(seed: int) -> Association:
    """Return a trial whose overlaps are read layer by layer."""
    layers, n, load = CHAIN
    return Association("reconstruction", layers, n, (load, load), seed)


def printed_association(layers: int, n: int, seed: int) -> Association:
    """Return a trial by the protocol as printed."""
    return Association("printed", layers, n, PRINTED_LOADS, seed)


def capacities() -> list[Question]:
    """Return the questions about random pairs that chains learn."""

    def networks(depths: tuple[int, ...]) -> tuple[tuple[Capacity, ...], ...]:
        return tuple(
            tuple(capacity(layers, n, k) for n in ASSOCIATION_N for layers in depths for k in seeds)
            for seeds in ASSOCIATION_SEEDS
        )

    shallow = ("capacity reconstruction 3-2", "capacity linear")
    return [
        question("capacity, two and three layers", "capacity", shallow, *networks((2, 3))),
        question(
            "capacity, more layers",
            "capacity",
            ("capacity reconstruction beyond 3",),
            *networks((3, 5, 7)),
        ),
        question(
            "overlaps by layer",
            "capacity",
            (
                *(f"overlap of the {layer} layer" for layer in ("first", "last")),
                "overlap grows",
                "alignment of the first layer",
            ),
            tuple(map(chain_association, CHAIN_SEEDS)),
        ),
        question(
            "capacity of the printed protocol",
            "capacity",
            ("capacity printed",),
            tuple(
                printed_association(layers, n, k)
                for n in PRINTED_N
                for layers in PRINTED_LAYERS
                for k in PRINTED_SEEDS
            ),
        ),
    ]
