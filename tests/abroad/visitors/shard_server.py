"""Serves tar shards over HTTP, all connections together at so many bytes a second (argument 1). Ends with its starter."""
import http.server
import io
import sys
import tarfile
import threading
import time

import numpy as np

bandwidth = float(sys.argv[1])


def shard(number, count=48):
    rng, out = np.random.default_rng(number), io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for k in range(count):
            array, label = io.BytesIO(), b"%d" % rng.integers(10)
            np.save(array, rng.integers(0, 255, (3, 96, 96), dtype=np.uint8))
            for ending, data in (("npy", array.getvalue()), ("cls", label)):
                info = tarfile.TarInfo(f"{number:03d}{k:05d}.{ending}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


shards = [shard(number) for number in range(4)]
bucket = threading.Lock()
free = 0.0


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global free
        body = shards[int(self.path.strip("/shard-.t")) % len(shards)]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for at in range(0, len(body), 32768):
            part = body[at:at + 32768]
            with bucket:
                free = max(free, time.monotonic()) + len(part) / bandwidth
                due = free
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                self.wfile.write(part)
            except OSError:
                return

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer.daemon_threads = True
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
