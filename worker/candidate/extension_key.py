"""The content key of an inline extension, the same in the build stage and in the candidate.

The build stage records what a candidate's source asks of torch.utils.cpp_extension and builds it; the candidate process
asks for the built object by the same key. So the key holds all that shapes the object, and nothing that differs
between the two processes (paths, build folders, verbosity).
"""

import hashlib
import json


def _strings(value):
    """A str, None or any sequence of them, as a list of str."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value]


def _functions(value):
    """load_inline takes a name, a list of names, or a dict from name to docstring; the names alone matter."""
    return sorted(_strings(list(value) if isinstance(value, dict) else value))


def extension_key(
    name,
    cpp_sources=None,
    cuda_sources=None,
    functions=None,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    with_cuda=None,
):
    """SHA-256 in hex. `load` passes its sources' texts as cpp_sources (.cpp, .cc, .c) and cuda_sources (.cu)."""
    cuda = _strings(cuda_sources)
    content = {
        "name": str(name),
        "cpp_sources": _strings(cpp_sources),
        "cuda_sources": cuda,
        "functions": _functions(functions),
        "extra_cflags": _strings(extra_cflags),
        "extra_cuda_cflags": _strings(extra_cuda_cflags),
        "extra_ldflags": _strings(extra_ldflags),
        "extra_include_paths": _strings(extra_include_paths),
        "with_cuda": bool(cuda) if with_cuda is None else bool(with_cuda),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
