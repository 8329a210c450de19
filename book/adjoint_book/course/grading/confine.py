"""Runs a program so that it can do little harm: `python confine.py '{"folder": ..., ...}'`.

This file is run by its path, with Python's own library only. It takes what the system offers, says
on the descriptor `report` what it got, and starts the program:

- processes of its own, which all end with it, no network and no shared memory (Linux namespaces);
- no file can be written outside its folder, and few can be read (Landlock), and no right can be
  gained by running another program;
- another user, if this one is root, and in any case none of root's rights;
- limits on memory, processor time, processes and the size of files.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable, Iterable

NEWUSER, NEWNET, NEWPID, NEWIPC = 0x10000000, 0x40000000, 0x20000000, 0x08000000
PDEATHSIG, CAPBSET_DROP, NO_NEW_PRIVS = 1, 24, 38  # of prctl
LAST_RIGHT = 63  # of root; those that a system does not know are refused, which does no harm
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # Landlock, on every processor
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
ALL_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many, by version; 16 from 5 on
TCP = 3  # to bind and to connect, from version 4 on
SCOPES = 3  # signals and abstract sockets, from version 6 on
NOBODY = 65534

_libc = ctypes.CDLL(None, use_errno=True)


def confine(job: dict) -> None:
    """Take the measures, report them, and run the program; never returns."""
    held: dict[str, bool] = {"user": False, "files": False}
    _prctl(PDEATHSIG, signal.SIGKILL)
    held |= _namespaces()
    _end_with(os.fork())  # the child is the first process of its namespace
    _prctl(PDEATHSIG, signal.SIGKILL)
    _end_with(os.fork())  # and this one is killed with it
    os.setsid()
    os.chdir(job["folder"])
    if os.getuid() == 0 and _may_become(job["uid"], job["command"][0], job["readable"]):
        os.chown(".", job["uid"], -1)
        _become(job["uid"])
        _prctl(PDEATHSIG, signal.SIGKILL)  # which a change of user takes back
        held["user"] = True
    for right in range(LAST_RIGHT + 1):
        _prctl(CAPBSET_DROP, right)  # so that it is without them if it has to stay root
    held |= _landlock(job["folder"], job["readable"], job["listed"])
    _limit(job)
    os.write(job["report"], json.dumps(held).encode() + b"\n")
    for number, end in enumerate(
        [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in job["channel"]], 3
    ):
        os.dup2(end, number)  # at 3 and 4, and nothing beside them
    os.closerange(5, 256)
    os.execve(job["command"][0], job["command"], job["environment"])


def _end_with(child: int) -> None:
    """In the parent: wait for the child and end as it did. In the child: go on."""
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 255)


def _namespaces() -> dict[str, bool]:
    """Enter namespaces of its own, if a child that tried it could."""
    granted = sys.platform.startswith("linux") and _tried(_enter)
    if granted:
        _enter()
    return {"network": granted, "processes": granted}


def _enter() -> None:
    user = 0 if os.getuid() == 0 else NEWUSER
    uid, gid = os.getuid(), os.getgid()
    if _libc.unshare(user | NEWNET | NEWPID | NEWIPC):
        raise OSError(ctypes.get_errno(), "unshare")
    if user:
        maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)


def _tried(action: Callable[[], None]) -> bool:
    """Whether a child of this process could do it."""
    child = os.fork()
    if not child:
        try:
            action()
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _may_become(uid: int, program: str, readable: Iterable[str]) -> bool:
    """Whether that user could read what the program needs."""

    def look() -> None:
        _become(uid)
        for path in [program, *filter(os.path.isdir, readable)]:
            if not os.access(path, os.R_OK | os.X_OK):
                raise PermissionError(path)

    return _tried(look)


def _become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _landlock(folder: str, readable: Iterable[str], listed: Iterable[str]) -> dict[str, bool]:
    """Let files be written in this folder only, and be read in these only."""
    if not sys.platform.startswith("linux"):
        return {"files": False}
    version = _libc.syscall(CREATE_RULESET, None, 0, 1)
    if version < 1:
        return {"files": False}
    rights = (1 << ALL_FILE_RIGHTS.get(version, 16)) - 1
    net, scopes = (TCP if version >= 4 else 0), (SCOPES if version >= 6 else 0)
    attributes = struct.pack("=QQQ", rights, net, scopes)[: 24 if scopes else 16 if net else 8]
    rules = _libc.syscall(CREATE_RULESET, attributes, len(attributes), 0)
    if rules < 0:
        return {"files": False}
    read = EXECUTE | READ_FILE | READ_DIR
    _allow(rules, folder, rights)
    _allow(rules, "/dev/null", READ_FILE | WRITE_FILE)
    for path in listed:
        _allow(rules, path, READ_DIR)
    for path in readable:
        _allow(rules, path, read if os.path.isdir(path) else EXECUTE | READ_FILE)
    _prctl(NO_NEW_PRIVS, 1)
    return {"files": _libc.syscall(RESTRICT_SELF, rules, 0) == 0}


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there need not be read
    _libc.syscall(ADD_RULE, rules, 1, struct.pack("=Qi", rights, opened), 0)
    os.close(opened)


def _limit(job: dict) -> None:
    limits = {
        "RLIMIT_DATA": job["memory"],
        "RLIMIT_CPU": job["seconds"],
        "RLIMIT_FSIZE": job["file"],
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": 256,
        "RLIMIT_NPROC": _running() + job["processes"],
    }
    for name, most in limits.items():
        number = getattr(resource, name, None)
        if number is not None:
            try:
                resource.setrlimit(number, (most, most))
            except (OSError, ValueError):
                continue  # a lower limit stands already


def _running() -> int:
    """How many threads this user runs by now, wherever that can be counted."""
    if not os.path.isdir("/proc/self/task"):
        return 4096
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue  # it has ended meanwhile
    return count


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        _libc.prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    confine(json.loads(sys.argv[1]))
