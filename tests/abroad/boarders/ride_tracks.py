"""Guesses a cyclist's power from GPX tracks. Four threads read the tracks and fill a queue.

--fix: two processes do."""
import multiprocessing
import queue
import random
import re
import threading

import torch
from torch import nn

from pace import Pace, options

POINT = re.compile(r'<trkpt lat="([-\d.]+)" lon="([-\d.]+)"><ele>([-\d.]+)</ele><hr>(\d+)</hr></trkpt>')
RIDES, POINTS = 60, 400


def ride():
    rng, tracks = random.Random(17), []
    for _ in range(RIDES):
        lat, lon, ele, lines = 46.0, 7.0, 900.0, ["<gpx><trk><trkseg>"]
        for _ in range(POINTS):
            lat, lon, ele = lat + rng.gauss(0, 1e-4), lon + rng.gauss(0, 1e-4), ele + rng.gauss(0, 2)
            lines.append(f'<trkpt lat="{lat:.6f}" lon="{lon:.6f}"><ele>{ele:.1f}</ele><hr>{rng.randint(90, 180)}</hr></trkpt>')
        tracks.append("\n".join(lines + ["</trkseg></trk></gpx>"]))
    return tracks


def read_track(text):
    points = []
    for line in text.split("\n"):
        match = POINT.match(line)
        if match:
            points.append(tuple(float(value) for value in match.groups()))
    features, smooth = [], 0.0
    for (lat, lon, ele, heart), (lat2, lon2, ele2, heart2) in zip(points, points[1:]):
        metres = ((lat2 - lat) ** 2 + (0.69 * (lon2 - lon)) ** 2) ** 0.5 * 111000
        slope = (ele2 - ele) / max(metres, 1.0)
        smooth = 0.9 * smooth + 0.1 * slope
        features.append([metres / 10, slope, smooth, (heart2 - 130) / 30])
    return features


def fill(texts, batches, seed):
    rng = random.Random(seed)
    while True:
        tracks = [read_track(rng.choice(texts)) for _ in range(8)]
        batches.put(torch.tensor(tracks).numpy())


class Power(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Conv1d(4, 24, 15, stride=8)
        self.head = nn.Linear(24, 1)

    def forward(self, tracks):
        return self.head(torch.relu(self.look(tracks.transpose(1, 2))).mean(-1))[:, 0]


def main():
    args = options()
    torch.set_num_threads(1)
    texts = ride()
    if args.fix:
        batches = multiprocessing.Queue(8)
        readers = [multiprocessing.Process(target=fill, args=(texts, batches, seed), daemon=True) for seed in range(2)]
    else:
        batches = queue.Queue(8)
        readers = [threading.Thread(target=fill, args=(texts, batches, seed), daemon=True) for seed in range(4)]
    for reader in readers:
        reader.start()
    model = Power()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pace = Pace(args.seconds)
    while True:
        tracks = torch.from_numpy(batches.get())
        loss = nn.functional.mse_loss(model(tracks), tracks[..., 0].mean(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if pace.done():
            break
    pace.show()
    for reader in readers if args.fix else ():
        reader.terminate()


if __name__ == "__main__":
    main()
