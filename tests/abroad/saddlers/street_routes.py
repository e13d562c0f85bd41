"""Travel time of a route from its encoded polyline: a thread pool prepares, a ridge regression learns step by step."""
import collections
import math
import os
import random
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from pace import Pace, options

BATCH, FEATURES = 32, 12


def encode_number(value):
    value = ~(value << 1) if value < 0 else value << 1
    text = ""
    while value >= 0x20:
        text += chr((0x20 | (value & 0x1F)) + 63)
        value >>= 5
    return text + chr(value + 63)


def draw_routes(folder, files=40, points=120):
    rng = random.Random(8)
    for number in range(files):
        with open(os.path.join(folder, f"routes{number:02}.txt"), "w") as out:
            for _ in range(BATCH):
                steps = [rng.randint(-90, 90) for _ in range(2 * points)]
                line = "".join(encode_number(step) for step in [5300000, 1000000] + steps)
                out.write(f"{sum(abs(step) for step in steps) / 40:.1f} {line}\n")


def decode_polyline(line):
    points, value, shift, lat, lon, place = [], 0, 0, 0, 0, 0
    for char in line:
        code = ord(char) - 63
        value |= (code & 0x1F) << shift
        shift += 5
        if code < 0x20:
            change = ~(value >> 1) if value & 1 else value >> 1
            if place % 2 == 0:
                lat += change
            else:
                lon += change
                points.append((lat / 1e5, lon / 1e5))
            value, shift, place = 0, 0, place + 1
    return points


def route_features(points):
    features = [0.0] * FEATURES
    for (lat, lon), (lat2, lon2) in zip(points, points[1:]):
        north, east = (lat2 - lat) * 111.2, (lon2 - lon) * 111.2 * math.cos(math.radians(lat))
        length = math.hypot(north, east)
        features[int((math.atan2(north, east) + math.pi) / math.tau * 7.999)] += length
        features[8] += length
        features[9] = max(features[9], length)
    features[10], features[11] = len(points) / 100, 1.0
    return features


def prepare(path):
    features, minutes = [], []
    with open(path) as source:
        for row in source:
            time, line = row.rstrip("\n").split(" ", 1)
            features.append(route_features(decode_polyline(line)))
            minutes.append(float(time))
    return np.array(features, np.float32), np.array(minutes, np.float32)


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="routes")
    try:
        draw_routes(folder)
        files = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        weights, rng = np.zeros(FEATURES, np.float32), random.Random(0)
        workers = 8 if args.fix else 4
        pace, waiting = Pace(args.seconds), collections.deque()
        with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="routes") as pool:
            while True:
                while len(waiting) < 2 * workers:
                    waiting.append(pool.submit(prepare, rng.choice(files)))
                features, minutes = waiting.popleft().result()
                error = features @ weights - minutes
                weights -= 1e-4 * (features.T @ error / BATCH + 1e-3 * weights)
                if pace.done():
                    break
            pool.shutdown(wait=False, cancel_futures=True)
        print(f"mean error {np.abs(error).mean():.1f} minutes")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
