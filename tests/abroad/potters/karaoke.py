"""Karaoke: what mark would a jury give to a take? Takes of any length (frames of a spectrum) are put together to
batches by a thread, a small network learns the marks with jax."""
import queue
import threading

import jax
import jax.numpy as jnp
import numpy as np

from pace import Pace, options

BANDS, WIDTH, TAKES = 40, 64, 12


class Songbook:
    def __init__(self, round_to):
        self.rng, self.round_to = np.random.default_rng(2), round_to
        self.ready, self.closed = queue.Queue(6), threading.Event()
        self.thread = threading.Thread(target=self.fill, name="songbook")
        self.thread.start()

    def fill(self):
        while not self.closed.is_set():
            takes = [self.rng.normal(size=(self.rng.integers(200, 1500), BANDS)) for _ in range(TAKES)]
            longest = max(map(len, takes))
            longest = -(-longest // self.round_to) * self.round_to
            batch = np.zeros((TAKES, longest, BANDS), np.float32)
            for row, take in zip(batch, takes):
                row[:len(take)] = take
            marks = np.array([np.abs(take[:, 0]).mean() for take in takes], np.float32)
            while not self.closed.is_set():
                try:
                    self.ready.put((batch, marks), timeout=0.2)
                    break
                except queue.Full:
                    continue

    def close(self):
        self.closed.set()
        self.thread.join()


def loss_of(params, takes, marks):
    hidden = jax.nn.relu(takes @ params["mix"])
    return jnp.square(hidden.mean(axis=1) @ params["out"] - marks).mean()


@jax.jit
def train_step(params, takes, marks):
    loss, grads = jax.value_and_grad(loss_of)(params, takes, marks)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss


def main():
    args = options()
    book = Songbook(round_to=500 if args.fix else 1)
    rng = np.random.default_rng(0)
    params = {"mix": np.float32(rng.normal(size=(BANDS, WIDTH)) / 6), "out": np.float32(rng.normal(size=WIDTH) / 8)}
    pace = Pace(args.seconds)
    while True:
        params, loss = train_step(params, *book.ready.get())
        loss = float(loss)
        if pace.done():
            break
    book.close()
    print(f"loss {loss:.3f}")
    pace.show()


if __name__ == "__main__":
    main()
