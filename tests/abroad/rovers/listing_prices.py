"""Price of flats from the features that our feature service hands out, one listing per request."""
import http.server
import json
import multiprocessing
import random
import time

import requests
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

FEATURES = 12


class FeatureService(http.server.BaseHTTPRequestHandler):
    """Stands for the real one (which asks a database in another zone: some 20 ms)."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        listing = int(self.path.rsplit("/", 1)[1])
        time.sleep(0.02)
        rng = random.Random(listing)
        values = [rng.gauss(0, 1) for _ in range(FEATURES)]
        body = json.dumps({"id": listing, "features": values, "price": 3 * values[0] + values[1]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(pipe):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FeatureService)
    server.daemon_threads = True
    pipe.send(server.server_address[1])
    server.serve_forever()


class Listings(Dataset):
    def __init__(self, url, count=20_000):
        self.url, self.count = url, count
        self.session = None

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.session is None:
            self.session = requests.Session()
        answer = self.session.get(f"{self.url}/listing/{i}", timeout=5)
        answer.raise_for_status()
        listing = answer.json()
        return torch.tensor(listing["features"]), torch.tensor([listing["price"]])


def train(loader, pace):
    model = nn.Sequential(nn.Linear(FEATURES, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for step, (features, price) in enumerate(loader):
        loss = nn.functional.huber_loss(model(features), price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f}")
        if pace.done():
            break


def main():
    args = options()
    torch.set_num_threads(1)
    ours, theirs = multiprocessing.Pipe()
    service = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    service.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}"
        loader = DataLoader(Listings(url), batch_size=16, shuffle=True, num_workers=8 if args.fix else 2)
        pace = Pace(args.seconds)
        train(loader, pace)
        pace.show()
    finally:
        service.terminate()
        service.join()


if __name__ == "__main__":
    main()
