"""KernelBench problems made smaller, for machines without a data-centre GPU: the module's own numbers, and nothing else."""

import ast
import re

BATCH = re.compile(r"batch|^B$|^b$", re.I)
# What says how something is done, and not how much there is of it.
KEPT = re.compile(r"kernel|stride|padding|dilation|group|classes|num_|head|pool|scal|factor|axis|window|growth|"
                  r"divisor|clamp|min|max_?val|negative|bits|reduction|image|patch|layers|depths|expand|eps|prob|drop", re.I)


def halved(value, most):
    """`value` without as many factors of 2 as make it at most `most`; what is odd of it stays (4095 is 127)."""
    while value > most:
        value //= 2
    return value


def smaller(source, features=True):
    """`source` with its module-level integers halved until a CPU computes it in little time: batches to 4 (rows without further sizes to 64),
    and, with `features`, other sizes to 128 (the length of rows, `dim`, to 4096). Sizes that the model depends on may fail then: so try without `features`."""
    tree = ast.parse(source)
    lines = source.split("\n")
    for node in tree.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        try:
            value = eval(compile(ast.Expression(node.value), "size", "eval"), {"__builtins__": {}}, {})
        except Exception:
            continue  # made of other names: it follows them
        if type(value) is not int or node.lineno != node.end_lineno:
            continue
        if BATCH.search(name):
            value = halved(value, 64 if value >= 1024 else 4)
        elif features and not KEPT.search(name):
            value = halved(value, 4096 if name == "dim" else 64 if "channel" in name else 128)
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[:node.value.col_offset] + str(value) + line[node.value.end_col_offset:]
    return "\n".join(lines)
