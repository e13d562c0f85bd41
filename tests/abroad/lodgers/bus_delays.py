"""Keras predicts delays of buses; the features of each batch come from the transport company's feature store, over TCP, 25 ms away.

--fix: workers 1 -> 12."""
import multiprocessing
import os
import socket
import socketserver
import struct
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

BATCH, WIDTH, SIZE = 32, 20, 32 * 20 * 4


class Company(socketserver.BaseRequestHandler):
    def handle(self):
        while True:
            asked = self.request.recv(4)
            if not asked:
                return
            time.sleep(0.025)
            value = struct.unpack("<I", asked)[0] % 97 / 97
            self.request.sendall(struct.pack("<f", value) * (BATCH * WIDTH))


def serve(port):
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Company) as server:
        port.send(server.server_address[1])
        server.serve_forever()


def main():
    receive, send = multiprocessing.Pipe(False)
    company = multiprocessing.Process(target=serve, args=(send,), daemon=True)
    company.start()  # before TensorFlow has threads
    port = receive.recv()

    import keras
    import numpy as np
    from pace import Pace, options

    args = options()
    lines = threading.local()

    class Buses(keras.utils.PyDataset):
        def __len__(self):
            return 600

        def ask_store(self, number):
            if not hasattr(lines, "socket"):
                lines.socket = socket.create_connection(("127.0.0.1", port))
            lines.socket.sendall(struct.pack("<I", number))
            return lines.socket.recv(SIZE, socket.MSG_WAITALL)

        def __getitem__(self, number):
            # An epoch broken off leaves TensorFlow hanging at exit: what is left of it is made of zeros.
            answer = bytes(SIZE) if clock.over else self.ask_store(number)
            features = np.frombuffer(answer, np.float32).reshape(BATCH, WIDTH)
            return features, features.mean(1, keepdims=True)

    class Clock(keras.callbacks.Callback):
        over = False

        def on_train_batch_end(self, batch, logs=None):
            self.over = self.over or pace.done()

        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = self.over

    model = keras.Sequential([keras.Input((WIDTH,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    pace, clock = Pace(args.seconds), Clock()
    model.fit(Buses(workers=12 if args.fix else 1, max_queue_size=24 if args.fix else 10), epochs=1000000, verbose=0, callbacks=[clock])
    pace.show()
    company.terminate()
    company.join()


if __name__ == "__main__":
    main()
