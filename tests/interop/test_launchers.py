"""The same program under real launchers: `cohort launch`, Open MPI, torchrun and a Slurm of our own."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

BIN = pathlib.Path(os.environ["COHORT_PROBE"]).parent
TOUR = str(BIN / "cluster_tour")
MULTI_WORKER = str(BIN / "multi_worker")
TASKS = [f"/job:worker/task:{i}" for i in range(3)]


def run(command, timeout=90, **environment):
    """What the command wrote to stdout and stderr, and its exit code."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout, env={**os.environ, **environment})
    return done.stdout, done.returncode


def check_tour(output):
    assert f"{TASKS[0]}: the cluster has 3 tasks" in output, output
    for i, task in enumerate(TASKS):
        following = TASKS[(i + 1) % 3]
        assert f"{task}: reads 'hello from {following}'" in output, output
        total = sum(range(i + 4))
        assert f"{task}: {following} computes {{'sum': {total}, 'largest': {i + 3}}}" in output, output


def check_input(output):
    """What two workers in step read, by the example multi_worker."""
    for worker, pieces in enumerate(("[0,1] | [4,5] | [8,9]", "[2,3] | [6,7] | [10,11]")):
        assert (f"DATA, 1 file of 12, 2 workers of 1 replica, batch 4, worker {worker}: {pieces}"
                in output), output


def test_cohort_launch_names_the_lost_worker_within_a_second():
    output, code = run([str(BIN / "cohort"), "launch", "--workers", "3", "--", TOUR])
    check_tour(output)
    lost = re.findall(r"(/job:worker/task:[01]): after (\d+) ms: .*lost /job:worker/task:2", output)
    assert {task for task, _ in lost} == set(TASKS[:2]), output
    assert all(int(ms) < 1000 for _, ms in lost), output
    assert code == 128 + signal.SIGKILL
    assert "worker:2  SIGKILL" in output


def test_a_wrong_value_of_an_option_is_an_error_that_names_it():
    output, code = run([TOUR, "--metrics-port", "many"])
    assert "--metrics-port" in output, output
    assert code == 64, output


def test_open_mpi():
    output, code = run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", TOUR,
                        "--keep-all"])
    check_tour(output)
    assert code == 0, output


def test_torchrun():
    # Debian's torchrun fails without --redirects and --tee under Python 3.11.
    output, code = run(["/usr/bin/python3", "-m", "torch.distributed.run", "--nproc_per_node", "3",
                        "--redirects", "1", "--tee", "1", "--no_python", TOUR, "--keep-all"])
    check_tour(output)
    assert code == 0, output


@pytest.mark.parametrize("launcher", [
    ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"],
    ["/usr/bin/python3", "-m", "torch.distributed.run", "--nproc_per_node", "2", "--redirects", "1",
     "--tee", "1", "--no_python"]], ids=["mpirun", "torchrun"])
def test_workers_in_step(launcher):
    output, code = run([*launcher, MULTI_WORKER, "--input"])
    check_input(output)
    assert code == 0, output


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Slurm:
    """One host's slurmctld and slurmd, with a munged of their own, in a folder of the test's.

    The node is called localhost, so that tasks without certificates reach each other by its name on
    hosts whose own name is no loopback address.
    """

    def __init__(self, folder):
        self.host = socket.gethostname().split(".")[0]
        self.conf = folder / "slurm.conf"
        self.processes = []
        self.logs = folder
        control, daemon = free_ports(2)
        for name in ("ctld", "d"):
            (folder / name).mkdir()
        self.conf.write_text(f"""
ClusterName=test
SlurmctldHost={self.host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/d
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/d.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmctldPort={control}
SlurmdPort={daemon}
NodeName=localhost NodeHostname={self.host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=debug Nodes=localhost Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
SlurmdParameters=config_overrides
""")

    def start(self):
        pathlib.Path("/run/munge").mkdir(exist_ok=True)
        shutil.chown("/run/munge", "munge", "munge")
        if not pathlib.Path("/run/munge/munge.socket.2").exists():
            self._spawn(["runuser", "-u", "munge", "--", "munged", "--foreground"])
        self._wait("munged", lambda: run(["munge", "-n"])[1] == 0)
        self._spawn(["slurmctld", "-c", "-D"])
        self._spawn(["slurmd", "-D", "-N", "localhost"])
        self._wait("a node", lambda: run(["sinfo", "-h", "-o", "%T"], SLURM_CONF=str(self.conf))[0]
                   .strip() == "idle")

    def _spawn(self, command):
        log = open(self.logs / f"{len(self.processes)}.log", "w")
        self.processes.append(subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, "SLURM_CONF": str(self.conf)}))

    def _wait(self, what, condition):
        deadline = time.monotonic() + 60
        while not condition():
            logs = "\n".join(path.read_text() for path in self.logs.glob("*.log"))
            assert time.monotonic() < deadline, f"Slurm: no {what} after a minute\n{logs}"
            time.sleep(0.2)

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(30)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate for each task, as on hosts that others reach."""
    folder = tmp_path_factory.mktemp("certificates") / "tour"
    output, code = run([str(BIN / "cohort"), "cluster", "certificates", "--cluster", "tour",
                        "--workers", "3", "--out", str(folder)])
    assert code == 0, output
    return folder


def srun(slurm, certificates, *arguments, program=TOUR, tasks=3):
    """The tour under srun."""
    return run(["srun", "-n", str(tasks), "--overcommit", "--kill-on-bad-exit=0", program, *arguments],
               SLURM_CONF=str(slurm.conf), COHORT_CERTIFICATES=str(certificates))


def test_slurm(slurm, certificates):
    output, code = srun(slurm, certificates, "--keep-all")
    check_tour(output)
    assert code == 0, output


def test_slurm_of_workers_in_step(slurm, certificates):
    output, code = srun(slurm, certificates, "--input", program=MULTI_WORKER, tasks=2)
    check_input(output)
    assert code == 0, output


def test_two_jobs_of_slurm_on_one_host(slurm, certificates):
    """Which would meet at 8888."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        both = [pool.submit(srun, slurm, certificates, "--keep-all") for _ in range(2)]
        for each in both:
            output, code = each.result()
            check_tour(output)
            assert code == 0, output


def test_slurm_names_the_lost_worker(slurm, certificates):
    output, code = srun(slurm, certificates)
    check_tour(output)
    lost = re.findall(r"(/job:worker/task:[01]): after (\d+) ms: .*lost /job:worker/task:2", output)
    assert {task for task, _ in lost} == set(TASKS[:2]), output
    assert code != 0
