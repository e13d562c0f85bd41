"""P-wave picker: Keras model on waveforms that lie in the observatory's archive behind HTTP."""
import gc
import os
import subprocess
import sys
import urllib.request

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np

from pace import Pace, options

SAMPLES = 600

# A stand-in for the archive (another machine, about 12 ms away).
ARCHIVE = """
import http.server, os, time
class Archive(http.server.BaseHTTPRequestHandler):
    body = os.urandom(%d)
    def do_GET(self):
        time.sleep(0.012)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)
    def log_message(self, *args):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
server = Server(("127.0.0.1", 0), Archive)
print(server.server_address[1], flush=True)
server.serve_forever()
""" % (SAMPLES * 3 * 2)


class WaveformSequence(keras.utils.PyDataset):
    def __init__(self, base_url, event_ids, batch_size=16, **kwargs):
        super().__init__(**kwargs)
        self.base_url = base_url
        self.event_ids = event_ids
        self.batch_size = batch_size

    def __len__(self):
        return len(self.event_ids) // self.batch_size

    def fetch_waveform(self, event_id):
        with urllib.request.urlopen(f"{self.base_url}/waveforms/{event_id}") as reply:
            raw = np.frombuffer(reply.read(), dtype=np.int16)
        trace = raw.reshape(SAMPLES, 3).astype(np.float32)
        return trace / np.abs(trace).max()

    def __getitem__(self, index):
        ids = self.event_ids[index * self.batch_size:(index + 1) * self.batch_size]
        traces = np.stack([self.fetch_waveform(i) for i in ids])
        return traces, (np.asarray(ids) % 2).astype(np.float32)


class StopWatch(keras.callbacks.Callback):
    def __init__(self, pace):
        super().__init__()
        self.pace = pace

    def on_train_batch_end(self, batch, logs=None):
        if self.pace.done():
            self.model.stop_training = True


def picker():
    model = keras.Sequential([
        keras.layers.Input((SAMPLES, 3)),
        keras.layers.Conv1D(8, 11, strides=4, activation="relu"),
        keras.layers.Conv1D(8, 7, strides=4, activation="relu"),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy")
    return model


def main():
    args = options()
    archive = subprocess.Popen([sys.executable, "-c", ARCHIVE], stdout=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{int(archive.stdout.readline())}"
        workers = dict(workers=8, max_queue_size=16) if args.fix else {}
        events = WaveformSequence(url, list(range(16 * 50)), **workers)
        pace = Pace(args.seconds)
        watch = StopWatch(pace)
        picker().fit(events, epochs=1000, verbose=0, callbacks=[watch])
        pace.show()
        gc.collect()   # otherwise TensorFlow's generator may hang at exit
    finally:
        archive.kill()
        archive.wait()


if __name__ == "__main__":
    main()
