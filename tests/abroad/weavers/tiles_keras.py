"""Land cover from map tiles: each tile is fetched from a tile server over HTTP, and Keras fits on them."""
import gc
import http.client
import subprocess
import sys

import numpy as np
import keras

from pace import Pace, options

SIDE, BATCH, TILES = 32, 16, 2048

SERVER = f"""
import http.server, random, time

class Tiles(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    body = [random.Random(n).randbytes({SIDE * SIDE * 3}) for n in range(8)]

    def do_GET(self):
        time.sleep(0.012)  # the way to the object store and back
        body = self.body[int(self.path.rsplit("/", 1)[1]) % 8]
        self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tiles)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
"""


class TileSequence(keras.utils.PyDataset):
    """One batch of tiles and their land cover classes."""

    def __init__(self, port, **kwargs):
        super().__init__(**kwargs)
        self.port = port
        self.order = np.random.default_rng(0).permutation(TILES)

    def __len__(self):
        return 100_000

    def fetch_tile(self, connection, number):
        connection.request("GET", f"/tiles/12/{number}")
        raw = connection.getresponse().read()
        return np.frombuffer(raw, np.uint8).reshape(SIDE, SIDE, 3).astype("float32") / 255

    def __getitem__(self, index):
        numbers = np.take(self.order, range(index * BATCH, (index + 1) * BATCH), mode="wrap")
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            tiles = [self.fetch_tile(connection, number) for number in numbers]
        finally:
            connection.close()
        return np.stack(tiles), (numbers % 4).astype("int32")


class StopAfter(keras.callbacks.Callback):
    def __init__(self, pace):
        super().__init__()
        self.pace = pace

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def main():
    args = options()
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline())
        tiles = TileSequence(port, workers=8 if args.fix else 1, use_multiprocessing=False, max_queue_size=16)
        model = keras.Sequential([keras.layers.Input((SIDE, SIDE, 3)),
                                  keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
                                  keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
                                  keras.layers.GlobalAveragePooling2D(),
                                  keras.layers.Dense(4, activation="softmax")])
        model.compile("adam", "sparse_categorical_crossentropy")
        pace = Pace(args.seconds)
        model.fit(tiles, epochs=1, shuffle=False, verbose=0, callbacks=[StopAfter(pace)])
        pace.show()
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
    gc.collect()  # the iterators of tf.data end before the interpreter does
