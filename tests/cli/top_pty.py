#!/usr/bin/env python3
"""headrace top on a terminal: a pseudo terminal, its keys and its size, and what is left of it afterwards.

usage: top_pty.py SCENARIO HEADRACE ARGUMENT...      (scenarios: the functions below whose names begin with "sees_")

A small emulator keeps the screen that a person would see. Waits end when what they wait for is there; only a hang makes one fail.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

PATIENCE_S = 120  # of one wait; how long things take is the machine's affair


class Screen:
    """The cells of an xterm, as far as ncurses uses one."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.top, self.bottom = 0, rows - 1
        self.other_screen = self.cursor_hidden = False
        self.rest, self.last = "", " "
        self.unknown = []

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)

    def clear(self, row, first, last):
        for column in range(max(0, first), min(last, self.columns)):
            self.cells[row][column] = " "

    def scroll(self, lines):
        for _ in range(abs(lines)):
            if lines > 0:
                del self.cells[self.top]
                self.cells.insert(self.bottom, [" "] * self.columns)
            else:
                del self.cells[self.bottom]
                self.cells.insert(self.top, [" "] * self.columns)

    def put(self, character):
        if self.column >= self.columns:
            self.column, self.row = 0, min(self.row + 1, self.rows - 1)
        self.cells[self.row][self.column] = self.last = character
        self.column += 1

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                match = re.compile(r"\x1b(?:\[([?>]?)([0-9;]*)([ -/]*)([@-~])|[()][A-Z0-9]|([=>78DEMc]))").match(text, at)
                if not match:
                    self.rest = text[at:]
                    return
                at = match.end()
                if match[4]:
                    self.control(match[1], match[2], match[4])
                elif match[5] == "M":
                    self.row = self.row - 1 if self.row > self.top else self.scroll(-1) or self.row
                continue
            character = text[at]
            at += 1
            if character == "\r":
                self.column = 0
            elif character == "\n":
                if self.row == self.bottom:
                    self.scroll(1)
                else:
                    self.row = min(self.row + 1, self.rows - 1)
            elif character == "\b":
                self.column = max(0, self.column - 1)
            elif character == "\t":
                self.column = min(self.columns - 1, (self.column // 8 + 1) * 8)
            elif character >= " ":
                self.put(character)

    def control(self, private, numbers, final):
        values = [int(n) if n else 0 for n in numbers.split(";")]
        n = max(1, values[0])
        row, column = self.row, min(self.column, self.columns - 1)
        if private:
            if private == "?" and 1049 in values:
                self.other_screen = final == "h"
            if private == "?" and 25 in values:
                self.cursor_hidden = final == "l"
        elif final == "H":
            self.row = min(n, self.rows) - 1
            self.column = min(max(1, values[1] if len(values) > 1 else 1), self.columns) - 1
        elif final == "A":
            self.row = max(0, row - n)
        elif final == "B":
            self.row = min(self.rows - 1, row + n)
        elif final == "C":
            self.column = min(self.columns - 1, column + n)
        elif final == "D":
            self.column = max(0, column - n)
        elif final == "G":
            self.column = min(n, self.columns) - 1
        elif final == "d":
            self.row = min(n, self.rows) - 1
        elif final == "J":
            if values[0] == 2:
                for each in range(self.rows):
                    self.clear(each, 0, self.columns)
            else:
                self.clear(row, column, self.columns)
                for each in range(row + 1, self.rows):
                    self.clear(each, 0, self.columns)
        elif final == "K":
            self.clear(row, 0 if values[0] else column, column + 1 if values[0] == 1 else self.columns)
        elif final == "X":
            self.clear(row, column, column + n)
        elif final == "b":
            for _ in range(n):
                self.put(self.last)
        elif final == "@":
            self.cells[row][column:column] = [" "] * n
            del self.cells[row][self.columns:]
        elif final == "P":
            del self.cells[row][column:column + n]
            self.cells[row] += [" "] * (self.columns - len(self.cells[row]))
        elif final in "LM":
            top, self.top = self.top, row
            self.scroll(-n if final == "L" else n)
            self.top = top
        elif final == "S":
            self.scroll(n)
        elif final == "T":
            self.scroll(-n)
        elif final == "r":
            self.top = n - 1
            self.bottom = (values[1] if len(values) > 1 and values[1] else self.rows) - 1
            self.row = self.column = 0
        elif final == "Z":
            self.column = max(0, (column - 1) // 8 * 8)
        elif final not in "mhltc":
            self.unknown.append(final)


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, command, rows=24, columns=80, **environment):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns, tell=False)
        self.before = termios.tcgetattr(self.slave)
        variables = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment}
        for name in ("LINES", "COLUMNS"):
            variables.pop(name, None)
        self.process = subprocess.Popen(command, stdin=self.slave, stdout=self.slave, stderr=self.slave, env=variables,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.raw, self.rest = b"", b""

    def resize(self, rows, columns, tell=True):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen = Screen(rows, columns)
        if tell:
            os.killpg(self.process.pid, signal.SIGWINCH)

    def read(self, seconds=0.05):
        if not select.select([self.master], [], [], seconds)[0]:
            return
        data = os.read(self.master, 65536)
        self.raw += data
        data = self.rest + data
        for cut in range(4):  # a character may have come in part
            try:
                text = data[:len(data) - cut].decode()
            except UnicodeDecodeError:
                continue
            self.rest = data[len(data) - cut:]
            self.screen.feed(text)
            return
        raise AssertionError(f"not UTF-8: {data!r}")

    def keys(self, text):
        os.write(self.master, text.encode())

    def wait(self, what, description):
        end = time.monotonic() + PATIENCE_S
        while not what():
            ended = self.process.poll()
            self.read()
            if time.monotonic() > end or ended is not None and not what():
                raise AssertionError(f"{description}: not within {PATIENCE_S} s (exit {ended}); the screen:\n{self.screen.text()}")

    def sees(self, pattern):
        self.wait(lambda: re.search(pattern, self.screen.text()), f"no '{pattern}'")

    def sees_no(self, pattern):
        self.wait(lambda: not re.search(pattern, self.screen.text()), f"still '{pattern}'")

    def ends(self, code):
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            self.read()
            assert time.monotonic() < end, f"does not end; the screen:\n{self.screen.text()}"
        for _ in range(20):
            self.read(0.01)
        assert self.process.returncode == code, f"exit {self.process.returncode}, expected {code}; {self.raw[-500:]!r}"
        self.is_restored()

    def is_restored(self):
        after = termios.tcgetattr(self.slave)
        assert after == self.before, f"the terminal's settings differ: {self.before} {after}"
        assert not self.screen.other_screen, "still on the other screen"
        assert not self.screen.cursor_hidden, "the cursor is hidden"


def sees_keys(headrace, *arguments):
    terminal = Terminal([headrace, "top", *arguments])
    terminal.sees(r"STAGE +THR +BUSY")
    assert terminal.screen.other_screen and terminal.screen.cursor_hidden
    terminal.sees(r"limit +\S|NO VERDICT|NO TRAINER")
    terminal.sees(r"q quit")
    terminal.keys("?")
    terminal.sees(r"Keys(.|\n)*freeze the view")
    terminal.keys("?")
    terminal.sees_no(r"freeze the view")
    terminal.keys("p")
    terminal.sees(r"FROZEN(.|\n)*p go on")
    terminal.keys("p")
    terminal.sees_no("FROZEN")
    terminal.keys("w")
    terminal.sees(r"Page: http://127\.0\.0\.1:7070/run/\d+")
    terminal.keys("w")
    terminal.sees_no(r"Page: http")
    terminal.keys("m")
    terminal.sees(r"Mark 1 at \d|Not marked: .*this run has ended")
    terminal.keys("s")
    terminal.sees(r"by busy")
    terminal.keys("sss")
    terminal.sees_no(r"by (busy|allows|name)")
    terminal.keys("/pars")
    terminal.sees(r"filter: pars_")
    terminal.sees_no(r"\n.load +\d")
    terminal.keys("\r")
    terminal.sees(r"filter pars(.|\n)*q quit")
    terminal.keys("\x1b")
    terminal.sees(r"\n.load +\d")
    terminal.keys("\x1b[B\r")
    terminal.sees(r"operators of ")
    terminal.sees(r"OPERATOR +BUSY")
    terminal.keys("\x1b")
    terminal.sees_no(r"operators of ")
    terminal.keys("xyz\x01\x7f")  # keys without a meaning
    terminal.keys("+-")
    terminal.keys("q")
    terminal.ends(0)
    assert not terminal.screen.unknown, terminal.screen.unknown


def sees_resize(headrace, *arguments):
    terminal = Terminal([headrace, "top", *arguments])
    terminal.sees(r"WHY IDLE")
    terminal.resize(20, 60)
    terminal.sees(r"STAGE")
    terminal.sees_no(r"WHY IDLE")
    terminal.resize(40, 130)
    terminal.sees(r"ON CORE +BLOCKED +WANTS(.|\n)*q quit")
    terminal.resize(8, 30)
    terminal.sees_no(r"STAGE")
    terminal.sees(r"limit |VERDICT|TRAINER")
    terminal.resize(24, 80)
    terminal.sees(r"WHY IDLE")
    terminal.keys("q")
    terminal.ends(0)


def sees_signals(headrace, *arguments):
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 130)):
        terminal = Terminal([headrace, "top", *arguments])
        terminal.sees(r"STAGE")
        terminal.process.send_signal(number)
        terminal.ends(code)
    terminal = Terminal([headrace, "top", *arguments])
    terminal.sees(r"STAGE")
    terminal.keys("\x03")  # Ctrl-C as the terminal sends it
    terminal.ends(130)
    # A process that dies by a bug leaves the terminal as it was, too.
    terminal = Terminal([headrace, "top", *arguments])
    terminal.sees(r"STAGE")
    terminal.process.send_signal(signal.SIGABRT)
    terminal.ends(-signal.SIGABRT)


def sees_no_colour(headrace, *arguments):
    terminal = Terminal([headrace, "top", *arguments], NO_COLOR="1")
    terminal.sees(r"STAGE")
    terminal.sees(r"limit |VERDICT|TRAINER")
    terminal.keys("q")
    terminal.ends(0)
    for code in re.findall(rb"\x1b\[([0-9;]*)m", terminal.raw):
        assert not any(30 <= int(n) <= 49 and int(n) != 39 and int(n) != 49 for n in code.split(b";") if n), code


def sees_ascii(headrace, *arguments):
    terminal = Terminal([headrace, "top", "--ascii", *arguments])
    terminal.sees(r"limit |VERDICT|TRAINER")
    terminal.keys("q")
    terminal.ends(0)
    assert terminal.raw.isascii()


def sees_live(headrace, *arguments):
    """A run that is being recorded: its length grows on the screen, and stays while the view is frozen."""
    terminal = Terminal([headrace, "top", "--interval", "250ms", *arguments])
    terminal.sees(r"recording \d")

    def length():
        found = re.search(r"recording ([0-9.]+ \w+)", terminal.screen.text())
        return found and found[1]

    first = length()
    terminal.wait(lambda: length() not in (first, None), "the run does not grow")
    terminal.sees(r"\d rows/s")
    terminal.keys("p")
    terminal.sees("FROZEN")
    frozen = length()
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        terminal.read()
    assert length() == frozen, (length(), frozen)
    terminal.keys("p")
    terminal.wait(lambda: length() not in (frozen, None), "it does not go on")
    terminal.keys("q")
    terminal.ends(0)


def sees_killed(headrace, collector, *arguments):
    """The recorder is killed: the view says so by itself, and stays."""
    terminal = Terminal([headrace, "top", "--interval", "500ms", *arguments])
    terminal.sees(r"recording \d")
    os.kill(int(collector), signal.SIGKILL)
    terminal.sees(r"interrupted \d")
    terminal.sees(r"STAGE")
    terminal.keys("q")
    terminal.ends(0)


def sees_command(headrace, *arguments):
    """top -- COMMAND: a question before it quits, and both answers."""
    for answer, rest in (("e", r"saved as run \d+"), ("l", r"the command runs on and is recorded as run \d+")):
        terminal = Terminal([headrace, "top", *arguments])
        terminal.sees(r"recording \d")
        terminal.keys("q")
        terminal.sees(r"the command still runs")
        terminal.keys("x")
        terminal.sees(r"q quit")
        terminal.keys("q")
        terminal.sees(r"the command still runs")
        terminal.keys(answer)
        terminal.ends(0)
        assert re.search(rest.encode(), terminal.raw), terminal.raw[-600:]
        left = re.search(rb"kill -INT (\d+) ends it", terminal.raw)
        assert bool(left) == (answer == "l"), terminal.raw[-600:]
        if left:
            os.kill(int(left[1]), signal.SIGINT)


def sees_attached(headrace, *arguments):
    terminal = Terminal([headrace, "top", *arguments])
    terminal.sees(r"recording \d")
    terminal.keys("q")
    terminal.ends(0)
    assert re.search(rb"saved as run \d+", terminal.raw), terminal.raw[-600:]


def sees_refusal(headrace, *arguments):
    """Ends with the exit code that is the last argument, and one line."""
    terminal = Terminal([headrace, "top", *arguments[:-1]])
    terminal.ends(int(arguments[-1]))
    text = terminal.raw.decode().replace("\r\n", "\n").split("\x1b[K")[-1].strip("\n")
    assert "\x1b[?1049h" not in text, text
    print(text)


def main():
    scenario, *arguments = sys.argv[1:]
    globals()["sees_" + scenario](*arguments)


if __name__ == "__main__":
    main()
