"""Which frog is calling?  Field recordings in tar shards on the institute's object store."""
import functools
import io
import multiprocessing
import random
import shutil
import tarfile
import tempfile
import time
import wave
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
import webdataset as wds
from torch import nn

from pace import Pace, options

SPECIES, HZ = 5, 16000


def clip_bytes(rng, species):
    t = np.arange(HZ) / HZ
    x = 0.4 * np.sin(2 * np.pi * (400 + 300 * species) * t) + rng.normal(0, 0.1, HZ)
    out = io.BytesIO()
    with wave.open(out, "wb") as w:
        w.setnchannels(1), w.setsampwidth(2), w.setframerate(HZ)
        w.writeframes((x * 20000).astype("<i2").tobytes())
    return out.getvalue()


def pack_shards(folder, shards=8, clips=40):
    rng = np.random.default_rng(11)
    for s in range(shards):
        with tarfile.open(f"{folder}/frogs-{s:02d}.tar", "w") as tar:
            for c in range(clips):
                k = random.randrange(SPECIES)
                for name, data in (("wav", clip_bytes(rng, k)), ("cls", str(k).encode())):
                    info = tarfile.TarInfo(f"{s:02d}{c:04d}.{name}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))


class Bucket(SimpleHTTPRequestHandler):
    """Stands for the store: each download gets some 1.5 MB/s, as the provider gives."""

    def copyfile(self, source, out):
        try:
            while piece := source.read(30_000):
                out.write(piece)
                time.sleep(0.02)
        except OSError:
            pass

    def log_message(self, *_):
        pass


def serve(folder, pipe):
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Bucket, directory=folder))
    server.daemon_threads = True
    pipe.send(server.server_port)
    server.serve_forever()


def to_tensors(sample):
    pcm = np.frombuffer(sample["wav"], "<i2", offset=44).astype("float32") / 32768
    return torch.from_numpy(pcm), int(sample["cls"])


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="frogs")
    pack_shards(folder)
    ours, theirs = multiprocessing.Pipe()
    store = multiprocessing.Process(target=serve, args=(folder, theirs), daemon=True)
    store.start()
    try:
        urls = f"http://127.0.0.1:{ours.recv()}/frogs-{{00..07}}.tar"
        data = wds.WebDataset(urls, resampled=True, shardshuffle=False).shuffle(30).map(to_tensors)
        loader = wds.WebLoader(data.batched(8), batch_size=None, num_workers=4 if opts.fix else 1)
        net = nn.Sequential(nn.Conv1d(1, 16, 64, 16), nn.ReLU(), nn.Conv1d(16, 32, 8, 4), nn.ReLU(),
                            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, SPECIES))
        opt = torch.optim.AdamW(net.parameters(), 1e-3)
        pace = Pace(opts.seconds)
        for sound, species in loader:
            loss = nn.functional.cross_entropy(net(sound[:, None]), torch.as_tensor(species))
            opt.zero_grad()
            loss.backward()
            opt.step()
            if pace.done():
                break
        pace.show()
    finally:
        store.terminate()
        store.join()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
