"""A trap. Trains on the pages of an audit log: each answer of the service, 10 ms away, has the cursor of the next page.
--fix is what people advise, a longer queue ahead of the trainer (2 -> 64 pages). It brings nothing: no page can be asked for before the one ahead of it."""
import http.client
import http.server
import json
import multiprocessing
import queue
import random
import threading
import time

import torch

from pace import Pace, options

ROWS, WIDTH = 48, 12


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    pages = []

    def do_GET(self):
        cursor = int(self.path.rsplit("=", 1)[1])
        time.sleep(0.010)
        body = json.dumps({"next": str(cursor * 5 % 999983 + 1)})[:-1].encode() + b', "rows": ' + self.pages[cursor % len(self.pages)] + b"}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(pipe):
    draw = random.Random(0)
    Service.pages = [json.dumps([[round(draw.random(), 4) for _ in range(WIDTH)] for _ in range(ROWS)]).encode() for _ in range(50)]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    pipe.send(server.server_address[1])
    server.serve_forever()


def read_pages(port, pages, over):
    client = http.client.HTTPConnection("127.0.0.1", port)
    cursor = "1"
    while not over.is_set():
        client.request("GET", "/log?cursor=" + cursor)
        page = json.loads(client.getresponse().read())
        cursor = page["next"]
        rows = torch.tensor(page["rows"])
        while not over.is_set():
            try:
                pages.put(rows, timeout=0.2)
                break
            except queue.Full:
                pass
    client.close()


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    pages, over = queue.Queue(64 if args.fix else 2), threading.Event()
    reader = threading.Thread(target=read_pages, args=(ours.recv(), pages, over))
    reader.start()
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3), torch.nn.ReLU(), torch.nn.Linear(3, WIDTH))
    optimizer = torch.optim.Adam(model.parameters())
    try:
        pace = Pace(args.seconds)
        while True:
            rows = pages.get(timeout=20)
            loss = torch.nn.functional.mse_loss(model(rows), rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        over.set()
        reader.join()
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
