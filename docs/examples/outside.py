"""Two processes compute elements, the main process takes them: outside.py SECONDS STEP_SECONDS. No line of headrace in it."""
import multiprocessing
import sys
import time


def work(queue):
    while True:
        queue.put(sum(k * k for k in range(400_000)))


if __name__ == "__main__":
    queue = multiprocessing.Queue(4)
    for _ in range(2):
        multiprocessing.Process(target=work, args=(queue,), daemon=True).start()
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        queue.get()
        time.sleep(float(sys.argv[2]))
