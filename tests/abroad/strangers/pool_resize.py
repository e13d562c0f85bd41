"""Thumbnails by a multiprocessing pool of one, imap over file names."""
import io
import itertools
import multiprocessing as mp
import threading

import numpy as np
import torch
from PIL import Image, ImageFilter

from pace import options, timed


def photo(seed):
    rng = np.random.default_rng(seed)
    data = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)).resize((480, 360)).save(data, "PNG", compress_level=1)
    return data.getvalue()


def thumbnails(files):
    out = []
    for file in files:
        image = Image.open(io.BytesIO(file)).convert("RGB").filter(ImageFilter.GaussianBlur(2)).resize((64, 64), Image.LANCZOS)
        out.append(np.asarray(image))
    return np.stack(out)


def tasks(files, gate, over, batch=6):
    for n in itertools.count():
        gate.acquire()
        if over.is_set():
            return
        yield [files[(n * batch + k) % len(files)] for k in range(batch)]


def stream(processes, files):
    gate, over = threading.Semaphore(8), threading.Event()
    with mp.Pool(processes) as pool:
        try:
            for batch in pool.imap(thumbnails, tasks(files, gate, over)):
                gate.release()
                yield batch
        finally:
            over.set()
            gate.release()


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    files = [photo(k) for k in range(24)]
    head = torch.nn.Linear(3 * 64 * 64, 10)
    for batch in timed(stream(2 if args.fix else 1, files), args.seconds):
        head(torch.from_numpy(batch).float().flatten(1)).logsumexp(1).mean().backward()
        head.zero_grad()
