"""Parts of records from a store, read through a numpy function of tf.data."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import socket
import threading

import numpy as np
import tensorflow as tf

import stores
from pace import options, timed

local = threading.local()


def reader(port):
    def fetch(number):
        if not hasattr(local, "file"):
            local.file = socket.create_connection(("127.0.0.1", port)).makefile("rwb")
        key = b"part:%d" % number
        local.file.write(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key))
        local.file.flush()
        size = int(local.file.readline()[1:])
        return np.frombuffer(local.file.read(size + 2)[:-2], np.uint8)[:800].astype(np.float32)

    def op(number):
        part = tf.numpy_function(fetch, [number], tf.float32, stateful=False)
        part.set_shape((800,))
        return part

    return op


if __name__ == "__main__":
    args = options()
    port = stores.start("resp_store.py", 0.02)
    parts = tf.data.Dataset.range(1 << 40).map(reader(port), num_parallel_calls=8 if args.fix else 2).batch(4).prefetch(2)
    settings = tf.data.Options()
    settings.threading.private_threadpool_size = 16       # the calls wait, they do not compute
    parts = parts.with_options(settings)
    layer = tf.keras.layers.Dense(10)
    for part in timed(parts, args.seconds):
        layer(part / 255)
