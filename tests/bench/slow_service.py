"""What scripts about jobs with sleeping workers share: a table whose pipeline sleeps 40 ms for each split, so that workers cost time and
not cores, and what `service status` answers."""
import json
import subprocess


def make_slow_table(headrace):
    """Makes t/slow.toml and its table below the working directory."""
    subprocess.run([headrace, "generate", "rm3", "-o", "t", "--rows", "20000", "--features", "0.02", "--stripe-rows", "256"], check=True,
                   capture_output=True)
    with open("t/pipeline.toml") as file:
        text = file.read()
    assert 'operators = ["batch"' in text
    with open("t/slow.toml", "w") as file:
        file.write(text.replace('operators = ["batch"', 'operators = [{ sleep = "40ms" }, "batch"'))


def status(headrace, place):
    """None where nobody answers."""
    said = subprocess.run([headrace, "service", "status", place, "--json"], capture_output=True, text=True)
    return json.loads(said.stdout) if said.returncode == 0 else None
