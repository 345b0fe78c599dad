"""Row 40: the server of a file system stops, comes back, and dies, while files are listed and read.
Needs root.

stalled.py READER
"""

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import harness

_TIMEOUT_MS = 200
_RECORDS = 100
_MOST_ERRORS = 50


@contextmanager
def served(folder, *files):
    """A file system with these files; gives its server."""
    folder.mkdir()
    script = Path(__file__).parent / "stalled" / "fuse_server.py"
    server = subprocess.Popen([sys.executable, "-B", script, folder, *files],
                              stdout=subprocess.PIPE, text=True)
    try:
        if server.stdout.readline() != "mounted\n":
            raise harness.Bad("the file system could not be mounted")
        yield server
    finally:
        server.send_signal(signal.SIGCONT)
        harness.command("umount", "--lazy", folder)
        server.kill()
        server.wait()


class Reader:
    def __init__(self, program, pattern, parallel):
        self._process = subprocess.Popen([program, pattern, str(_TIMEOUT_MS), str(parallel)],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.records = []
        self.remote = None

    def go_on(self):
        """Until it waits: why it does ("ten", "error ..."), or "end"."""
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its end is seen below
        while line := self._process.stdout.readline().rstrip("\n"):
            if line in ("ten", "end") or line.startswith("error "):
                return line
            if line.startswith("remote "):
                self.remote = line == "remote 1"
            else:
                self.records.append(line)
        raise harness.Bad(f"it ended with {self._process.wait()}")

    def expect(self, beginning):
        start = time.monotonic()
        found = self.go_on()
        if not found.startswith(beginning):
            raise harness.Bad(f"'{beginning}' expected, but '{found}' came")
        return found, time.monotonic() - start

    def expect_deadline(self, action):
        text, seconds = self.expect("error DEADLINE_EXCEEDED: ")
        if action not in text:
            raise harness.Bad(f"the error does not say '{action}': {text}")
        if seconds > 10:
            raise harness.Bad(f"it came after {seconds:.1f} s")

    def expect_the_rest(self, records, remote):
        """All records in their order, after as many more missed deadlines as it takes."""
        for _ in range(_MOST_ERRORS):
            found = self.go_on()
            if found == "end":
                break
            if found != "ten" and not found.startswith("error DEADLINE_EXCEEDED: "):
                raise harness.Bad(found)
        if self.records != records:
            raise harness.Bad(f"other records: {self.records}")
        if self.remote != remote:
            raise harness.Bad(f"the file was taken for {'remote' if self.remote else 'local'}")

    def close(self):
        self._process.kill()
        self._process.wait()


def write_records(path, records):
    """Of a thousand bytes each, so that a read gets a few."""
    with open(path, "wb") as file:
        for record in records:
            file.write(framed(record.encode().ljust(1000, b".")))


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")


def framed(data):
    length = len(data).to_bytes(8, "little")
    return length + masked_crc(length) + data + masked_crc(data)


def main(program, folder):
    records = [f"{number:08}" for number in range(_RECORDS)]
    file = folder / "a.tfrecord"
    write_records(file, records)
    tally = harness.Tally("row 40, a file system whose server is stopped")

    @contextmanager
    def strike(what, parallel=1):
        with tally.strike(what):
            mount = folder / what.replace(" ", "-")
            with served(mount, file) as server:
                reader = Reader(program, mount / "*.tfrecord", parallel)
                try:
                    yield reader, server
                finally:
                    server.send_signal(signal.SIGCONT)
                    reader.close()

    for parallel in (1, 2):
        with strike(f"while files are read {parallel} at once", parallel) as (reader, server):
            reader.expect("ten")
            server.send_signal(signal.SIGSTOP)
            reader.expect_deadline("reading")
            reader.expect_deadline("opening")  # going on begins with the file that the mark is in
            server.send_signal(signal.SIGCONT)
            reader.expect_the_rest(records, remote=True)
    with strike("before files are listed") as (reader, server):
        server.send_signal(signal.SIGSTOP)
        reader.expect_deadline("listing the files")
        server.send_signal(signal.SIGCONT)
        reader.expect_the_rest(records, remote=True)
    with strike("for ever") as (reader, server):
        reader.expect("ten")
        server.kill()
        server.wait()
        text, _ = reader.expect("error ")
        if not text.startswith("error DATA_LOSS: ") or "a.tfrecord" not in text:
            raise harness.Bad(text)
    with tally.strike("a file of this machine"):
        reader = Reader(program, file, 1)
        try:
            reader.expect("ten")
            reader.expect_the_rest(records, remote=False)
        finally:
            reader.close()
    return tally.report(at_least=5)


if __name__ == "__main__":
    harness.in_own_mounts()
    harness.run(main)
