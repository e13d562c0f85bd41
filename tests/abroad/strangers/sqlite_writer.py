"""Fills the table of the other program: transactions that stay open for a while."""
import os
import sqlite3
import sys
import time

path, hold = sys.argv[1], float(sys.argv[2])
base = sqlite3.connect(path, timeout=30, isolation_level=None)
print(0, flush=True)
k, parent = 0, os.getppid()
while os.getppid() == parent:
    base.execute("BEGIN EXCLUSIVE")
    base.execute("INSERT INTO log VALUES (?)", (k,))
    time.sleep(hold)
    base.execute("COMMIT")
    k += 1
    time.sleep(0.02)
