"""Ferries: guess the next port from the day's track. Two ranks, DistributedDataParallel over gloo."""
import math
import os
import subprocess
import sys

from pace import Pace, options

PINGS = 900


def launch():
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", os.path.abspath(__file__), *sys.argv[1:]]
    return subprocess.call(command)


def legs_plain(track):
    """Smoothed speed over ground and turn rate, ping by ping."""
    speed, turn, calm = [], [], 0.0
    last = 0.0
    for (lat1, lon1), (lat2, lon2) in zip(track[:-1], track[1:]):
        a = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
        knots = 2 * 3440 * math.asin(min(1.0, math.sqrt(a))) * 60
        course = math.atan2(lon2 - lon1, lat2 - lat1)
        calm = 0.9 * calm + 0.1 * knots
        speed.append(calm)
        turn.append(math.sin(course - last))
        last = course
    return speed, turn


def legs_whole(track):
    import numpy as np
    from scipy.signal import lfilter

    lat, lon = track.T
    dlat, dlon = np.diff(lat), np.diff(lon)
    a = np.sin(dlat / 2) ** 2 + np.cos(lat[:-1]) * np.cos(lat[1:]) * np.sin(dlon / 2) ** 2
    knots = 2 * 3440 * np.arcsin(np.minimum(1.0, np.sqrt(a))) * 60
    course = np.arctan2(dlon, dlat)
    return lfilter([0.1], [1, -0.9], knots), np.sin(np.diff(course, prepend=0.0))


def main(o):
    import numpy as np
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, DistributedSampler

    class Tracks(Dataset):
        def __init__(self, n=20000):
            rng = np.random.default_rng(3)
            self.base = np.cumsum(rng.normal(0, 1e-4, (64, PINGS, 2)), axis=1) + 0.9
            self.port = rng.integers(0, 12, 64)
            self.n = n

        def __len__(self):
            return self.n

        def __getitem__(self, k):
            track = self.base[k % 64] + (k // 64) * 1e-6
            speed, turn = legs_whole(track) if o.fix else legs_plain(track.tolist())
            return torch.tensor(np.stack([speed, turn]), dtype=torch.float32), int(self.port[k % 64])

    dist.init_process_group("gloo")
    data = Tracks()
    loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data), num_workers=1)
    net = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Conv1d(2, 8, 9, stride=4), nn.ReLU(), nn.AdaptiveAvgPool1d(16), nn.Flatten(), nn.Linear(128, 12)))
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    pace = Pace(o.seconds)
    for x, y in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
        over = torch.tensor([float(pace.done())])
        dist.broadcast(over, 0)  # both ranks stop at the same step
        if over.item():
            break
    if dist.get_rank() == 0:
        pace.show()
    dist.destroy_process_group()


if __name__ == "__main__":
    arguments = options()
    if "LOCAL_RANK" not in os.environ:
        sys.exit(launch())
    main(arguments)
