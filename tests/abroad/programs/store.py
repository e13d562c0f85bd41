"""A store: an HTTP server in a process of its own that answers each request after a while."""
import http.server
import os
import threading
import time


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seconds = 0.02

    def do_GET(self):
        time.sleep(self.seconds)
        body = b"x" * 4096
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def start():
    """Returns its address; it ends with this process."""
    ready, port = os.pipe()
    if os.fork() == 0:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        os.write(port, b"%d\n" % server.server_address[1])
        parent = os.getppid()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(0)
    return "http://127.0.0.1:%d/" % int(os.read(ready, 16))
