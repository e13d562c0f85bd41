"""A small HTTP store for the programs: answers any path with bytes. Ends with its starter."""
import argparse
import hashlib
import http.server
import os
import sys
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--latency", type=float, default=0)
parser.add_argument("--size", type=int, default=4096)
parser.add_argument("--per-second", type=float, default=0, help="requests a second, else 429")
parser.add_argument("--bandwidth", type=float, default=0, help="bytes a second, for all together")
parser.add_argument("--failing", type=float, default=0, help="the part of the paths that fail at first")
args = parser.parse_args()
body = os.urandom(1 << 16) * (args.size // (1 << 16) + 1)
gate = threading.Lock()
free_at = 0.0
tokens, filled = 5.0, time.monotonic()
failed = set()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, code, data, **headers):
        self.send_response(code)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if not args.bandwidth:
            self.wfile.write(data)
            return
        global free_at
        for at in range(0, len(data), 16384):
            part = data[at:at + 16384]
            with gate:
                free_at = max(free_at, time.monotonic()) + len(part) / args.bandwidth
                until = free_at
            time.sleep(max(0, until - time.monotonic()))
            self.wfile.write(part)

    def do_GET(self):
        global tokens, filled
        if args.latency:
            time.sleep(args.latency)
        if args.per_second:
            with gate:
                now = time.monotonic()
                tokens, filled = min(5.0, tokens + (now - filled) * args.per_second), now
                allowed = tokens >= 1
                if allowed:
                    tokens -= 1
            if not allowed:
                return self.answer(429, b"", Retry_After="%.3f" % (1 / args.per_second))
        if args.failing and self.path not in failed:
            failed.add(self.path)
            if int(hashlib.md5(self.path.encode()).hexdigest(), 16) % 1000 < 1000 * args.failing:
                return self.answer(503, b"busy")
        self.answer(200, body[:args.size])

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
