"""The service of quota_api: answers at most 60 requests a second, whatever they ask for, and else says 429."""
import http.server
import json
import sys
import threading
import time

RATE, BURST = 60.0, 6.0
lock, tokens, stamp = threading.Lock(), BURST, time.monotonic()


def allowed():
    global tokens, stamp
    with lock:
        now = time.monotonic()
        tokens, stamp = min(BURST, tokens + (now - stamp) * RATE), now
        if tokens >= 1:
            tokens -= 1
            return True
        return False


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        if allowed():
            ids = [int(x) for x in self.path.rsplit("=", 1)[1].split(",")]
            body = json.dumps([{"id": i, "values": [(i * k) % 101 / 101 for k in range(32)], "label": i % 2} for i in ids]).encode()
            self.send_response(200)
        else:
            body = b"{}"
            self.send_response(429)
            self.send_header("Retry-After", "0.02")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
