"""What a call between two processes of one host costs: Cohort's over gRPC and by the short way that
tasks of one host have, gRPC's own, a raw unix socket.

Works: empty (nothing there, nothing back), bulk (64 MB there, nothing back); each with and without
mutual TLS. gRPC's own calls carry byte buffers and take part by a completion queue or by callbacks,
whichever is quicker. The raw unix socket has no identity, limit or deadline: it is the limit. Figures,
ratios and the control: as in bench/step.py.
"""

import tempfile

import harness
import report
from report import Comparison, Work

# An empty call may take 1.3 times as long as gRPC's own.
EMPTY = 1 / 1.3


def microseconds(calls_a_second):
    return f"{1e6 / calls_a_second:,.1f} us"


def milliseconds(calls_a_second):
    return f"{1e3 / calls_a_second:,.2f} ms"


WORKS = {
    "empty": Work("empty call", [
        Comparison("cohort", {"grpc": EMPTY, "socket": None}),
        Comparison("cohort_tls", {"grpc_tls": EMPTY}),
        Comparison("cohort_host", {"cohort": None, "socket": None})], text=microseconds),
    "bulk": Work("64 MB", [
        Comparison("cohort", {"grpc": None, "socket": None}),
        Comparison("cohort_tls", {"grpc_tls": None}),
        Comparison("cohort_host", {"cohort": None, "socket": None})], text=milliseconds, turns=2),
}
TITLES = {"cohort": "Cohort", "cohort_tls": "Cohort, TLS", "cohort_host": "Cohort, same host",
          "grpc": "gRPC", "grpc_tls": "gRPC, TLS", "socket": "unix socket"}


def make_sides(name, worker):
    def candidates(side):
        if not side.startswith("grpc"):
            return [("", worker, f"{side} {name}")]
        return [(kind, worker, f"{side}_{kind} {name}") for kind in ("queue", "callback")]

    return {side: harness.Side(TITLES[side], candidates(side)) for side in WORKS[name].names()}


def main():
    options = report.parse_options(__doc__, WORKS)
    with tempfile.TemporaryDirectory() as directory, \
            harness.Worker(options.program, directory) as worker:
        report.run(WORKS, options, lambda name: make_sides(name, worker), lambda: ["gRPC 1.51"])


main()
