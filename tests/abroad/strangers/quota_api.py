"""Reads from an API that allows so many requests a second and tells when to come again."""
import http.client
import queue
import threading
import time

import torch

import stores
from pace import Pace, options


class ApiReader(threading.Thread):
    def __init__(self, port, results, number, count):
        super().__init__(daemon=True)
        self.client = http.client.HTTPConnection("127.0.0.1", port)
        self.results, self.next, self.stride = results, number, count

    def get(self, path):
        while True:
            self.client.request("GET", path)
            answer = self.client.getresponse()
            data = answer.read()
            if answer.status == 200:
                return data
            time.sleep(float(answer.headers.get("Retry-After", 0.1)))

    def run(self):
        while True:
            self.results.put(self.get(f"/records/{self.next}"))
            self.next += self.stride


def main():
    args = options(readers=4, batch=8)
    port = stores.start("http_store.py", "--per-second", 600 if args.fix else 120, "--size", 1024)
    results = queue.Queue(64)
    for k in range(args.readers):
        ApiReader(port, results, k, args.readers).start()
    model = torch.nn.Linear(1024, 10)
    pace = Pace(args.seconds)
    while True:
        batch = torch.stack([torch.frombuffer(bytearray(results.get()), dtype=torch.uint8) for _ in range(args.batch)])
        with torch.no_grad():
            model(batch.float() / 255).argmax(1)
        if pace.tick():
            break
    pace.show()


if __name__ == "__main__":
    main()
