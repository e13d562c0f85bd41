"""A program beside the measured one that takes cores from it."""
import subprocess
import sys


class Neighbour:
    """Processes that compute on so many cores as long as this lasts."""
    COMPUTE = """
import os, sys, time
share, parent = float(sys.argv[1]), os.getppid()
while os.getppid() == parent:  # or the measurement was killed
    end = time.monotonic() + 0.02 * share
    while time.monotonic() < end:
        pass
    if share < 1:
        time.sleep(0.02 * (1 - share))
"""

    def __init__(self, cores):
        self.cores, self.processes = cores, []

    def __enter__(self):
        left = self.cores
        while left > 0.01:
            self.processes.append(subprocess.Popen([sys.executable, "-c", self.COMPUTE, str(min(1.0, left))]))
            left -= 1
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
