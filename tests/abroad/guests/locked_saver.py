"""A saver thread keeps the newest weights on disk for an evaluation elsewhere; the optimizer's step and the saver share a lock on the model.
--fix: the saver copies the weights under the lock and writes the copy without it."""
import os
import tempfile
import threading
import time

import numpy as np
import torch
from safetensors.torch import save_file

from pace import Pace, options


class Saver(threading.Thread):
    def __init__(self, model, lock, folder, copies):
        super().__init__(name="saver", daemon=True)
        self.model, self.lock, self.folder, self.copies, self.over = model, lock, folder, copies, threading.Event()

    def write(self, state):
        path = os.path.join(self.folder, "newest.tmp")
        save_file(state, path)
        with open(path, "rb+") as out:
            os.fsync(out.fileno())
        os.replace(path, os.path.join(self.folder, "newest.safetensors"))
        time.sleep(0.08)  # The notice to the registry: a slow service.

    def run(self):
        while not self.over.is_set():
            if self.copies:
                with self.lock:
                    state = {name: value.clone() for name, value in self.model.state_dict().items()}
                self.write(state)
            else:
                with self.lock:
                    self.write(self.model.state_dict())
            self.over.wait(0.01)


def clicks():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20000, 64)).astype(np.float32)
    labels = (rows[:, :8].sum(1) > 0).astype(np.float32)
    while True:
        picked = rng.integers(0, len(rows), 128)
        yield torch.from_numpy(rows[picked]), torch.from_numpy(labels[picked])


def main():
    args = options()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
    optimizer = torch.optim.Adam(model.parameters())
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as folder:
        saver = Saver(model, lock, folder, args.fix)
        saver.start()
        pace = Pace(args.seconds)
        for rows, labels in clicks():
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(rows).squeeze(1), labels)
            optimizer.zero_grad()
            loss.backward()
            with lock:
                optimizer.step()
            if pace.done():
                break
        pace.show()
        saver.over.set()
        saver.join()


if __name__ == "__main__":
    main()
