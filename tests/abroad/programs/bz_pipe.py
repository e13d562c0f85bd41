"""Frames are kept in a bzip2 file and read through a pipe from `bzip2 -dc`, as a video is from ffmpeg; plain numpy, no loader.

--fix keeps them in a gzip file and reads from `gzip -dc`, which takes a small part of the time.
"""
import os
import subprocess
import tempfile
import time

import numpy

import meter

SIDE, FRAMES, BATCH = 192, 320, 8
FRAME = SIDE * SIDE


def store(path, command):
    """A dot that moves over a noisy ground."""
    draw = numpy.random.default_rng(1)
    with open(path, "wb") as file:
        pack = subprocess.Popen([command, "-1", "-c"], stdin=subprocess.PIPE, stdout=file)
        for i in range(FRAMES):
            frame = draw.integers(0, 8, (SIDE, SIDE), dtype="uint8")
            frame[i % SIDE, (3 * i) % SIDE] = 255
            pack.stdin.write(frame.tobytes())
        pack.stdin.close()
        pack.wait()


def batches(path, command):
    while True:
        child = subprocess.Popen([command, "-dc", path], stdout=subprocess.PIPE)
        for _ in range(FRAMES // BATCH):
            data = child.stdout.read(BATCH * FRAME)
            yield numpy.frombuffer(data, "uint8").reshape(BATCH, SIDE, SIDE)
        child.stdout.close()
        child.wait()


def main():
    options = meter.arguments()
    command = "gzip" if options.fix else "bzip2"
    weights = numpy.zeros((SIDE, 2), "float32")
    clock = meter.Meter(options.seconds)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "frames")
        store(path, command)
        for frames in batches(path, command):
            brightest = frames.reshape(BATCH, -1).argmax(1)
            places = numpy.stack([brightest // SIDE, brightest % SIDE], 1).astype("float32") / SIDE
            x = frames.mean(1, dtype="float32") / 255
            weights -= 0.01 * x.T @ (x @ weights - places)
            time.sleep(0.002)       # the rest of the step is the accelerator's
            if clock.tick():
                break
    clock.show()


if __name__ == "__main__":
    main()
