"""A crawler's politeness: each worker asks for a page at most every 20 ms. --fix: four workers instead of one."""
import http.server
import multiprocessing
import re
import threading
import time
import urllib.request

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        number = int(self.path[1:])
        body = ("<p>" + " ".join(f"word{(number * k) % 500}" for k in range(60)) + "</p>").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def host(pipe):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    pipe.send(server.server_address[1])
    server.serve_forever()


class RateLimiter:
    def __init__(self, interval):
        self.interval, self.next = interval, 0.0

    def wait(self):
        now = time.monotonic()
        if now < self.next:
            time.sleep(self.next - now)
        self.next = max(now, self.next) + self.interval


class Pages(IterableDataset):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def __init__(self, port):
        self.port = port

    def download(self, number):
        with self.opener.open(f"http://127.0.0.1:{self.port}/{number}") as page:
            return page.read().decode()

    def __iter__(self):
        info = get_worker_info()
        limiter = RateLimiter(0.02)
        number = info.id
        while True:
            limiter.wait()
            words = re.findall(r"word(\d+)", self.download(number))
            yield torch.tensor([int(w) for w in words])
            number += info.num_workers


if __name__ == "__main__":
    args = options()
    here, there = multiprocessing.Pipe()
    site = multiprocessing.Process(target=host, args=(there,), daemon=True)
    site.start()
    port = here.recv()
    torch.set_num_threads(1)
    bag, out = torch.nn.EmbeddingBag(500, 32), torch.nn.Linear(32, 500)
    opt = torch.optim.Adam([*bag.parameters(), *out.parameters()])
    pace = Pace(args.seconds)
    for words in DataLoader(Pages(port), batch_size=4, num_workers=4 if args.fix else 1):
        loss = torch.nn.functional.cross_entropy(out(bag(words[:, 1:])), words[:, 0])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if pace.over():
            break
    pace.report()
    site.terminate()
