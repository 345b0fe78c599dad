"""The C++ probe as a Python function."""

import json
import os
import subprocess
import threading


class Probe:
    """probe(command, request) -> the answer. A command's process lives on between its requests."""

    def __init__(self, program):
        self._program = program
        self._processes = {}

    def __call__(self, command, request):
        process = self._processes.get(command)
        if process is None or process.poll() is not None:
            process = self._processes[command] = subprocess.Popen(
                [self._program, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        # One that hangs is ended, which the empty line then shows.
        deadline = threading.Timer(60, process.kill)
        deadline.start()
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        finally:
            deadline.cancel()
        assert line, f"interop_probe {command} ended with {process.wait()}, see its output above"
        answer = json.loads(line)
        assert "failed" not in answer, answer["failed"]
        return answer

    def close(self, command):
        """Ends a command's process; the next request starts a new one."""
        process = self._processes.pop(command)
        process.stdin.close()
        assert process.wait(60) == 0

    def close_all(self):
        for command in list(self._processes):
            self.close(command)


def probe_of_session():
    """For the fixture of that name: yields the probe, ends its processes."""
    program = os.environ.get("COHORT_PROBE")
    assert program, "COHORT_PROBE must name the interop_probe program; run the script that sets it"
    probe = Probe(program)
    yield probe
    probe.close_all()
