"""Position evaluation in chess: FEN lines parsed by loader threads, a value network in JAX with optax."""
import os
import queue
import random
import shutil
import tempfile
import threading

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import optax

from pace import Pace, options

PIECES = "PNBRQKpnbrqk"
BATCH = 256


def make_positions(folder, files=8, lines=2000):
    rng = random.Random(17)
    for part in range(files):
        with open(os.path.join(folder, f"positions{part}.txt"), "w") as out:
            for _ in range(lines):
                ranks = ["".join(rng.choice("PNBRQpnbrq1111112") for _ in range(6)) for _ in range(8)]
                value = sum(c.isupper() - c.islower() for rank in ranks for c in rank if c.isalpha())
                out.write(f"{'/'.join(ranks)} {rng.choice('wb')} KQkq - 0 {rng.randint(1, 80)};{value / 10:.2f}\n")


def encode_fen(line):
    """The board as 12 planes of 64 squares, and who moves."""
    fen, value = line.rstrip("\n").split(";")
    board, turn = fen.split()[:2]
    planes = [0.0] * (len(PIECES) * 64 + 1)
    for rank, text in enumerate(board.split("/")):
        file = 0
        for symbol in text:
            if symbol.isdigit():
                file += int(symbol)
            elif file < 8:
                planes[PIECES.index(symbol) * 64 + rank * 8 + file] = 1.0
                file += 1
    planes[-1] = 1.0 if turn == "w" else 0.0
    return planes, float(value)


class PositionLoader:
    def __init__(self, folder, threads):
        self.files = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        self.batches = queue.Queue(maxsize=16)
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self._load, args=(seed,), name=f"loader-{seed}", daemon=True)
                        for seed in range(threads)]
        for thread in self.threads:
            thread.start()

    def _load(self, seed):
        rng = random.Random(seed)
        while not self.stopped.is_set():
            with open(rng.choice(self.files)) as lines:
                rows = lines.readlines()
            rng.shuffle(rows)
            for start in range(0, len(rows) - BATCH, BATCH):
                encoded = [encode_fen(row) for row in rows[start:start + BATCH]]
                if self.stopped.is_set():
                    return
                self.batches.put((np.array([planes for planes, _ in encoded], np.float32),
                                  np.array([value for _, value in encoded], np.float32)))

    def close(self):
        self.stopped.set()
        while any(thread.is_alive() for thread in self.threads):
            try:
                self.batches.get(timeout=0.05)
            except queue.Empty:
                pass


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="chess_")
    make_positions(folder)
    keys = jax.random.split(jax.random.key(0), 2)
    params = {"w1": jax.random.normal(keys[0], (769, 64)) * 0.05, "b1": jnp.zeros(64),
              "w2": jax.random.normal(keys[1], (64, 1)) * 0.1}
    optimizer = optax.adam(1e-3)
    state = optimizer.init(params)

    @jax.jit
    def update(params, state, boards, values):
        def loss_fn(p):
            hidden = jax.nn.relu(boards @ p["w1"] + p["b1"])
            return jnp.mean(((hidden @ p["w2"])[:, 0] - values) ** 2)
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    loader = PositionLoader(folder, threads=8 if args.fix else 2)
    pace = Pace(args.seconds)
    try:
        while True:
            boards, values = loader.batches.get()
            params, state, loss = update(params, state, boards, values)
            loss.block_until_ready()
            if pace.done():
                break
        print(f"loss {float(loss):.4f}")
        pace.show()
    finally:
        loader.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
