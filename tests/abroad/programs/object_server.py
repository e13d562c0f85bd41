"""An object store on this machine: /SIZE gives that many bytes; with a wait before each answer, and a link of limited width.

    object_server.py LATENCY_SECONDS BYTES_PER_SECOND (0: no limit)
"""
import http.server
import socketserver
import sys
import threading
import time

LATENCY, WIDTH = float(sys.argv[1]), float(sys.argv[2])
DATA = bytes(range(256)) * 4096
LINK = threading.Lock()
FREE = [0.0]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def do_GET(self):
        size = int(self.path.rsplit("/", 1)[1])
        time.sleep(LATENCY)
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        for begin in range(0, size, 65536):
            part = min(65536, size - begin)
            if WIDTH:
                with LINK:
                    FREE[0] = until = max(FREE[0], time.monotonic()) + part / WIDTH
                time.sleep(max(0.0, until - time.monotonic()))
            self.wfile.write(DATA[begin: begin + part])
            self.wfile.flush()

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever()
