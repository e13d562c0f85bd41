"""Light curves of comets: a small JAX network tells outbursts from quiet nights; a thread prepares the batches."""
import os
import queue
import shutil
import tempfile
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np

from pace import Pace, options

NIGHTS, BATCH = 256, 64


def write_survey(folder, comets=1500):
    rng = np.random.default_rng(23)
    curves = np.cumsum(rng.normal(0, 0.05, (comets, NIGHTS)), axis=1).astype(np.float32)
    outburst = rng.integers(0, 2, comets)
    for comet in np.flatnonzero(outburst):
        night = rng.integers(20, NIGHTS - 40)
        curves[comet, night:night + 30] -= np.linspace(2, 0, 30)
    np.savez(os.path.join(folder, "survey.npz"), curves=curves, outburst=outburst.astype(np.int32))


class CurveFeed:
    """Keeps a few batches ready, made by a thread in the background."""

    def __init__(self, path, ready=3):
        with np.load(path) as survey:
            self.curves, self.outburst = survey["curves"], survey["outburst"]
        self.ready, self.batches, self.open = ready, [], True
        self.thread = threading.Thread(target=self.fill, name="curve-feed", daemon=True)
        self.thread.start()

    def make(self, rng):
        chosen = rng.integers(0, len(self.curves), BATCH)
        curves = self.curves[chosen] + rng.normal(0, 0.05, (BATCH, NIGHTS)).astype(np.float32)
        return curves.astype(np.float32), self.outburst[chosen]

    def fill(self):
        rng = np.random.default_rng()
        while self.open:
            if len(self.batches) < self.ready:
                self.batches.append(self.make(rng))
            else:
                time.sleep(0.05)

    def next_batch(self):
        while not self.batches:
            time.sleep(0.02)
        return self.batches.pop(0)

    def close(self):
        self.open = False
        self.thread.join()


class QueuedFeed(CurveFeed):
    def __init__(self, path, ready=3):
        self.line = queue.Queue(ready)
        super().__init__(path)

    def fill(self):
        rng = np.random.default_rng()
        while self.open:
            self.line.put(self.make(rng))

    def next_batch(self):
        return self.line.get()

    def close(self):
        self.open = False


def loss_of(params, curves, outburst):
    logits = jnp.tanh(curves @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(BATCH), outburst])


@jax.jit
def update(params, curves, outburst):
    loss, grads = jax.value_and_grad(loss_of)(params, curves, outburst)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss


def main():
    given = options()
    folder = tempfile.mkdtemp(prefix="comet_")
    try:
        write_survey(folder)
        feed = (QueuedFeed if given.fix else CurveFeed)(os.path.join(folder, "survey.npz"))
        key = jax.random.key(0)
        params = {"w1": jax.random.normal(key, (NIGHTS, 64)) * 0.05, "b1": jnp.zeros(64),
                  "w2": jax.random.normal(key, (64, 2)) * 0.1, "b2": jnp.zeros(2)}
        pace = Pace(given.seconds)
        while True:
            params, loss = update(params, *feed.next_batch())
            loss.block_until_ready()
            if pace.done():
                break
        feed.close()
        print(f"loss {float(loss):.3f}")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
