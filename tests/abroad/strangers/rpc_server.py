"""Frames over TCP: 4 bytes of length, then a pickled message. Each call waits for the instrument behind it."""
import pickle
import socketserver
import struct
import sys
import threading
import time

DELAY = float(sys.argv[1])


class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        while head := self.rfile.read(4):
            name, argument = pickle.loads(self.rfile.read(struct.unpack("<I", head)[0]))
            time.sleep(DELAY)
            answer = pickle.dumps({"call": name, "spectrum": [float((argument * k) % 101) for k in range(400)]})
            self.wfile.write(struct.pack("<I", len(answer)) + answer)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address = True, True


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
