"""Rain nowcast from radar scans kept on an archive's HTTP server, read through tf.data."""
import multiprocessing
import os
import threading
import time
import urllib.request
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pace import Pace, options

SIZE, SCANS, STATIONS, BATCH = 48, 24, 32, 8


class Archive(BaseHTTPRequestHandler):
    """Stands for the weather service's archive, some 40 ms away."""

    def do_GET(self):
        time.sleep(0.04)
        body = zlib.compress(os.urandom(64) * (SIZE * SIZE * 2 // 64), 1)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(port):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    port.send(server.server_address[1])
    server.serve_forever()


def main():
    args = options()
    ours, theirs = multiprocessing.Pipe()
    archive = multiprocessing.get_context("fork").Process(target=serve, args=(theirs,), daemon=True)
    archive.start()
    address = f"http://127.0.0.1:{ours.recv()}"

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import numpy as np
    import tensorflow as tf

    over = threading.Event()

    def scans(station):
        for number in range(SCANS):
            if over.is_set():
                return
            with urllib.request.urlopen(f"{address}/{int(station):03}/{number:03}.bin") as reply:
                pair = np.frombuffer(zlib.decompress(reply.read()), np.uint8)
            pair = pair.reshape(2, SIZE, SIZE, 1).astype(np.float32) / 255
            yield pair[0], pair[1]

    image = tf.TensorSpec((SIZE, SIZE, 1), tf.float32)

    def station_scans(station):
        return tf.data.Dataset.from_generator(scans, args=(station,), output_signature=(image, image))

    stations = tf.data.Dataset.range(STATIONS).shuffle(STATIONS).repeat(12)
    if args.fix:
        data = stations.interleave(station_scans, cycle_length=8, num_parallel_calls=8, deterministic=False)
    else:
        data = stations.interleave(station_scans, cycle_length=1)
    data = data.batch(BATCH).prefetch(tf.data.AUTOTUNE)
    if args.fix:
        threads = tf.data.Options()
        threads.threading.private_threadpool_size = 12
        data = data.with_options(threads)

    model = tf.keras.Sequential([
        tf.keras.layers.Input((SIZE, SIZE, 1)),
        tf.keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(1, 3, padding="same"),
    ])
    model.compile("adam", "mse")
    pace = Pace(args.seconds)

    try:
        for now, later in data:
            if over.is_set():
                continue  # what is still on its way
            error = model.train_on_batch(now, later)
            if pace.done():
                over.set()
        print(f"error {float(error):.4f}")
        pace.show()
    finally:
        archive.terminate()
        archive.join()


if __name__ == "__main__":
    main()
