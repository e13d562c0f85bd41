"""Two processes of an executor compute affinities of patches by torch; the thread count was copied from the launcher of a large machine.
--fix: one thread in each."""
import collections
import concurrent.futures
import multiprocessing
import os

os.environ["OMP_NUM_THREADS"] = "16"
import torch

from pace import Pace, options


def initialise(threads):
    torch.set_num_threads(threads)
    torch.manual_seed(os.getpid())


def spread(number, patches=160, steps=12):
    """Affinities between the patches of four pictures, spread over a few steps."""
    out = []
    for _ in range(4):
        x = torch.randn(patches, 48)
        near = torch.softmax(x @ x.T / 7, 1)
        far = near
        for _ in range(steps):
            far = torch.softmax(10 * far @ near, 1)
        out.append((far @ x)[:32])
    return torch.stack(out).numpy()


def stream(executor, ahead=6):
    waiting = collections.deque(executor.submit(spread, number) for number in range(ahead))
    number = ahead
    while True:
        yield waiting.popleft().result()
        waiting.append(executor.submit(spread, number))
        number += 1


def main():
    args = options()
    threads = 1 if args.fix else int(os.environ["OMP_NUM_THREADS"])
    executor = concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork"), initialise, (threads,))
    results = stream(executor)
    next(results)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(48, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    pace = Pace(args.seconds)
    for batch in results:
        model(torch.from_numpy(batch)).square().mean().backward()
        model.zero_grad()
        if pace.done():
            break
    pace.show()
    executor.shutdown(wait=True, cancel_futures=True)


if __name__ == "__main__":
    main()
