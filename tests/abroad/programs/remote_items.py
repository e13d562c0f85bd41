"""Items come from a server that answers after 20 ms; two workers, the fix is eight."""
import http.server
import os
import threading
import time
import urllib.request

import torch
from torch.utils.data import DataLoader, Dataset

import harness


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(0.02)
        body = b"x" * 4096
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Items(Dataset):
    def __init__(self, port):
        self.url = "http://127.0.0.1:%d/" % port

    def __len__(self):
        return 1 << 16

    def __getitem__(self, index):
        with urllib.request.urlopen(self.url) as answer:
            return len(answer.read()) + index


if __name__ == "__main__":
    args = harness.options()
    torch.set_num_threads(1)
    ready, port = os.pipe()
    if os.fork() == 0:  # the server is a process of its own
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        os.write(port, b"%d\n" % server.server_address[1])
        parent = os.getppid()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(0)
    number = int(os.read(ready, 16))
    loader = DataLoader(Items(number), batch_size=4, num_workers=8 if args.fix else 2)
    harness.loop(harness.forever(lambda: loader), lambda batch: harness.burn(0.002), args.seconds)
