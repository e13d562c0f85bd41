"""Estimates the silver content from drill cores' assay curves, each of a length of its own (JAX)."""
import queue
import shutil
import tempfile
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from pace import Pace, options

CORES, LONGEST, BATCH, WIDTH = 2000, 640, 16, 32


def drill(folder):
    rng = np.random.default_rng(5)
    for number in range(CORES):
        curve = rng.standard_normal((rng.integers(150, LONGEST), 4)).cumsum(0) / 10
        np.savez(folder / f"core{number:04}.npz", curve=curve.astype(np.float32), silver=np.float32(curve.mean()))


def pad_batch(cores, length):
    curves = np.zeros((len(cores), length, 4), np.float32)
    mask = np.zeros((len(cores), length), np.float32)
    for row, core in enumerate(cores):
        curves[row, :len(core["curve"])] = core["curve"]
        mask[row, :len(core["curve"])] = 1
    return curves, mask, np.array([core["silver"] for core in cores])


def load_cores(folder, fixed_length, out, stop):
    rng = np.random.default_rng()
    cores = []
    for path in sorted(folder.iterdir()):
        with np.load(path) as stored:
            cores.append({"curve": stored["curve"], "silver": stored["silver"]})
    cores.sort(key=lambda core: len(core["curve"]))          # neighbours in length make a batch
    while not stop.is_set():
        start = rng.integers(0, CORES - BATCH)
        chosen = cores[start:start + BATCH]
        batch = pad_batch(chosen, LONGEST if fixed_length else max(len(c["curve"]) for c in chosen))
        while not stop.is_set():
            try:
                out.put(batch, timeout=0.5)
                break
            except queue.Full:
                pass


def estimate(params, curves, mask):
    hidden = jax.nn.gelu(curves @ params["in"])
    hidden = jax.nn.gelu(hidden @ params["mid"]) * mask[..., None]
    return (hidden.sum(1) / mask.sum(1, keepdims=True)) @ params["out"]


def main():
    args = options()
    folder = Path(tempfile.mkdtemp(prefix="assay"))
    keys = jax.random.split(jax.random.key(0), 3)
    params = {"in": jax.random.normal(keys[0], (4, WIDTH)) / 2, "mid": jax.random.normal(keys[1], (WIDTH, WIDTH)) / 6,
              "out": jax.random.normal(keys[2], (WIDTH,)) / 6}

    @jax.jit
    def train_step(params, curves, mask, silver):
        loss, slope = jax.value_and_grad(lambda p: jnp.mean((estimate(p, curves, mask) - silver) ** 2))(params)
        return jax.tree.map(lambda p, s: p - 0.01 * s, params, slope), loss

    try:
        drill(folder)
        batches, stop = queue.Queue(4), threading.Event()
        loader = threading.Thread(target=load_cores, args=(folder, args.fix, batches, stop), name="core-loader")
        loader.start()
        pace = Pace(args.seconds)
        while True:
            params, loss = train_step(params, *batches.get())
            loss = float(loss)
            if pace.done():
                break
        stop.set()
        loader.join()
        print(f"loss {loss:.4f}")
        pace.show()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
