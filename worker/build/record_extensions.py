"""Builds the extensions that a KernelBench candidate asks of torch.utils.cpp_extension, ahead of its run.

Runs inside the build sandbox: executes the candidate's file with load_inline and load replaced, so that each call builds
with torch's own machinery and is recorded under its content key (extension_key.py). The calls return a placeholder: the
kernels themselves run later, in another process, on the device.

Calls that importing the file does not reach (in ModelNew.__init__, in a function that is called on first use) are found in
its syntax tree and built as well, when their arguments can be had without running the function: from names of the
module, literals, defaults of parameters, and assignments before the call.

With LITE and GLUE, builds try the small headers first (torch_lite_build.py).

usage: record_extensions.py CANDIDATE OUTPUT_DIR [LITE GLUE]     writes OUTPUT_DIR/manifest.json and the objects
exit:  0 done (the candidate's own exceptions do not count: its process will show them), 10 an extension did not build
"""

import ast
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


def _target_names(statement):
    """What an assignment or import binds, as text: `source`, `self.source`."""
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)) and statement.value is not None:
        targets = [statement.target]
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(name.asname or name.name).split(".")[0] for name in statement.names}
    else:
        return set()
    names = set()
    for target in targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        names.update(ast.unparse(part) for part in parts)
    return names


def _used_names(node):
    """Names and dotted names that an expression or statement reads."""
    return {ast.unparse(part) for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute))}


def _before(body, call, found):
    """Appends the simple statements that come before `call` in its own blocks; true once the call is reached."""
    for statement in body:
        if any(part is call for part in ast.walk(statement)):
            for field in ("body", "orelse", "finalbody", "handlers"):
                for inner in getattr(statement, field, []):
                    if any(part is call for part in ast.walk(inner)):
                        return _before(inner.body if isinstance(inner, ast.ExceptHandler) else getattr(statement, field),
                                       call, found)
            return True
        found.append(statement)
    return False


def _defaults(arguments):
    pairs = list(zip((arguments.posonlyargs + arguments.args)[::-1], arguments.defaults[::-1]))
    return pairs + [(name, value) for name, value in zip(arguments.kwonlyargs, arguments.kw_defaults) if value is not None]


def unreached_calls(tree, module, wanted, reached):
    """Makes the calls of `wanted` (functions) inside functions of `tree` that the import did not make.

    `reached`: lines from which calls came. What cannot be evaluated is left: the run says so, if it ever gets there.
    """
    functions = []  # (function, whether it is a method)
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions.append((child, isinstance(node, ast.ClassDef)))
    seen = set()
    for function, method in reversed(functions):  # inner functions before those around them
        for call in [node for node in ast.walk(function) if isinstance(node, ast.Call)]:
            if id(call) in seen or any(call.lineno <= line <= call.end_lineno for line in reached):
                continue
            if any(isinstance(part, ast.expr) and not isinstance(part, (ast.Name, ast.Attribute))
                   for part in ast.walk(call.func)):
                continue  # only a plain dotted name is looked up
            scope = dict(module.__dict__)
            if method and function.args.args:
                scope[function.args.args[0].arg] = types.SimpleNamespace()
            for name, value in _defaults(function.args):
                try:
                    scope[name.arg] = eval(compile(ast.Expression(value), module.__file__, "eval"), scope)
                except Exception:
                    pass
            before = []
            _before(function.body, call, before)
            try:
                for statement in before:  # imports first: the function's own name of load_inline may be one
                    if isinstance(statement, (ast.Import, ast.ImportFrom)):
                        exec(compile(ast.Module([statement], []), module.__file__, "exec"), scope)
                if eval(compile(ast.Expression(call.func), module.__file__, "eval"), scope) not in wanted:
                    continue
            except Exception:
                continue
            seen.add(id(call))
            needed, kept = _used_names(call), []
            for statement in reversed(before):
                if _target_names(statement) & needed:
                    needed |= _used_names(statement)
                    kept.append(statement)
            try:
                for statement in reversed(kept):
                    exec(compile(ast.Module([statement], []), module.__file__, "exec"), scope)
                eval(compile(ast.Expression(call), module.__file__, "eval"), scope)
            except Exception as error:
                print(f"line {call.lineno}: {ast.unparse(call.func)} in {function.name}() cannot be built ahead "
                      f"({type(error).__name__}: {error}); call it at module level", file=sys.stderr)


def main():
    candidate, output = sys.argv[1:3]
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from extension_key import extension_key
    from torch_lite_build import LiteBuilder

    sys.path.pop(0)
    import torch.utils.cpp_extension as cpp_extension

    recorded, reached = [], set()
    built_by_key = {}
    real_inline, real_load = cpp_extension.load_inline, cpp_extension.load
    keys = ("functions", "extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths", "with_cuda")
    built = {}
    if len(sys.argv) > 4:
        LiteBuilder(cpp_extension, sys.argv[3], sys.argv[4], lambda how: built.update(how=how))

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
            built_by_key[key] = {"key": key, "name": built["name"], "file": file, "how": built.get("how", "full headers")}
        recorded.append(built_by_key[key])
        return Placeholder(name)

    inline_signature, load_signature = inspect.signature(real_inline), inspect.signature(real_load)

    def note_caller():
        frame = sys._getframe(2)
        if frame.f_code.co_filename == candidate:
            reached.add(frame.f_lineno)

    def load_inline(*args, **kwargs):
        note_caller()
        bound = inline_signature.bind(*args, **kwargs)
        given = bound.arguments
        key = extension_key(given["name"], given.get("cpp_sources"), given.get("cuda_sources"),
                            **{k: given.get(k) for k in keys})
        bound.arguments.pop("build_directory", None)
        return record(key, given["name"], lambda: real_inline(*bound.args, **bound.kwargs))

    def load(*args, **kwargs):
        note_caller()
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
    else:
        if "load" in source:
            unreached_calls(ast.parse(source), module, (load_inline, load), frozenset(reached))
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
