"""Picks the arrival of the P wave in three-component seismograms; JAX, windows cut by two threads."""
import os
import queue
import shutil
import tempfile
import threading

import jax
import jax.numpy as jnp
import numpy as np
import optax

from pace import Pace, options

STATIONS, SAMPLES, WINDOW, BATCH = 6, 60000, 256, 16


def record(folder):
    rng = np.random.default_rng(2)
    for station in range(STATIONS):
        trace = rng.normal(size=(SAMPLES, 3)).astype(np.float32)
        np.save(os.path.join(folder, f"ST{station:02}.npy"), np.cumsum(trace, axis=0) / 50)


class Windows:
    """Threads which cut windows out of the stations' days and queue them as batches."""

    def __init__(self, folder, threads=2):
        self.days = [np.load(os.path.join(folder, name), mmap_mode="r") for name in sorted(os.listdir(folder))]
        self.ready = queue.Queue(maxsize=4)
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.cut, args=(seed,), name=f"windows-{seed}")
                        for seed in range(threads)]
        for thread in self.threads:
            thread.start()

    def cut(self, seed):
        rng = np.random.default_rng(seed)
        while not self.stop.is_set():
            traces, arrivals = np.empty((BATCH, WINDOW, 3), np.float32), rng.integers(40, WINDOW - 40, size=BATCH)
            for row, arrival in enumerate(arrivals):
                day, start = self.days[rng.integers(STATIONS)], rng.integers(SAMPLES - WINDOW)
                traces[row] = day[start:start + WINDOW]
                traces[row, arrival:] *= 3
            while not self.stop.is_set():
                try:
                    self.ready.put((traces, arrivals.astype(np.int32)), timeout=0.2)
                    break
                except queue.Full:
                    continue

    def close(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def weights(key, widths=(3, 8, 8, 8, 8, 8)):
    keys = jax.random.split(key, len(widths))
    layers = [{"w": jax.random.normal(k, (5, a, b)) * 0.2, "b": jnp.zeros(b), "gain": jnp.ones(b)}
              for k, a, b in zip(keys, widths, widths[1:])]
    return {"layers": layers, "pick": jax.random.normal(keys[-1], (widths[-1],)) * 0.1}


def misfit(params, traces, arrivals):
    x = (traces - traces.mean(1, keepdims=True)) / (traces.std(1, keepdims=True) + 1e-3)
    for layer in params["layers"]:
        y = jax.lax.conv_general_dilated(x, layer["w"], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
        y = jnp.tanh(y * layer["gain"] + layer["b"])
        x = y if x.shape != y.shape else x + y
    return optax.softmax_cross_entropy_with_integer_labels(x @ params["pick"], arrivals).mean()


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="tremors")
    record(folder)
    params = weights(jax.random.key(0))
    optimizer = optax.sgd(0.05, momentum=0.9)
    state = optimizer.init(params)

    def update(params, state, traces, arrivals):
        loss, grads = jax.value_and_grad(misfit)(params, traces, arrivals)
        changes, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, changes), state, loss

    if args.fix:
        update = jax.jit(update)
    windows, pace = Windows(folder), Pace(args.seconds)
    try:
        while True:
            traces, arrivals = windows.ready.get()
            params, state, loss = update(params, state, traces, arrivals)
            loss.block_until_ready()
            if pace.done():
                break
        print(f"misfit {float(loss):.3f}")
        pace.show()
    finally:
        windows.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
