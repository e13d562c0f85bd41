"""A shelf of feature rows over HTTP, as a store some milliseconds away: `shelf.py SECONDS` says its port and ends with its standard input."""
import http.server
import os
import sys
import threading
import time

import numpy as np

ROWS = [np.random.default_rng(number).normal(size=96).astype(np.float32).tobytes() for number in range(64)]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def do_GET(self):
        row = ROWS[int(self.path.rsplit("/", 1)[1]) % len(ROWS)]
        time.sleep(float(sys.argv[1]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(row)))
        self.end_headers()
        self.wfile.write(row)

    def log_message(self, *words):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
os._exit(0)
