"""Workers on another machine, by `--tx ssh=…`: an sshd of the test's own on loopback, with keys that are thrown away."""

from __future__ import annotations

import json
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from conftest import CONFTEST
from shell_agent import read_runs

from pytest_caliper.running.carrying import MOST_CHARACTERS, pack, unpack
from pytest_caliper.runs.records import AttemptKey, AttemptRecord

SSHD = shutil.which("sshd") or next(
    (path for path in ("/usr/sbin/sshd", "/usr/local/sbin/sshd") if os.access(path, os.X_OK)), None
)

SCRIPT = """
[ -z "$OWN_NETWORK" ] || ip link set lo up || exit 90
"$SSHD" -D -e -f sshd_config 2>sshd.log &
sshd=$!
trap 'kill $sshd' EXIT
n=0
until ssh -F ssh_config caliper-loopback true 2>>ssh.log; do
    n=$((n + 1)); [ $n -lt 100 ] || exit 91
    kill -0 $sshd || exit 92
    sleep 0.1
done
cd "$CHECKOUT" && "$@"
"""
"""Starts sshd, waits for it, runs a command beside it."""


def own_network() -> bool:
    """Whether a process can have a network of its own, that nobody else can reach."""
    tried = ["unshare", "-n", "ip", "link", "set", "lo", "up"]
    return (
        bool(shutil.which("unshare") and shutil.which("ip"))
        and not subprocess.run(tried, capture_output=True, check=False).returncode
    )


@pytest.fixture
def remote(project, tmp_path_factory):
    """A second checkout of the project, and `remote.run(*arguments)`: pytest beside an sshd that leads there."""
    if SSHD is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs sshd and ssh (openssh-server, openssh-client)")
    place = tmp_path_factory.mktemp("ssh")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], check=True)
    isolated = own_network()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd insists on it when it runs as root
    user = pwd.getpwuid(os.getuid()).pw_name
    (place / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {place}/host\nAuthorizedKeysFile {place}/user.pub\nPidFile none\n"
        f"StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nAllowUsers {user}\n"
    )
    (place / "ssh_config").write_text(
        f"Host caliper-loopback\nHostName 127.0.0.1\nPort {port}\nUser {user}\nIdentityFile {place}/user\nIdentitiesOnly yes\n"
        f"UserKnownHostsFile {place}/known\nStrictHostKeyChecking no\nBatchMode yes\nConnectTimeout 10\nLogLevel ERROR\n"
    )
    checkout = place / "elsewhere" / "checkout"

    def run(*arguments):
        if not checkout.exists():
            shutil.copytree(project.path, checkout)
        env = {**os.environ, "SSHD": SSHD, "CHECKOUT": str(project.path), "OWN_NETWORK": "1" if isolated else ""}
        prefix = ["unshare", "-n"] if isolated else []
        command = [*prefix, "sh", "-c", SCRIPT, "sh", sys.executable, "-m", "pytest", "--dist", "load", "--caliper", *arguments]
        out = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert out.returncode not in {90, 91, 92}, (place / "sshd.log").read_text() + (place / "ssh.log").read_text()
        return out

    tx = f"ssh=caliper-loopback//ssh_config={place}/ssh_config//python={sys.executable}//chdir={checkout}//env:REMOTE=far"
    return SimpleNamespace(run=run, tx=tx, checkout=checkout)


@pytest.fixture
def suite(project):
    """Specs that are found by `testpaths`; the agent can tell on which side it runs."""
    (project.path / "conftest.py").write_text(
        CONFTEST
        + """
import os
_command = ShellAgent.agent_command
def _told(self, plan, workspace, cli):
    command = _command(self, plan, workspace, cli)
    command.env["SIDE"] = os.environ.get("REMOTE", "near")
    return command
ShellAgent.agent_command = _told
"""
    )
    ini = project.path / "pytest.ini"
    ini.write_text(ini.read_text() + "\ntestpaths = evals\n")
    (project.path / "evals").mkdir()
    shutil.move(project.path / "skill", project.path / "evals" / "skill")

    def spec(text):
        (project.path / "evals" / "demo.eval.yaml").write_text("skill:\n  path: ./skill\n" + text)

    return spec


SPEC = """
tasks:
  - name: Says where it is
    prompt: echo "$SIDE"; echo '!tokens 7'
    assert: assert attempt.answer
  - name: Fails
    prompt: echo no
    assert: assert attempt.answer == 'yes'
  - name: Is judged
    prompt: echo ok
    expect: it works
"""


def outcomes(run):
    return {task["task_name"]: [attempt["outcome"] for attempt in task["attempts"]] for task in run["task_results"]}


def answers(run, name):
    return [attempt["output"] for task in run["task_results"] if task["task_name"] == name for attempt in task["attempts"]]


def test_attempts_run_there_and_everything_is_kept_here(project, remote, suite):
    suite(SPEC)
    out = remote.run("--caliper-k=2", "--tx", remote.tx)
    assert out.returncode == pytest.ExitCode.TESTS_FAILED, out.stdout + out.stderr
    (run,) = read_runs(project.path / "results")
    assert outcomes(run) == {"Says where it is": ["pass"] * 2, "Fails": ["task_fail"] * 2, "Is judged": ["pass"] * 2}
    assert answers(run, "Says where it is") == ["far", "far"]
    assert not run["run"]["interrupted"]
    for task in run["task_results"]:
        for attempt in task["attempts"]:
            assert [turn["role"] for turn in attempt["transcript"]] == ["user", "assistant"]
            assert attempt["transcript_truncated"] is False
    assert str(remote.checkout) not in json.dumps(run)
    assert "evals/demo.eval.yaml:8: assert 'no' == 'yes'" in out.stdout
    assert not (remote.checkout / "results").exists(), "nothing of the run is left there"
    assert not list((project.path / "results").rglob("*.jsonl"))


def test_near_and_far_workers_share_the_work(project, remote, suite):
    suite(SPEC.replace('echo "$SIDE"', 'sleep 1; echo "$SIDE"'))
    out = remote.run("--caliper-k=6", "--tx", "2*popen", "--tx", remote.tx, "-k", "where or judged")
    assert out.returncode == pytest.ExitCode.OK, out.stdout + out.stderr
    (run,) = read_runs(project.path / "results")
    assert outcomes(run) == {"Says where it is": ["pass"] * 6, "Is judged": ["pass"] * 6}
    assert set(answers(run, "Says where it is")) <= {"near", "far"}
    assert "near" in answers(run, "Says where it is")
    assert all(attempt["transcript"] for task in run["task_results"] for attempt in task["attempts"])


def test_the_recipe_of_the_documentation_works(project, remote, suite):
    page = (Path(__file__).resolve().parents[2] / "docs" / "xdist.md").read_text()
    (recipe,) = [shlex.split(line) for line in page.splitlines() if line.startswith("pytest --caliper --dist load --tx")]
    program, *arguments, tx = recipe
    assert program == "pytest"
    parts = dict(part.partition("=")[::2] for part in tx.split("//"))
    assert list(parts) == ["ssh", "python", "chdir", "env:ANTHROPIC_API_KEY"]
    suite(SPEC)
    given = remote.tx.replace("env:REMOTE", "env:ANTHROPIC_API_KEY")
    out = remote.run(*arguments, given, "--caliper-k=1", "-k", "judged")
    assert out.returncode == pytest.ExitCode.OK, out.stdout + out.stderr


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_what_stops_the_session_stops_attempts_there(project, remote, suite):
    place = project.mkdir("place")
    forever = f"echo x > {place}/$$; sleep 600"
    wait = f"while [ $(ls {place} | wc -l) -lt 1 ]; do sleep 0.05; done"
    suite(
        "tasks:\n"
        f"  - {{name: A forever, prompt: '[ $SIDE = near ] && {wait} && echo no && exit; {forever}', assert: assert attempt.answer == 'yes'}}\n"
        f"  - {{name: B forever, prompt: '[ $SIDE = near ] && {wait} && echo no && exit; {forever}', assert: assert attempt.answer == 'yes'}}\n"
    )
    began = time.monotonic()
    out = remote.run("--caliper-k=1", "--caliper-timeout=500", "-x", "--tx", "popen", "--tx", remote.tx)
    assert time.monotonic() - began < 250
    assert out.returncode == pytest.ExitCode.INTERRUPTED, out.stdout + out.stderr
    (agent,) = [int(path.name) for path in place.iterdir()]
    assert not alive(agent)
    (run,) = read_runs(project.path / "results")
    assert sorted(outcome for some in outcomes(run).values() for outcome in some) == ["task_fail"]


def test_a_worker_that_dies_there_is_replaced_there(project, remote, suite):
    place = project.mkdir("place")
    suite(
        "tasks:\n  - name: Deadly\n    assert: assert attempt.answer == 'far'\n"
        f"    prompt: 'if mkdir {place}/died 2>/dev/null; then kill -9 $PPID; sleep 600; fi; echo $SIDE'\n"
    )
    out = remote.run("--caliper-k=1", "--tx", remote.tx)
    assert out.returncode == pytest.ExitCode.OK, out.stdout + out.stderr
    (run,) = read_runs(project.path / "results")
    assert outcomes(run) == {"Deadly": ["pass"]}
    assert run["task_results"][0]["attempts"][0]["retries"] == 1


CUT = """
p=$PPID; while [ "$(cat /proc/$p/comm)" != sshd ]; do p=$(sed "s/.*) . //; s/ .*//" /proc/$p/stat); done
echo $$ > {dir}/agent; kill -9 $p; sleep 600
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds its sshd in /proc")
def test_a_connection_that_breaks_ends_the_attempt_there_and_it_runs_again(project, remote, suite):
    place = project.mkdir("place")
    prompt = f"if mkdir {place}/cut 2>/dev/null; then {CUT.format(dir=place)} fi; echo $SIDE"
    suite(f"tasks:\n  - {{name: Cut off, prompt: {json.dumps(prompt)}, assert: assert attempt.answer == 'far'}}\n")
    out = remote.run("--caliper-k=1", "--tx", remote.tx)
    assert out.returncode == pytest.ExitCode.OK, out.stdout + out.stderr
    agent = int((place / "agent").read_text())
    end = time.monotonic() + 60
    while alive(agent):
        assert time.monotonic() < end, "the agent lives on"
        time.sleep(0.05)
    (run,) = read_runs(project.path / "results")
    assert run["task_results"][0]["attempts"][0]["retries"] == 1


RECORD = AttemptRecord(
    key=AttemptKey(spec="/a.eval.yaml", task_id="task-001", arm="skill", attempt=1),
    task_name="A",
    outcome="pass",
    reason=None,
    output="",
    duration_seconds=1.0,
    started=0.0,
    wall_seconds=1.0,
)


@pytest.mark.parametrize(("turns", "whole"), [(3, True), (12, False)])
def test_a_transcript_travels_bounded_and_says_when_it_was_cut(tmp_path, turns, whole):
    source, report = tmp_path / "there.jsonl", SimpleNamespace()
    lines = [json.dumps({"role": "assistant", "content": str(n) * (MOST_CHARACTERS // 10)}) + "\n" for n in range(turns)]
    source.write_text("".join(lines))
    sent = pack(report, replace(RECORD, transcript_path=str(source)))
    assert sent.transcript_path is None
    assert not source.exists()
    kept = unpack(report, sent, tmp_path / "parts", "ssh/../gw0")
    assert not vars(report), "reports are kept to the end, transcripts need not be"
    assert Path(kept.transcript_path).parent == tmp_path / "parts"
    text = Path(kept.transcript_path).read_text().splitlines(keepends=True)
    assert text == lines[: len(text)]
    assert (len(text) == turns, kept.transcript_truncated) == (whole, not whole)


def test_where_a_transcript_cannot_be_written_the_record_says_so(tmp_path):
    (tmp_path / "parts").write_text("a file")
    kept = unpack(SimpleNamespace(caliper_transcript="{}\n"), RECORD, tmp_path / "parts", "gw0")
    assert (kept.transcript_path, kept.transcript_truncated) == (None, True)
    assert unpack(SimpleNamespace(), RECORD, tmp_path, "gw0") == RECORD
