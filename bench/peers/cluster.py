"""Starts the tasks of a cluster on this host, each told by TF_CONFIG which one it is."""

import json
import os
import socket
import subprocess


def addresses(count):
    """Of ports that are free now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    free = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return free


def start(jobs, command, pinned=False, **options):
    """{(job, index): Popen} of `command` for each task; jobs: {name: tasks}. Pinned: each on a core of
    its own, as `cohort launch` does. Options: Popen's, by job where they are a dict of jobs."""
    spec = {job: addresses(count) for job, count in jobs.items()}
    cores = sorted(os.sched_getaffinity(0))
    tasks = {}
    for job, count in jobs.items():
        for index in range(count):
            config = {"cluster": spec, "task": {"type": job, "index": index}}
            pin = ["taskset", "--cpu-list", str(cores[len(tasks) % len(cores)])] if pinned else []
            tasks[job, index] = subprocess.Popen(
                [*pin, *command], text=True, env={**os.environ, "TF_CONFIG": json.dumps(config)},
                **{name: value[job] if isinstance(value, dict) else value
                   for name, value in options.items()})
    return tasks


def end(tasks, seconds=10):
    """Waits for tasks that were told to end; kills those that do not."""
    for task in tasks:
        try:
            task.wait(seconds)
        except subprocess.TimeoutExpired:
            task.kill()
            task.wait()
