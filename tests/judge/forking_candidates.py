"""Candidates of scripts by the hundred: a process that has torch forks, and each fork runs grove-candidate-python from
its first line, as the program that it is. Loading torch takes a second or two, and most evaluations of tests a tenth of
that.

    forking_candidates.py SCRIPT THREADS     on descriptor 3 it is asked, a packet each:
    "start", with the candidate's descriptor and its stderr    answered by the process's number
    the number of an ended process                             answered by its exit code, negative for a signal"""

import array
import importlib.machinery
import importlib.util
import os
import socket
import sys
import types


def become(script, threads, candidate_fd, errors_fd):
    os.dup2(candidate_fd, 3)
    os.dup2(errors_fd, 2)
    os.closerange(4, 256)
    sys.argv = [script, "--fd", "3", "--device", "cpu", "--threads", threads]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    main.__file__ = script
    with open(script, encoding="utf-8") as file:
        exec(compile(file.read(), script, "exec"), main.__dict__)  # ends the process


def serve(script, threads):
    asked = socket.socket(fileno=3)
    # What torch's threads are to be is read when it is loaded.
    loader = importlib.machinery.SourceFileLoader("grove_candidate", script)
    candidate = importlib.util.module_from_spec(importlib.util.spec_from_loader("grove_candidate", loader))
    loader.exec_module(candidate)
    candidate.settle_threads("cpu", int(threads))
    import torch  # noqa: F401
    while True:
        data, control, _, _ = asked.recvmsg(64, socket.CMSG_SPACE(8))
        if not data:
            return
        if data != b"start":
            asked.send(str(os.waitstatus_to_exitcode(os.waitpid(int(data), 0)[1])).encode())
            continue
        fds = array.array("i", control[0][2])
        process = os.fork()
        if process == 0:
            asked.detach()
            become(script, threads, *fds)
            os._exit(1)
        for fd in fds:
            os.close(fd)
        asked.send(str(process).encode())


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    serve(sys.argv[1], sys.argv[2])
