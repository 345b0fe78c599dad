"""A program under `cohort launch`, of whose tasks a test kills some."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

TIMEOUT = 100


def without_chief(output):
    """What was printed, without the name of the task in front of the chief's lines."""
    return re.sub(r"^\[chief:0\] ", "", output, flags=re.MULTILINE)


class LaunchedJob:
    """Its output grows in a file, which is opened anew to be read: a read through the file that the tasks write to
    would move the place where they write."""

    def __init__(self, command):
        self.log = tempfile.NamedTemporaryFile("wb")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def output(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as log:
            return without_chief(log.read())

    def wait_for(self, text):
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            output = self.output()
            if re.search(text, output):
                return
            if self.process.poll() is not None:
                sys.exit(f"it ended with {self.process.returncode} before '{text}':\n{output}")
            time.sleep(0.02)
        sys.exit(f"'{text}' did not come:\n{self.output()}")

    def tasks(self):
        """The launcher's children by (job, index), from their TF_CONFIG."""
        found = {}
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8") as stat:
                    parent = int(stat.read().rpartition(")")[2].split()[1])
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    config = re.search(rb"(?:^|\0)TF_CONFIG=([^\0]*)", environ.read())
            except (OSError, ValueError, IndexError):
                continue
            if parent == self.process.pid and config:
                task = json.loads(config[1])["task"]
                found[task["type"], int(task["index"])] = int(entry)
        return found

    def kill(self, job, index):
        os.kill(self.tasks()[job, index], signal.SIGKILL)

    def finish(self):
        """The output of the job, which must end well."""
        try:
            self.process.wait(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            sys.exit(f"it did not end:\n{self.output()}")
        if self.process.returncode != 0:
            sys.exit(f"it ended with {self.process.returncode}:\n{self.output()}")
        return self.output()
