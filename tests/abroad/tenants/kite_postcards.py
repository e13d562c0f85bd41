"""Kites on holiday postcards: pictures come from the museum's web service, a pool of threads gets them ahead of time."""
import http.server
import multiprocessing
import queue
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from pace import Pace, options

SIDE = 40


class Museum(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.03)
        number = int(self.path.rsplit("/", 1)[1])
        body = bytes((number * 13 + k * 5) % 256 for k in range(SIDE)) * SIDE
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def museum(pipe):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Museum)
    pipe.send(server.server_address[1])
    server.serve_forever()


class Ahead:
    """Batches, in order, with `depth` of them under way."""

    def __init__(self, get, size, threads, depth=6):
        self.get, self.size = get, size
        self.pool = ThreadPoolExecutor(max_workers=threads)
        self.ready = queue.Queue(maxsize=depth)
        self.closed = False
        threading.Thread(target=self._order, daemon=True).start()

    def _order(self):
        number = 0
        while not self.closed:
            cards = [self.pool.submit(self.get, number + k) for k in range(self.size)]
            number += self.size
            self.ready.put(cards)

    def __iter__(self):
        while True:
            yield [card.result() for card in self.ready.get()]

    def close(self):
        self.closed = True
        self.pool.shutdown(wait=False, cancel_futures=True)


def main():
    o = options()
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=museum, args=(there,), daemon=True)
    child.start()
    address = f"http://127.0.0.1:{here.recv()}/card"

    import numpy as np
    import torch
    from torch import nn
    torch.set_num_threads(1)

    def card(number):
        with urllib.request.urlopen(f"{address}/{number}") as reply:
            picture = np.frombuffer(reply.read(), np.uint8).reshape(1, SIDE, SIDE)
        return picture.astype(np.float32) / 255, number % 3

    net = nn.Sequential(nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 18 * 18, 3))
    opt = torch.optim.SGD(net.parameters(), 0.01)
    ahead = Ahead(card, size=6, threads=8 if o.fix else 2)
    pace = Pace(o.seconds)
    for cards in ahead:
        x = torch.from_numpy(np.stack([picture for picture, _ in cards]))
        y = torch.tensor([kind for _, kind in cards])
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
        if pace.done():
            break
    pace.show()
    child.terminate()
    ahead.close()


if __name__ == "__main__":
    main()
