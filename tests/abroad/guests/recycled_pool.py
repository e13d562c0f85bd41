"""Molecule descriptors by a multiprocessing.Pool whose processes are replaced after a few tasks (a library is said to leak) and read tables at start.
--fix: maxtasksperchild 4 -> None."""
import hashlib
import itertools
import multiprocessing

import numpy as np
import torch

from pace import Pace, options

ATOMS = "CNOPSFcnos"
weights = None


def read_tables(path_seed):
    """Parameters of atom pairs, as a text file has them."""
    global weights
    rng = np.random.default_rng(path_seed)
    lines = [" ".join(f"{value:.5f}" for value in row) for row in rng.normal(size=(250, 100))]
    table = np.array([[float(word) for word in line.split()] for line in lines])
    weights = table[:, :64].astype(np.float32)


def molecule(number):
    digest = hashlib.blake2b(number.to_bytes(8, "little"), digest_size=24).digest()
    return "".join(ATOMS[byte % len(ATOMS)] for byte in digest)


def describe(numbers):
    rows = np.zeros((len(numbers), 64), np.float32)
    for row, number in zip(rows, numbers):
        smiles = molecule(number)
        for first, second in itertools.pairwise(smiles):
            row += weights[ATOMS.index(first) * len(ATOMS) + ATOMS.index(second)]
    return rows


def chunks(size=16):
    for first in itertools.count(0, size):
        yield range(first, first + size)


def bounded(pool, depth=8):
    """imap, but never more than `depth` ahead."""
    ahead = [pool.apply_async(describe, (numbers,)) for numbers in itertools.islice(chunks(), depth)]
    for numbers in chunks():
        yield ahead.pop(0).get()
        ahead.append(pool.apply_async(describe, (numbers,)))


def main():
    args = options()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.SiLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters())
    pace = Pace(args.seconds)
    with multiprocessing.get_context("fork").Pool(2, read_tables, (1,), maxtasksperchild=None if args.fix else 4) as pool:
        for rows in bounded(pool):
            rows = torch.from_numpy(rows)
            loss = (model(rows).squeeze(1) - rows[:, 0]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
    pace.show()


if __name__ == "__main__":
    main()
