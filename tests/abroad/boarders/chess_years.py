"""Learns to judge chess positions; an IterableDataset deals the files of a games archive to its workers.

--fix: the lines are dealt, not the files."""
import os
import random
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from pace import Pace, options

PIECES = "PNBRQKpnbrqk"
FILES = {"2003_club.fen": 150, "2024_online.fen": 4000, "2011_open.fen": 250}


def play(folder):
    rng = random.Random(1)
    for name, count in FILES.items():
        with open(os.path.join(folder, name), "w") as file:
            for _ in range(count):
                rows = []
                for _ in range(8):
                    row, empty = "", 0
                    for _ in range(8):
                        if rng.random() < 0.55:
                            empty += 1
                            continue
                        row += (str(empty) if empty else "") + rng.choice(PIECES)
                        empty = 0
                    rows.append(row + (str(empty) if empty else ""))
                file.write("/".join(rows) + f" {rng.choice('wb')} {rng.gauss(0, 1):.3f}\n")


def encode(line):
    """Planes of the pieces, and for each square how many pieces of each colour see it along rank, file and diagonals."""
    board, side, score = line.split()
    squares = []
    for character in board.replace("/", ""):
        squares.extend([None] * int(character) if character.isdigit() else [character])
    planes = [[0.0] * 64 for _ in range(14)]
    for place, piece in enumerate(squares):
        if piece is None:
            continue
        planes[PIECES.index(piece)][place] = 1.0
        for across, down in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)):
            x, y = place % 8 + across, place // 8 + down
            while 0 <= x < 8 and 0 <= y < 8:
                planes[12 + piece.islower()][y * 8 + x] += 1.0
                if squares[y * 8 + x] is not None:
                    break
                x, y = x + across, y + down
    return torch.tensor(planes).flatten(), torch.tensor(float(score) if side == "w" else -float(score))


class Positions(IterableDataset):
    def __init__(self, folder, by_line):
        self.paths, self.by_line = sorted(os.path.join(folder, name) for name in os.listdir(folder)), by_line

    def __iter__(self):
        worker = get_worker_info()
        for path in self.paths if self.by_line else self.paths[worker.id::worker.num_workers]:
            with open(path) as file:
                for number, line in enumerate(file):
                    if not self.by_line or number % worker.num_workers == worker.id:
                        yield encode(line)


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        play(folder)
        loader = DataLoader(Positions(folder, args.fix), batch_size=64, num_workers=3, persistent_workers=True)
        model = nn.Sequential(nn.Linear(14 * 64, 64), nn.ReLU(), nn.Linear(64, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        pace = Pace(args.seconds)
        over = False
        while not over:
            for planes, score in loader:
                loss = nn.functional.mse_loss(model(planes)[:, 0], score)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()


if __name__ == "__main__":
    main()
