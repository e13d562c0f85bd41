"""Ships' positions (a receiver's log, as text) to features, for a model that tells trawlers from freighters."""
import collections
import datetime
import itertools
import math
import random
from concurrent import futures

import numpy as np

from pace import Pace, options

SHIPS, FIXES = 32, 40


def make_log(seed):
    rng, lines = random.Random(seed), []
    moment = datetime.datetime(2024, 3, 12, 4, 0, 0)
    places = {ship: (rng.uniform(50, 60), rng.uniform(0, 9)) for ship in range(SHIPS)}
    for _ in range(FIXES):
        for ship, (lat, lon) in places.items():
            moment += datetime.timedelta(seconds=rng.randrange(4))
            places[ship] = lat + rng.uniform(-1, 1) / 600, lon + rng.uniform(-1, 1) / 600
            lines.append(f"{moment:%d.%m.%Y %H:%M:%S};{ship};{lat:.5f};{lon:.5f};{rng.uniform(0, 20):.1f}")
    return "\n".join(lines)


def read_moment(text):
    return datetime.datetime.strptime(text, "%d.%m.%Y %H:%M:%S")


def read_moment_by_place(text):
    return datetime.datetime(int(text[6:10]), int(text[3:5]), int(text[:2]), int(text[11:13]), int(text[14:16]), int(text[17:]))


class Receiver:
    def __init__(self, moment):
        self.moment = moment

    def parse(self, log):
        tracks = collections.defaultdict(list)
        for line in log.splitlines():
            moment, ship, lat, lon, speed = line.split(";")
            tracks[int(ship)].append((self.moment(moment), float(lat), float(lon), float(speed)))
        return tracks

    def features(self, log):
        table = np.zeros((SHIPS, 4), np.float32)
        for ship, track in self.parse(log).items():
            pauses = track[-1][0] - track[0][0]
            way = sum(math.hypot(b[1] - a[1], b[2] - a[2]) for a, b in itertools.pairwise(track))
            speeds = [fix[3] for fix in track]
            table[ship] = pauses.total_seconds(), way, max(speeds), sum(speeds) / len(speeds)
        return table


def batches(pool, receiver, logs):
    pending = collections.deque(pool.submit(receiver.features, next(logs)) for _ in range(8))
    while True:
        yield pending.popleft().result()
        pending.append(pool.submit(receiver.features, next(logs)))


def main():
    args = options()
    logs = itertools.cycle([make_log(seed) for seed in range(16)])
    receiver = Receiver(read_moment_by_place if args.fix else read_moment)
    weights, pace = np.zeros(4, np.float32), Pace(args.seconds)
    with futures.ThreadPoolExecutor(4, thread_name_prefix="receiver") as pool:
        for table in batches(pool, receiver, logs):
            trawler = (table[:, 3] < 10).astype(np.float32)
            scaled = (table - table.mean(0)) / (table.std(0) + 1e-6)
            chance = 1 / (1 + np.exp(-scaled @ weights))
            weights -= 0.1 * (chance - trawler) @ scaled / SHIPS
            if pace.done():
                break
        pool.shutdown(cancel_futures=True)
    pace.show()


if __name__ == "__main__":
    main()
