"""Cloud mask on satellite scenes, fetched from the archive server while we train.

No framework for the input: a thread downloads, a thread decodes, queues between. The archive's line has a fixed
bandwidth. The archive also holds each scene in 8 bits (--fix asks for these; the sensor has no more than 8 anyway).
"""
import http.client
import http.server
import io
import multiprocessing
import os
import queue
import tempfile
import threading
import time
import urllib.request

import numpy as np
import torch
from torch import nn

from pace import Pace, options

BANDWIDTH = 6_000_000      # bytes per second
SCENES = 16
PATCHES, SIDE = 24, 48


def make_archive(folder):
    rng = np.random.default_rng(7)
    for n in range(SCENES):
        scene = rng.integers(0, 255, (PATCHES, 4, SIDE, SIDE), dtype=np.uint8)
        np.save(os.path.join(folder, f"scene{n}_byte.npy"), scene)
        np.save(os.path.join(folder, f"scene{n}_float.npy"), scene.astype(np.float32))


class Archive(http.server.SimpleHTTPRequestHandler):
    line = threading.Lock()

    def copyfile(self, source, outputfile):
        while block := source.read(32768):
            with self.line:
                outputfile.write(block)
                time.sleep(len(block) / BANDWIDTH)

    def log_message(self, *args):
        pass


def archive_server(folder, pipe):
    os.chdir(folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    server.daemon_threads = True
    pipe.send(server.server_address[1])
    server.serve_forever()


def download(url, kind, out, stop):
    n = 0
    while not stop.is_set():
        try:
            with urllib.request.urlopen(f"{url}/scene{n % SCENES}_{kind}.npy", timeout=10) as answer:
                out.put(answer.read())
        except (OSError, http.client.HTTPException):
            if not stop.is_set():
                raise
        n += 1


def decode(raw, out, stop):
    while not stop.is_set():
        scene = np.load(io.BytesIO(raw.get()))
        pixels = torch.from_numpy(scene).float().div_(255)
        out.put((pixels, (pixels.mean(1) > 0.5).float()))


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        make_archive(folder)
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.Process(target=archive_server, args=(folder, theirs), daemon=True)
        server.start()
        url = f"http://127.0.0.1:{ours.recv()}"
        raw, ready, stop = queue.Queue(4), queue.Queue(4), threading.Event()
        for target, rest in ((download, (url, "byte" if args.fix else "float", raw, stop)), (decode, (raw, ready, stop))):
            threading.Thread(target=target, args=rest, name=target.__name__, daemon=True).start()
        model = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        pace, over = Pace(args.seconds), False
        while not over:
            pixels, mask = ready.get()
            loss = nn.functional.binary_cross_entropy_with_logits(model(pixels)[:, 0], mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            over = pace.done()
        pace.show()
        stop.set()
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
