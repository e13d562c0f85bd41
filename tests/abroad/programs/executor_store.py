"""concurrent.futures with two threads that ask a server which answers after 20 ms; the fix is eight threads."""
import collections
import concurrent.futures
import urllib.request

import harness
import store


def fetch(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read()


def batches(threads, url):
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        waiting = collections.deque(pool.submit(fetch, url) for _ in range(16))
        while True:
            yield waiting.popleft().result()
            waiting.append(pool.submit(fetch, url))


if __name__ == "__main__":
    args = harness.options()
    url = store.start()
    harness.loop(harness.forever(lambda: batches(8 if args.fix else 2, url)), lambda batch: harness.burn(0.001),
                 args.seconds)
