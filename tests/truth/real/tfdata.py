#!/usr/bin/env python3
"""A tf.data pipeline and a trainer with a planted limit; knows nothing of headrace.

usage: tfdata.py --limit map|trainer|storage [--parallel N] [--seconds S] [--dir DIR]
map: CPU in the mapped function; trainer: CPU in the training step; storage: interleave over files that are read past
the page cache (O_DIRECT).
The last line of the output is JSON: batches and the share of the loop in which the trainer waited for data.
exit: 0, or 77 when tensorflow is not installed.
"""
import argparse
import json
import mmap
import os
import shutil
import sys
import tempfile
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
try:
    import tensorflow as tf
except ImportError as error:
    print(f"tensorflow cannot be imported: {error}", file=sys.stderr)
    sys.exit(77)

PIECE_BYTES = 1 << 20
FILE_BYTES = 16 << 20
NUM_FILES = 8


def burn(seconds):
    end = time.thread_time() + seconds
    x = 1
    while time.thread_time() < end:
        for _ in range(200):
            x = x * 1103515245 + 12345 & 0x7FFFFFFF
    return x


def costly(item, rounds):
    """CPU in TensorFlow's own kernels, outside the interpreter lock."""
    seed = tf.cast(item, tf.float32)
    matrix = tf.fill([64, 64], 1.0 + seed * 1e-6)
    result = tf.while_loop(lambda i, _: i < rounds, lambda i, m: (i + 1, tf.sin(m) + 1e-3), (0, matrix))[1]
    return tf.reduce_sum(result)


def compute_dataset(rounds, parallel):
    return tf.data.Dataset.range(1 << 40).map(lambda i: costly(i, rounds), num_parallel_calls=parallel)


def file_dataset(folder, parallel):
    for i in range(NUM_FILES):
        with open(os.path.join(folder, f"part-{i}.bin"), "wb") as file:
            file.write(os.urandom(FILE_BYTES))
            os.fsync(file.fileno())

    own = threading.local()

    def read(index):
        # Past the page cache, in pieces large enough that the interpreter lock is hardly taken.
        def pull(i):
            path = os.path.join(folder, f"part-{int(i) % NUM_FILES}.bin")
            try:
                fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
            except OSError:  # a file system without O_DIRECT
                fd = os.open(path, os.O_RDONLY)
            try:
                if not hasattr(own, "buffer"):
                    own.buffer = mmap.mmap(-1, PIECE_BYTES)
                return sum(os.preadv(fd, [own.buffer], k * PIECE_BYTES) for k in range(FILE_BYTES // PIECE_BYTES))
            finally:
                os.close(fd)
        return tf.data.Dataset.from_tensors(index).map(
            lambda i: tf.numpy_function(lambda v: pull(v) * 1.0, [i], tf.float64))

    return tf.data.Dataset.range(1 << 40).interleave(read, cycle_length=parallel, num_parallel_calls=parallel)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", choices=["map", "trainer", "storage"], required=True)
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--dir", default=".")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    folder = tempfile.mkdtemp(dir=options.dir)
    try:
        if options.limit == "storage":
            dataset, step_s = file_dataset(folder, options.parallel), 0.0005
        elif options.limit == "map":
            dataset, step_s = compute_dataset(400, options.parallel), 0.0005
        else:
            dataset, step_s = compute_dataset(4, options.parallel), 0.02
        dataset = dataset.batch(4).prefetch(2)
        batches, waited = 0, 0.0
        iterator = iter(dataset)
        next(iterator)
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            next(iterator)
            waited += time.monotonic() - asked
            batches += 1
            burn(step_s)
            end = time.monotonic()
            if end - began > options.seconds:
                break
        print(json.dumps({"batches": batches, "seconds": end - began, "stall_ratio": waited / (end - began)}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
