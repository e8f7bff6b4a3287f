"""Absolute paths in tasks, and files that a spec names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_caliper.spec.files import files_named, resolve
from pytest_caliper.spec.model import Spec, Task
from pytest_caliper.spec.paths import absolute_paths


def paths(prompt: str, setup: str | None = None, cleanup: str | None = None) -> tuple[str, ...]:
    return absolute_paths(Task(task_id="task-001", name="a", prompt=prompt, line=0, setup=setup, cleanup=cleanup))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Generate a config at /tmp/app.config.json with a 'port'.", ["/tmp/app.config.json"]),
        ("/tmp/x.txt holds it.", ["/tmp/x.txt"]),
        ("Look at /tmp/x.txt.", ["/tmp/x.txt"]),
        ("Is it in /srv/data/?", ["/srv/data"]),
        ("Save (as '/tmp/a') or \"/tmp/b\" or `/tmp/c`, [/tmp/d]; “/tmp/e”", ["/tmp/a", "/tmp/b", "/tmp/c", "/tmp/d", "/tmp/e"]),
        ('Path("/tmp/out.txt").read_text()', ["/tmp/out.txt"]),
        (
            "rm -f /tmp/a && cp x /tmp/b>/var/log/c 2>/tmp/d|tee --out=/tmp/e",
            ["/tmp/a", "/tmp/b", "/tmp/d", "/tmp/e", "/var/log/c"],
        ),
        ("cc -I/tmp/inc/x -o/tmp/y/z", ["/tmp/inc/x", "/tmp/y/z"]),
        ("docker -v /srv/a:/data/b", ["/data/b", "/srv/a"]),
        ("open file:///tmp/a.html", ["/tmp/a.html"]),
        ("写到/tmp/a.json。", ["/tmp/a.json"]),
        ("rm /tmp/my\\ file", ["/tmp/my file"]),
        (
            "touch /tmp/${NAME}.txt /tmp/$X /tmp/{a,b} /tmp/$(id -u).json",
            ["/tmp/$(id -u).json", "/tmp/$X", "/tmp/${NAME}.txt", "/tmp/{a,b}"],
        ),
        ("rm -rf /tmp/foo-*", ["/tmp/foo-*"]),
        ("/Users/me/notes.md and /home/me/.ssh", ["/Users/me/notes.md", "/home/me/.ssh"]),
        ("/library/x /opt/tool/x", ["/library/x", "/opt/tool/x"]),
        ("see https://example.com/a/b/c and http://h:8080/x/y, ssh://[::1]/a/b", []),
        ("and/or, s/a/b/, 1/2/3, w/o", []),
        ("//comments are //not/paths", []),
        ("/grill-skill ./my-skill/SKILL.md", []),
        ("/commit", []),
        ("</div><br />", []),
        ("$CALIPER_WORKDIR/x ${CALIPER_WORKDIR}/x/y \"$CALIPER_WORKDIR\"/x/y '~'/a/b $(pwd)/a/b `pwd`/a/b", []),
        ("~/.x/y ./x/y ../x/y */x/y @/components/Button #/definitions/Foo", []),
        ("/dev/null /proc/self/fd /sys/x /bin/sh /sbin/x /usr/bin/env /lib/x /lib64/x /opt/homebrew/bin/x", []),
        ("#!/usr/bin/env bash", []),
        ("GET /api/v1/users", []),
        ("/tmp/", []),
        ("", []),
        ("/" * 100_000, []),
    ],
)
def test_absolute_paths(text: str, found: list[str]) -> None:
    assert paths(text) == tuple(found)


def test_prompt_setup_and_cleanup_are_read_once_each() -> None:
    assert paths("see /tmp/b/x", "touch /tmp/a/x /tmp/b/x", "rm /tmp/c/x") == ("/tmp/a/x", "/tmp/b/x", "/tmp/c/x")


def test_files_that_a_spec_names(load: Callable[[str | bytes], Spec], project: Path) -> None:
    (project / "real.py").write_text("assert x\n")
    (project / "linked.py").symlink_to("real.py")
    spec = load(
        """\
        skill: SKILL.md
        mcp:
          a: {command: ./servers/a, args: [--config, ../b.json, c.py, -x./d]}
          b: {type: http, url: https://x}
        tasks:
          - {name: a, prompt: b, assert: check.py}
          - {name: b, prompt: b, assert: linked.py}
          - {name: c, prompt: b, assert: assert x}
          - {name: d, prompt: b, expect: c}
        """
    )
    expected = {"demo.eval.yaml", "servers/a", "check.py", "linked.py", "real.py"}
    assert files_named(spec) == {project / name for name in expected} | {project.parent / "b.json"}


@pytest.mark.parametrize(
    ("text", "path"),
    [("a", "a"), ("./a/./b/", "a/b"), ("../a", "../a"), ("a/../b", "b"), (".", ".")],
)
def test_resolve(tmp_path: Path, text: str, path: str) -> None:
    here = (tmp_path / "here").resolve()
    here.mkdir()
    wanted = here.parent / path.removeprefix("../") if path.startswith("..") else here / path
    assert resolve(here, text) == wanted
    assert resolve(here, "/x/y") == Path("/x/y")
