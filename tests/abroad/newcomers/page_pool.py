"""Scanned pages made straight and thinned by a multiprocessing.Pool of one. --fix: a Pool of two."""
import itertools
import multiprocessing

import numpy as np
import torch
from scipy import ndimage

from pace import Pace, options


def clean_page(number):
    rng = np.random.default_rng(number)
    page = (ndimage.gaussian_filter(rng.random((256, 192)), 2) > 0.5).astype(np.float32)
    page = ndimage.rotate(page, rng.uniform(-4, 4), reshape=False, order=1)
    page = ndimage.median_filter(page, 3)
    return ndimage.zoom(page, 0.25, order=1).astype(np.float32), number % 3


def batches(pool, size):
    results = pool.imap(clean_page, itertools.islice(itertools.count(), 20_000), chunksize=2)
    while True:
        pages, kinds = zip(*itertools.islice(results, size))
        yield torch.from_numpy(np.stack(pages)).unsqueeze(1), torch.tensor(kinds)


def main():
    args = options()
    with multiprocessing.get_context("fork").Pool(2 if args.fix else 1) as pool:
        torch.set_num_threads(1)
        model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 5, stride=3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 3))
        adam = torch.optim.Adam(model.parameters())
        pace = Pace(args.seconds)
        for pages, kinds in batches(pool, 8):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(model(pages), kinds).backward()
            adam.step()
            if pace.over():
                break
        pace.report()
        pool.terminate()


if __name__ == "__main__":
    main()
