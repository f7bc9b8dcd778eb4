"""Make ``tests/learning_fixture.npz``: a short run of the sparse recipe by an implementation apart.

Matrices are full and masked, [from, to], as in the authors' code; numpy, float64, one line of the
protocol after another, and nothing of the package. Run it from the root of the repository::

    python tests/make_learning_fixture.py
"""

from pathlib import Path

import numpy as np

N, D, C, BATCH, BATCHES, SEED = 80, 24, 5, 16, 12, 20250614
JD, LAMBDA_X, LAMBDA_Y, RHO_J, RHO_IN = 0.9, 5.0, 2.0, 0.15, 0.3
ETA_J, ETA_IN, ETA_OUT, DECAY_J, DECAY_IN, DECAY_OUT = 0.02, 0.3, 0.025, 0.5, 0.1, 0.02
KAPPA_J, KAPPA_IN, KAPPA_OUT = 1.4, 1.6, 7.0


def sign(h: np.ndarray) -> np.ndarray:
    return np.where(h >= 0, 1.0, -1.0)


def main() -> None:
    draw = np.random.default_rng(SEED)
    off = ~np.eye(N, dtype=bool)
    mask_j = (draw.random((N, N)) < RHO_J) & off
    mask_in = draw.random((D, N)) < RHO_IN
    # Weights are rounded to float32, where they are stored, before the run begins.
    j = np.float64(np.float32(draw.normal(0, (RHO_J * N) ** -0.5, (N, N)) * mask_j))
    w_in = np.float64(np.float32(draw.normal(0, LAMBDA_X * (RHO_IN * D) ** -0.5, (D, N)) * mask_in))
    w_back = np.float64(np.float32(draw.normal(0, LAMBDA_Y * C**-0.5, (C, N))))
    w_out = np.float64(np.float32(draw.normal(0, N**-0.5, (N, C))))
    x = draw.choice([-1.0, 1.0], (BATCHES, BATCH, D))
    labels = draw.integers(0, C, (BATCHES, BATCH))
    kept = {
        "init_J": np.float32(j),
        "init_W_in": np.float32(w_in),
        "init_W_back": np.float32(w_back),
        "init_W_out": np.float32(w_out),
        "mask_J": mask_j,
        "mask_in": mask_in,
        "x": x.astype(np.int8),
        "labels": labels,
    }
    states, closest = [], np.inf
    scale = BATCH**0.5
    for batch in range(BATCHES):
        onehot = np.eye(C)[labels[batch]]
        code = np.where(onehot == 1, (C - 1) ** 0.5 / 2, -((C - 1) ** -0.5))
        left, right = x[batch] @ w_in, code @ w_back
        s = np.zeros((BATCH, N))
        for sweep in range(11):
            h = s @ j + JD * s + left + (right if 1 <= sweep < 6 else 0)
            closest = min(closest, np.abs(h).min())
            s = sign(h)
        states.append(s)
        h, o, y = s @ j + JD * s + left, s @ w_out, 2 * onehot - 1
        for margin, kappa in ((s * h, KAPPA_J), (s * h, KAPPA_IN), (y * o, KAPPA_OUT)):
            closest = min(closest, np.abs(margin - kappa).min())
        j += ETA_J / (RHO_J * N) ** 0.5 / scale * mask_j * (s.T @ (s * (s * h <= KAPPA_J)))
        learns = s * (s * h <= KAPPA_IN)
        w_in += ETA_IN / (RHO_IN * D) ** 0.5 / scale * mask_in * (x[batch].T @ learns)
        w_out += ETA_OUT / N**0.5 / scale * (s.T @ (y * (y * o <= KAPPA_OUT)))
        j *= 1 - DECAY_J * ETA_J / N**0.5 * (0.1 / RHO_J) ** 0.5
        w_in *= 1 - DECAY_IN * ETA_IN / D**0.5 * (0.1 / RHO_IN) ** 0.5
        w_out *= 1 - DECAY_OUT * ETA_OUT / N**0.5
    # No decision of the run hangs on rounding in float32.
    assert closest > 1e-6, closest
    kept |= {
        "s_star": np.array(states, np.int8),
        "final_J": np.float32(j),
        "final_W_in": np.float32(w_in),
        "final_W_out": np.float32(w_out),
    }
    np.savez_compressed(Path(__file__).parent / "learning_fixture.npz", **kept)
    print(f"nearest decision {closest:.2g}")


if __name__ == "__main__":
    main()
