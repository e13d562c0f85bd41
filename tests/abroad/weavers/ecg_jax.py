"""Heartbeats from ECG records: a torch DataLoader feeds a JAX classifier."""
import pathlib
import shutil
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

LEADS, LENGTH, CLASSES = 3, 256, 5


def simulate(folder, count=1024):
    rng = np.random.default_rng(3)
    labels = rng.integers(0, CLASSES, count)
    phase = np.linspace(0, 6 * np.pi, LENGTH)
    beats = np.sin(phase * (1 + labels[:, None, None] * 0.2)) + rng.normal(0, 0.2, (count, LEADS, LENGTH))
    np.save(folder / "beats.npy", beats.astype("float32"))
    np.save(folder / "labels.npy", labels.astype("int32"))


class Heartbeats(Dataset):
    def __init__(self, folder, xp):
        self.beats = np.load(folder / "beats.npy", mmap_mode="r")
        self.labels = np.load(folder / "labels.npy")
        self.xp = xp
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        xp = self.xp
        beat = xp.asarray(self.beats[index])
        beat = beat - xp.mean(beat, axis=1, keepdims=True)
        beat = beat / (xp.std(beat, axis=1, keepdims=True) + 1e-6)
        beat = xp.roll(beat, int(self.rng.integers(-16, 16)), axis=1)
        beat = beat * float(self.rng.uniform(0.8, 1.2))
        return xp.clip(beat, -4.0, 4.0), int(self.labels[index])


def numpy_collate(samples):
    beats, labels = zip(*samples)
    return np.stack([np.asarray(beat) for beat in beats]), np.asarray(labels, np.int32)


def init(key):
    sizes = [LEADS * LENGTH, 32, CLASSES]
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (n, m)) * n ** -0.5, jnp.zeros(m)) for k, n, m in zip(keys, sizes, sizes[1:])]


def loss_of(params, beats, labels):
    hidden = beats.reshape(beats.shape[0], -1)
    for weight, bias in params[:-1]:
        hidden = jax.nn.relu(hidden @ weight + bias)
    logits = hidden @ params[-1][0] + params[-1][1]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def main():
    args = options()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ecg"))
    try:
        simulate(folder)
        heartbeats = Heartbeats(folder, np if args.fix else jnp)
        loader = DataLoader(heartbeats, batch_size=32, shuffle=True, drop_last=True, collate_fn=numpy_collate)
        params = init(jax.random.key(0))
        optimizer = optax.sgd(0.05, momentum=0.9)
        state = optimizer.init(params)

        @jax.jit
        def train_step(params, state, beats, labels):
            loss, grads = jax.value_and_grad(loss_of)(params, beats, labels)
            updates, state = optimizer.update(grads, state)
            return optax.apply_updates(params, updates), state, loss

        pace, over = Pace(args.seconds), False
        while not over:
            for beats, labels in loader:
                params, state, loss = train_step(params, state, beats, labels)
                over = pace.done()
                if over:
                    break
        pace.show()
        print(f"last loss {float(loss):.3f}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
