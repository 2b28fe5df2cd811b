"""Builds extensions of torch.utils.cpp_extension with the small headers of torch_lite, where a source allows it.

PyTorch writes the files and a build.ninja with its own flags, and then calls ninja; in place of that call the same
compilers run here side by side, with the same flags and the small headers first on the include path (worker/candidate/torch_lite).
A source that does not compile that way goes to ninja and the full headers, as it always did: what it needs is not in the
small headers, or it is wrong, and then the full build says so in PyTorch's own words.

Also makes the glue, once per machine:   torch_lite_build.py LITE_DIR OUTPUT.o
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

# Conditions on anything else may come out differently under headers that define fewer macros.
KNOWN_MACROS = {"defined", "__CUDA_ARCH__", "__CUDACC__", "__NVCC__", "__cplusplus", "CUDART_VERSION", "CUDA_VERSION",
                "__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__", "__linux__", "__GNUC__", "NDEBUG", "_OPENMP", "__AVX2__", "__AVX512F__",
                "__FMA__", "and", "or", "not"}
CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b((?:[^\n]*\\\n)*[^\n]*)", re.M)
DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?\b[ \t]*(.*)', re.M)
LIBRARY = re.compile(r"(torch|ATen|c10|caffe2|pybind11)/")
HALF = re.compile(r"::(Half|BFloat16)\b|_AND_HALF")


class Unfit(Exception):
    """The small headers cannot be used here: why."""


def _unescape(text):
    return re.sub(r"\$([$ :\n])", r"\1", text)


def _value(line):
    return shlex.split(_unescape(line.split("=", 1)[1].strip()))


def read_ninja(path):
    """(variables, [(rule, inputs, output)]) of a build.ninja as PyTorch writes it."""
    variables, edges = {}, []
    with open(path, encoding="utf-8") as file:
        for line in file.read().replace("$\n", "").splitlines():
            if re.match(r"^\w+ *=", line):
                variables[line.split("=", 1)[0].strip()] = _value(line)
            elif line.startswith("build "):
                outputs, rest = re.split(r"(?<!\$):", line[len("build "):], maxsplit=1)
                words = [_unescape(word) for word in re.split(r"(?<!\$) +", rest.strip())]
                edges.append((words[0], words[1:], _unescape(outputs.strip())))
    return variables, edges


def check_conditions(text):
    defined = set(DEFINITION.findall(text))
    for condition in CONDITION.findall(text):
        condition = re.sub(r"//.*|/\*.*?\*/", "", condition)
        for name in re.findall(r"[A-Za-z_]\w*", condition):
            if name not in KNOWN_MACROS and name not in defined:
                raise Unfit(f"a condition on {name}")


def check_includes(text, lite):
    """PyTorch's and pybind11's own headers beside the small ones could compile and mean something else."""
    for name in INCLUDE.findall(text):
        found = re.match(r'<([^>]+)>|"([^"]+)"', name)
        if found is None:
            raise Unfit(f"an include by macro: {name.strip()[:80]}")
        path = found.group(1) or found.group(2)
        small = os.path.exists(os.path.join(lite, "include", path)) or path in ("c10/util/Half.h", "c10/util/BFloat16.h")
        if not small and (found.group(2) or LIBRARY.match(path)):
            raise Unfit(f"{path} is not among them")


class LiteBuilder:
    """Stands in for cpp_extension._run_ninja_build. `note` is told how each extension was built, in words."""

    def __init__(self, cpp_extension, lite, glue, note):
        import torch

        self.ninja, self.lite, self.glue, self.note = cpp_extension._run_ninja_build, lite, glue, note
        version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
        self.defines = ["-DGROVE_LITE_STD_OPTIONAL"] if version >= (2, 4) else []
        if torch.version.cuda is None:
            self.defines.append("-DGROVE_LITE_NO_CUDA")
        cpp_extension._run_ninja_build = self

    def __call__(self, build_directory, *args, **kwargs):
        try:
            self.build(build_directory)
            self.note("small headers")
        except Unfit as unfit:
            self.note(f"full headers ({unfit})")
            self.ninja(build_directory, *args, **kwargs)

    def build(self, folder):
        variables, edges = read_ninja(os.path.join(folder, "build.ninja"))
        if any(rule not in ("compile", "cuda_compile", "link") for rule, _, _ in edges):
            raise Unfit("a step that PyTorch's plain builds do not have")
        sources = [inputs[0] for rule, inputs, _ in edges if rule != "link"]
        texts = []
        for source in sources:
            with open(os.path.join(folder, source), encoding="utf-8") as file:
                texts.append(file.read())
            check_conditions(texts[-1])
            check_includes(texts[-1], self.lite)
        lite = [f"-I{self.lite}/include", f"-I{self.lite}/abi"] + self.defines
        if any(HALF.search(text) for text in texts):
            lite.append("-DGROVE_LITE_HALF")
        commands, link, objects = [], None, []
        for rule, inputs, output in edges:
            if rule == "compile":
                commands.append(variables["cxx"] + lite + variables["cflags"] + ["-c", inputs[0], "-o", output]
                                + variables.get("post_cflags", []))
            elif rule == "cuda_compile":
                commands.append(variables["nvcc"] + lite + variables["cuda_cflags"] + ["-c", inputs[0], "-o", output]
                                + variables.get("cuda_post_cflags", []))
            else:
                link = variables["cxx"] + inputs + [self.glue] + variables["ldflags"] + ["-o", output]
                continue
            objects.append(output)
        if link is None or not commands:
            raise Unfit("nothing to link")
        said = run_all(commands, folder)
        said += run_all([link], folder)
        sys.stderr.write(said)  # warnings, and what ptxas was asked to say


def run_all(commands, folder):
    """Runs all at once; what they said. The first that fails ends the others and is Unfit with its first error."""
    running = []
    for command in commands:
        output = tempfile.TemporaryFile()
        try:
            process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                       start_new_session=True)
        except OSError as error:
            raise Unfit(str(error))
        running.append((process, output))
    failed, waiting = None, list(running)
    while waiting and failed is None:
        for process, output in list(waiting):
            if process.poll() is None:
                continue
            waiting.remove((process, output))
            if process.returncode != 0:
                failed = output
                break
        else:
            time.sleep(0.002)
    for process, _ in waiting:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    texts = []
    for _, output in running:
        output.seek(0)
        texts.append(output.read().decode(errors="replace"))
        if output is failed:
            errors = [line for line in texts[-1].splitlines() if "error" in line]
            raise Unfit((errors or texts[-1].splitlines() or ["the compiler ended without a word"])[0].strip()[:300])
        output.close()
    return "".join(texts)


def make_glue(lite, output):
    import torch
    import torch.utils.cpp_extension as cpp_extension

    class Made(Exception):
        pass

    def compile_only(build_directory, *_args, **_kwargs):
        variables, edges = read_ninja(os.path.join(build_directory, "build.ninja"))
        defines = ["-O2", f"-I{lite}/abi"]
        if "-DGROVE_WITH_CUDA" in variables["cflags"]:
            defines.append("-DGROVE_WITH_CUDA")
        version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
        if version >= (2, 4):
            defines.append("-DGROVE_LITE_STD_OPTIONAL")
        command = variables["cxx"] + defines + variables["cflags"] + ["-c", os.path.join(lite, "glue.cc"), "-o", output]
        subprocess.run(command, check=True)
        raise Made()

    cpp_extension._run_ninja_build = compile_only
    with_cuda = torch.version.cuda is not None
    with tempfile.TemporaryDirectory() as folder:
        try:
            cpp_extension.load(name="grove_torch_glue", sources=[os.path.join(lite, "glue.cc")], build_directory=folder,
                               with_cuda=with_cuda, extra_cflags=["-DGROVE_WITH_CUDA"] if with_cuda else [])
        except Made:
            return
    raise RuntimeError("PyTorch wrote no build.ninja")


if __name__ == "__main__":
    make_glue(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
