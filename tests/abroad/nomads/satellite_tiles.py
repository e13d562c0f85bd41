"""Land cover from satellite tiles: a multiprocessing.Pool cuts patches, a softmax regression in numpy learns them."""
import os
import shutil
import tempfile
from collections import deque
from multiprocessing import get_context, shared_memory

import numpy as np

from pace import Pace, options

os.environ.setdefault("OMP_NUM_THREADS", "1")
CHANNELS, SCENE, PATCH, BATCH, CLASSES = 8, 1024, 128, 24, 5
SHAPE = (BATCH, CHANNELS, PATCH, PATCH)
AHEAD = 4

scene = landcover = None


def make_scene(folder):
    rng = np.random.default_rng(23)
    cover = rng.integers(0, CLASSES, (SCENE // PATCH, SCENE // PATCH)).astype(np.uint8)
    spectra = rng.normal(size=(CLASSES, CHANNELS)).astype(np.float32)
    full = np.kron(cover, np.ones((PATCH, PATCH), np.uint8))
    bands = spectra[full].transpose(2, 0, 1) + rng.normal(0, 0.5, (CHANNELS, SCENE, SCENE)).astype(np.float32)
    np.save(os.path.join(folder, "bands.npy"), np.ascontiguousarray(bands, dtype=np.float32))
    np.save(os.path.join(folder, "cover.npy"), full)


def open_scene(folder):
    global scene, landcover
    scene = np.load(os.path.join(folder, "bands.npy"), mmap_mode="r")
    landcover = np.load(os.path.join(folder, "cover.npy"), mmap_mode="r")


def cut_patches(seed, out):
    rng = np.random.default_rng(seed)
    labels = np.empty(BATCH, np.int64)
    for index, (top, left) in enumerate(rng.integers(0, SCENE - PATCH, (BATCH, 2))):
        out[index] = scene[:, top:top + PATCH, left:left + PATCH]
        labels[index] = landcover[top + PATCH // 2, left + PATCH // 2]
    return labels


def patches(seed):
    batch = np.empty(SHAPE, np.float32)
    labels = cut_patches(seed, batch)
    return batch, labels


def patches_shared(seed, name):
    block = shared_memory.SharedMemory(name=name)
    labels = cut_patches(seed, np.ndarray(SHAPE, np.float32, block.buf))
    block.close()
    return labels


class SoftmaxRegression:
    def __init__(self, rate=0.05):
        self.weights, self.rate = np.zeros((CHANNELS + 1, CLASSES)), rate

    def fit_batch(self, batch, labels):
        x = np.concatenate([batch[:, :, ::4, ::4].mean(axis=(2, 3)), np.ones((len(batch), 1))], axis=1)
        logits = x @ self.weights
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        loss = -np.log(p[np.arange(len(labels)), labels] + 1e-9).mean()
        p[np.arange(len(labels)), labels] -= 1
        self.weights -= self.rate * x.T @ p / len(labels)
        return loss


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="tiles_")
    make_scene(folder)
    blocks = [shared_memory.SharedMemory(create=True, size=4 * int(np.prod(SHAPE))) for _ in range(AHEAD if args.fix else 0)]
    model, pace = SoftmaxRegression(), Pace(args.seconds)
    try:
        with get_context("spawn").Pool(2, initializer=open_scene, initargs=(folder,)) as pool:
            def ask(step):
                if args.fix:
                    return pool.apply_async(patches_shared, (step, blocks[step % AHEAD].name))
                return pool.apply_async(patches, (step,))

            pending = deque(ask(step) for step in range(AHEAD))
            step, over = 0, False
            while not over:
                result = pending.popleft().get()
                if args.fix:
                    loss = model.fit_batch(np.ndarray(SHAPE, np.float32, blocks[step % AHEAD].buf), result)
                else:
                    loss = model.fit_batch(*result)
                pending.append(ask(step + AHEAD))
                step += 1
                over = pace.done()
        print(f"loss {loss:.3f}")
        pace.show()
    finally:
        for block in blocks:
            block.close()
            block.unlink()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
