"""Run a command where only loopback exists: `python netns.py -- CMD...`.

A new network namespace (Linux) with `lo` up and nothing else: whatever the command tries to reach, no request leaves the machine.
Uses the system calls directly, so neither `unshare` nor `ip` is needed. As an ordinary user the namespace comes with a user
namespace that maps only that user (user_namespaces(7)).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000  # <linux/sched.h>
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40  # <linux/sockios.h>, <linux/if.h>


def enter() -> None:
    """Move this process into a namespace of its own. Raises OSError when the kernel refuses."""
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNET if uid == 0 else CLONE_NEWNET | CLONE_NEWUSER
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"unshare: {os.strerror(error)}")
    if uid != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", IFF_UP | IFF_RUNNING, b""))


def unavailable() -> str | None:
    """Why no namespace can be had here; None when one can."""
    if not sys.platform.startswith("linux"):
        return "network namespaces need Linux"
    probe = subprocess.run([sys.executable, __file__, "--", "true"], capture_output=True, text=True, timeout=60, check=False)
    return None if probe.returncode == 0 else f"no network namespace here: {probe.stderr.strip().splitlines()[-1:]}"


def main(arguments: list[str]) -> None:
    if arguments[:1] != ["--"] or len(arguments) < 2:
        sys.exit("usage: python netns.py -- CMD...")
    try:
        enter()
    except OSError as error:
        sys.exit(str(error))
    os.execvp(arguments[1], arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
