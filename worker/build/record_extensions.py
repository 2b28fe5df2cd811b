"""Builds the extensions that a KernelBench candidate asks of torch.utils.cpp_extension, ahead of its run.

Runs inside the build sandbox: executes the candidate's file with load_inline and load replaced, so that each call builds
with torch's own machinery and is recorded under its content key (extension_key.py). The calls return a placeholder: the
kernels themselves run later, in another process, on the device.

usage: record_extensions.py CANDIDATE OUTPUT_DIR     writes OUTPUT_DIR/manifest.json and the objects
exit:  0 done (the candidate's own exceptions do not count: its process will show them), 10 an extension did not build
"""

import inspect
import json
import os
import shutil
import sys
import traceback
import types

EXIT_BUILD_FAILED = 10


class Placeholder(types.ModuleType):
    """Answers every attribute, so that module-level code such as `f = ext.forward` works."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def not_here(*args, **kwargs):
            raise RuntimeError(f"{self.__name__}.{name} was called at import time; kernels run in forward() only")

        return not_here


def main():
    candidate, output = sys.argv[1:3]
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from extension_key import extension_key

    sys.path.pop(0)
    import torch.utils.cpp_extension as cpp_extension

    recorded = []
    built_by_key = {}
    real_inline, real_load = cpp_extension.load_inline, cpp_extension.load
    keys = ("functions", "extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths", "with_cuda")
    built = {}

    def found(module_name, path, *rest):
        # In place of the import: where torch left the object, and under which name it was compiled.
        built["name"], built["path"] = module_name, os.path.join(path, module_name + ".so")
        return Placeholder(module_name)

    cpp_extension._import_module_from_library = found

    def record(key, name, build):
        if key not in built_by_key:
            built.clear()
            try:
                build()
            except Exception as error:
                print(str(error), file=sys.stderr)
                sys.stderr.flush()
                os._exit(EXIT_BUILD_FAILED)
            if not built or not os.path.exists(built["path"]):
                print(f"extension {name!r}: torch built no importable object", file=sys.stderr)
                sys.stderr.flush()
                os._exit(EXIT_BUILD_FAILED)
            file = f"{len(built_by_key)}.so"
            shutil.copyfile(built["path"], os.path.join(output, file))
            built_by_key[key] = {"key": key, "name": built["name"], "file": file}
        recorded.append(built_by_key[key])
        return Placeholder(name)

    inline_signature, load_signature = inspect.signature(real_inline), inspect.signature(real_load)

    def load_inline(*args, **kwargs):
        bound = inline_signature.bind(*args, **kwargs)
        given = bound.arguments
        key = extension_key(given["name"], given.get("cpp_sources"), given.get("cuda_sources"),
                            **{k: given.get(k) for k in keys})
        bound.arguments.pop("build_directory", None)
        return record(key, given["name"], lambda: real_inline(*bound.args, **bound.kwargs))

    def load(*args, **kwargs):
        bound = load_signature.bind(*args, **kwargs)
        given = bound.arguments
        sources = given["sources"]
        cpp, cuda = [], []
        for path in [sources] if isinstance(sources, str) else sources:
            with open(path, encoding="utf-8") as file:
                (cuda if str(path).endswith((".cu", ".cuh")) else cpp).append(file.read())
        key = extension_key(given["name"], cpp, cuda, **{k: given.get(k) for k in keys if k != "functions"})
        bound.arguments.pop("build_directory", None)
        return record(key, given["name"], lambda: real_load(*bound.args, **bound.kwargs))

    cpp_extension.load_inline, cpp_extension.load = load_inline, load

    os.makedirs(output, exist_ok=True)
    with open(candidate, encoding="utf-8") as file:
        source = file.read()
    module = types.ModuleType("grove_candidate_module")
    module.__file__ = candidate
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, candidate, "exec"), module.__dict__)
    except BaseException:  # SystemExit too: the candidate's process will meet it again and say so
        print("the candidate's module raised while its extensions were built:\n" + traceback.format_exc(limit=-3),
              file=sys.stderr)
    seen, unique = set(), []
    for item in recorded:
        if item["key"] not in seen:
            seen.add(item["key"])
            unique.append(item)
    with open(os.path.join(output, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump({"extensions": unique}, file)
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
