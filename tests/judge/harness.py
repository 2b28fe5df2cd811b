"""Drives a real judge and real candidates over socketpairs, without a sandbox. Used by the tests and on GPU hosts."""

import array
import functools
import json
import os
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time


class Channel:
    def __init__(self, sock):
        self.sock = sock
        self.data = b""

    def send(self, body, fds=()):
        if fds:
            body = dict(body, fds=len(fds))
        text = json.dumps(body).encode()
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        frame = struct.pack("<I", len(text)) + text
        sent = self.sock.sendmsg([frame], control)
        if sent < len(frame):
            self.sock.sendall(frame[sent:])

    def receive(self, timeout=120):
        self.sock.settimeout(timeout)
        while True:
            if len(self.data) >= 4:
                (n,) = struct.unpack("<I", self.data[:4])
                if len(self.data) >= 4 + n:
                    body = json.loads(self.data[4: 4 + n])
                    self.data = self.data[4 + n:]
                    return body
            part = self.sock.recv(1 << 16)
            if not part:
                raise EOFError("channel closed")
            self.data += part


def spawn(command, fd_end, stderr=None, env=None):
    """Starts a program whose descriptor 3 is `fd_end`."""

    def prepare():
        os.dup2(fd_end.fileno(), 3)
        os.set_inheritable(3, True)

    return subprocess.Popen(command, pass_fds=(3,) if fd_end.fileno() == 3 else (), preexec_fn=prepare, close_fds=False,
                            stdin=subprocess.DEVNULL, stderr=stderr, env=env)


class Forks:
    """Starts scripts' candidates on the CPU from a process that has torch (forking_candidates.py)."""

    class Process:
        def __init__(self, forks, pid):
            self.forks, self.pid, self.code = forks, pid, None

        def kill(self):
            os.kill(self.pid, signal.SIGKILL)  # nobody else has its number before it is waited for

        def wait(self):
            if self.code is None:
                self.code = int(self.forks.ask(str(self.pid).encode()))
            return self.code

    def __init__(self, libexec, python, threads=2):
        self.mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = spawn([python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "forking_candidates.py"),
                              os.path.abspath(f"{libexec}/grove-candidate-python"), str(threads)], theirs)
        theirs.close()

    def ask(self, data, fds=()):
        self.mine.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
        answer = self.mine.recv(64)
        if not answer:
            raise EOFError("the process that forks candidates has ended")
        return answer

    def start(self, candidate_end, errors):
        return Forks.Process(self, int(self.ask(b"start", [candidate_end.fileno(), errors.fileno()])))

    def close(self):
        self.mine.close()
        return self.process.wait(60)


class Judge:
    forks = None  # where scripts' candidates come from, if not from a start of their own

    def __init__(self, libexec, device="cpu", python="/usr/bin/python3", threads=2, extra=(), ahead=False):
        """`ahead`: started without waiting for its hello, before it is known for what."""
        self.libexec, self.device, self.python, self.threads = libexec, device, python, threads
        mine, theirs = socket.socketpair()
        self.process = spawn([f"{libexec}/grove-judge", "--fd", "3", "--device", device, "--threads", str(threads),
                              "--python", python, *(("--ahead", "python") if ahead else ()), *extra], theirs)
        theirs.close()
        self.channel = Channel(mine)
        self.next = 0
        if not ahead:
            assert self.hello["type"] == "hello", self.hello

    @functools.cached_property
    def hello(self):
        return self.channel.receive(timeout=300)

    def load(self, source, format="PROBLEM_FORMAT_KERNELBENCH", name="problem", options=None, timeout=120, large_bytes=None):
        assert self.hello["type"] == "hello", self.hello
        self.next += 1
        self.channel.send({"type": "load", "id": self.next, "problem": {"name": name, "format": format, "source": source},
                           "options": options or {}, **({} if large_bytes is None else {"large_bytes": large_bytes})})
        return self.loaded(timeout)

    def loaded(self, timeout=120):
        """The answer to "load", with what was said on the way as `progress`."""
        progress = []
        while True:
            answer = self.channel.receive(timeout)
            if answer["type"] != "progress":
                return dict(answer, progress=progress)
            progress.append(answer["detail"])

    def evaluate(self, program=None, source=None, options=None, extensions=(), fds=(), raw=None, timeout=180):
        """program: path of a built object; source: ModelNew text; raw: a command to start as the candidate."""
        judge_end, candidate_end = socket.socketpair()
        python = source is not None
        if raw is not None:
            command = raw
        elif python:
            command = [self.python, f"{self.libexec}/grove-candidate-python"]
        else:
            command = [f"{self.libexec}/grove-candidate"]
        command = command + ["--fd", "3", "--device", self.device, "--threads", str(self.threads)] if raw is None else raw
        errors = tempfile.TemporaryFile()
        if python and self.forks is not None:
            candidate = self.forks.start(candidate_end, errors)
        else:
            candidate = spawn(command, candidate_end, stderr=errors)
        candidate_end.close()
        worker_side = Channel(judge_end)
        if python:
            worker_side.send({"type": "program", "kind": "python", "source": source, "extensions": list(extensions)}, list(fds))
        elif raw is None:
            fd = os.open(program, os.O_RDONLY)
            worker_side.send({"type": "program", "kind": "native", "entry": "grove_kernel"}, [fd])
            os.close(fd)
        self.next += 1
        self.channel.send({"type": "evaluate", "id": self.next, "candidate": {"kind": "python" if python else "native"},
                           "options": options or {}}, [judge_end.fileno()])
        judge_end.close()
        begin = time.time()
        progress = []
        try:
            while True:
                answer = self.channel.receive(timeout)
                if answer["type"] != "progress":
                    break
                progress.append(answer)
        finally:
            candidate.kill()
            code = candidate.wait()
        errors.seek(0)
        answer["candidate_exit"] = code
        answer["stderr"] = errors.read().decode(errors="replace")
        answer["seconds"] = time.time() - begin
        answer["progress"] = progress
        return answer

    def close(self):
        try:
            self.channel.send({"type": "quit"})
        except OSError:
            pass
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Candidate:
    """A candidate's process alone, spoken to as the judge does."""

    def __init__(self, command, *arguments):
        mine, theirs = socket.socketpair()
        self.process = spawn([*command, "--fd", "3", "--device", "cpu", "--threads", "2", *arguments], theirs)
        theirs.close()
        self.channel = Channel(mine)
        self.hello = self.channel.receive()

    def ask(self, body, fds=()):
        self.channel.send(body, list(fds))
        return self.channel.receive()

    def close(self):
        self.process.kill()
        return self.process.wait()


def build_cpp(source, include, folder, name="kernel", flags=()):
    path = os.path.join(folder, name + ".cpp")
    out = os.path.join(folder, name + ".so")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    subprocess.run(["g++", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=c++17", f"-I{include}", path,
                    "-o", out, *flags], check=True)
    return out


def build_cu(source, include, folder, name="kernel", arch="sm_90", nvcc="nvcc"):
    path = os.path.join(folder, name + ".cu")
    out = os.path.join(folder, name + ".so")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    subprocess.run([nvcc, "-O3", f"-arch={arch}", "-shared", "-Xcompiler", "-fPIC", f"-I{include}", path, "-o", out],
                   check=True)
    return out
