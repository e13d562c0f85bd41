"""Tells coral species apart on tiles of diving surveys. The tiles lie in tar shards in the institute's
bucket, whose line gives 20 MB/s to all readers together; webdataset reads them."""
import functools
import http.server
import io
import multiprocessing
import os
import shutil
import tarfile
import tempfile
import threading
import time

import numpy as np
import torch
import webdataset as wds
from torch import nn

from pace import Pace, options

LINE = 20e6
SHARDS, TILES, SIDE, SPECIES = 6, 192, 64, 12


class Bucket(http.server.SimpleHTTPRequestHandler):
    turn = threading.Lock()
    free_at = 0.0

    def copyfile(self, source, outputfile):
        while piece := source.read(65536):
            with Bucket.turn:
                Bucket.free_at = max(Bucket.free_at, time.monotonic()) + len(piece) / LINE
                pause = Bucket.free_at - time.monotonic()
            time.sleep(max(pause, 0))
            try:
                outputfile.write(piece)
            except OSError:
                return

    def log_message(self, *args):
        pass


def serve(folder, port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Bucket, directory=folder))
    port.send(server.server_address[1])
    server.handle_error = lambda *rest: None
    server.serve_forever()


def write_shards(folder, kind):
    random = np.random.default_rng(3)
    for shard in range(SHARDS):
        with tarfile.open(f"{folder}/reef-{shard:03d}.tar", "w") as tar:
            for tile in range(TILES):
                buffer = io.BytesIO()
                np.save(buffer, random.integers(0, 255, (3, SIDE, SIDE)).astype(kind))
                for suffix, body in (("npy", buffer.getvalue()), ("cls", str(random.integers(SPECIES)).encode())):
                    entry = tarfile.TarInfo(f"{shard:03d}{tile:05d}.{suffix}")
                    entry.size = len(body)
                    tar.addfile(entry, io.BytesIO(body))


def scaled(tile):
    return torch.from_numpy(tile).float().div_(255)


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="coral")
    here, there = multiprocessing.Pipe()
    bucket = multiprocessing.Process(target=serve, args=(folder, there), daemon=True)
    bucket.start()
    try:
        write_shards(folder, np.uint8 if args.fix else np.float32)
        urls = [f"http://127.0.0.1:{here.recv()}/reef-{{000..{SHARDS - 1:03d}}}.tar"]
        tiles = (wds.WebDataset(urls[0], resampled=True, shardshuffle=False, nodesplitter=None).shuffle(64)
                 .decode().to_tuple("npy", "cls").map_tuple(scaled, int).batched(32))
        loader = wds.WebLoader(tiles, batch_size=None, num_workers=2)
        model = nn.Sequential(nn.Conv2d(3, 8, 7, 4), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(),
                              nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, SPECIES))
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        pace = Pace(args.seconds)
        for pictures, species in loader:
            loss = nn.functional.cross_entropy(model(pictures), torch.as_tensor(species))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        bucket.terminate()
        bucket.join()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
