"""Learns who wins a game of chess from its first moves; two ranks (torchrun, gloo), each with its half of the games."""
import os
import random
import shutil
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from pace import Pace, options

MOVES, SQUARES = 40, [file + rank for file in "abcdefgh" for rank in "12345678"]
NUMBER = {move: n + 1 for n, move in enumerate(piece + square for piece in ("", "N", "B", "R", "Q", "K") for square in SQUARES)}


def write_database(path, games=1280):
    """Club games first, then the grandmasters' with the comments of the annotators."""
    rng, moves = random.Random(1), list(NUMBER)
    with open(path, "w") as out:
        for game in range(games):
            line = []
            for ply in range(MOVES):
                line.append(rng.choice(moves))
                if game >= games // 2:
                    aside = " ".join(rng.choices(moves, k=8))
                    line.append(f"( {aside} ( {aside} ) ) {{ better is {aside} with a small edge for the side to move }}")
            out.write(" ".join(line) + rng.choice([" 1-0", " 0-1"]) + "\n")


class Games(Dataset):
    def __init__(self, path, rank, ranks, keep):
        with open(path) as lines:
            games = lines.read().splitlines()
        share = len(games) // ranks
        self.games = games[rank * share:(rank + 1) * share]
        self.kept = [self.main_line(text) for text in self.games] if keep else None

    def __len__(self):
        return len(self.games)

    def main_line(self, text):
        depth, words, word = 0, [], ""
        for sign in text:
            if sign in "({":
                depth += 1
            elif sign in ")}":
                depth -= 1
            elif sign == " ":
                if word:
                    words.append(word)
                word = ""
            elif depth == 0:
                word += sign
        return words, word

    def __getitem__(self, i):
        words, result = self.kept[i] if self.kept else self.main_line(self.games[i])
        return torch.tensor([NUMBER[word] for word in words]), float(result == "1-0")


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(NUMBER) + 1, 32)
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(MOVES * 32, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, moves):
        return self.layers(self.embed(moves)).squeeze(1)


def train(opts, path):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    loader = DataLoader(Games(path, rank, dist.get_world_size(), opts.fix), batch_size=32, shuffle=True)
    model = DistributedDataParallel(Judge())
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    pace, over = Pace(opts.seconds), torch.zeros(1)
    while not over:
        for moves, result in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(moves), result.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            over.fill_(float(pace.done() and rank == 0))
            dist.broadcast(over, 0)
            if over:
                break
    if rank == 0:
        pace.show()
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(options(), os.environ["CHESS_GAMES"])
    else:
        folder = tempfile.mkdtemp(prefix="chess")
        os.environ["CHESS_GAMES"] = os.path.join(folder, "games.txt")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        write_database(os.environ["CHESS_GAMES"])
        try:
            sys.exit(subprocess.call([sys.executable, "-m", "torch.distributed.run", "--standalone",
                                      "--nproc_per_node=2", *sys.argv]))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
