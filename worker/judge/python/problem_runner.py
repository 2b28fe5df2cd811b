"""The judge's side of a KernelBench problem; executed inside grove-judge, which calls these functions."""

import base64
import functools
import importlib.util
import inspect
import os
import pickle
import random
import sys
import tempfile
import traceback
import types

import torch

import doubled


class ProblemFailure(Exception):
    """args: message, detail"""


def row_major(shape):
    """The strides of a contiguous tensor, also where a size of 1 or 0 leaves others open."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_dense(tensor):
    """Whether the elements fill their memory, each with a place of its own, in whatever order of dimensions."""
    step = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape) if size != 1):
        if stride != step:
            return False
        step *= size
    return True


class Runner:
    def __init__(self, name, source, cuda, index):
        self.device = torch.device("cuda", index) if cuda else torch.device("cpu")
        self.cuda = cuda
        self.structure = None
        self.paths = None
        self.keep_strides = True  # else draws are row-major
        self.made_strides = []  # by get_inputs() in the last draw, for each leaf; None where row-major
        self.first_strides = {}  # of the first draw that kept them, by position
        self.leaf_types = []  # of the last draw; None for numbers
        self.double_model = None
        self.compiled = None
        self.built_state = None
        self.draw_on_device = cuda
        self.drawn_on_device = False  # once
        label = f"{name or 'problem'}.py"
        try:
            code = compile(source, label, "exec")
        except (SyntaxError, ValueError) as error:
            where = f" line {error.lineno}" if getattr(error, "lineno", None) else ""
            message = getattr(error, "msg", None) or str(error)
            raise ProblemFailure(f"{label} is not Python:{where} {message}; correct the file or name another", "")
        # A file of its own, so that inspect, torch.jit.script and torch.compile find the text.
        folder = tempfile.mkdtemp(prefix="grove-")
        path = os.path.join(folder, "problem.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        code = compile(source, path, "exec")
        self.module = types.ModuleType("grove_problem")
        self.module.__file__ = path
        sys.modules["grove_problem"] = self.module
        self.label, self.path = label, path
        self._guard("running the file", lambda: exec(code, self.module.__dict__))
        for needed in ("Model", "get_inputs"):
            if not hasattr(self.module, needed):
                raise ProblemFailure(f"{label} defines no {needed}; a KernelBench problem has class Model, get_inputs() "
                                     "and get_init_inputs()", "")
        get_init = getattr(self.module, "get_init_inputs", lambda: [])
        self._seed(42)
        self.init = self._guard("get_init_inputs()", get_init)
        if self.init is None:
            self.init = []
        self._seed(42)

        def build():
            with torch.no_grad():
                model = self.module.Model(**self.init) if isinstance(self.init, dict) else self.module.Model(*self.init)
                return model.to(self.device)

        if not (isinstance(self.module.Model, type) and issubclass(self.module.Model, torch.nn.Module)):
            raise ProblemFailure(f"{label}: Model is not a torch.nn.Module", "")
        self.model = self._guard("Model(*get_init_inputs())", build)
        self._guard("looking at its parameters", self._settle)

    def _settle(self):
        """Makes the model's tensors contiguous, so that a flat view of each is what a native kernel gets, and keeps them."""
        with torch.no_grad():
            for kind, tensors in (("parameter", self.model.named_parameters()), ("buffer", self.model.named_buffers())):
                for name, tensor in tensors:
                    refused = None
                    if torch.nn.parameter.is_lazy(tensor):
                        refused = "has no shape before the first call (a lazy module); give the module its sizes"
                    elif tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
                        refused = "is sparse, quantised or without data, which candidates cannot be given; make it a dense tensor"
                    if refused:
                        raise ProblemFailure(f"{self.label}: {kind} {name!r} {refused}", "")
                    if not tensor.is_contiguous():
                        tensor.data = tensor.data.contiguous()
        self.initial_state = {
            k: v.detach().clone() for k, v in self.model.state_dict().items() if isinstance(v, torch.Tensor)}

    def _guard(self, what, function):
        try:
            return function()
        except ProblemFailure:
            raise
        except ModuleNotFoundError as error:
            raise ProblemFailure(f"{self.label} needs the Python package {error.name!r}, which {sys.executable} does not "
                                 "have; install it there or take it out of the problem", self._detail(error))
        except (Exception, SystemExit) as error:
            at = ""
            for frame in traceback.extract_tb(error.__traceback__):
                if frame.filename == self.path:
                    at = f" (line {frame.lineno})"
            hint = "; correct the problem"
            if isinstance(error, AttributeError) and str(error).startswith("module 'torch"):
                hint = f"; the judge's torch is {torch.__version__}, and the problem may need a newer one"
            elif "does not require grad" in str(error):
                hint = "; forward runs under torch.no_grad(): differentiate under torch.enable_grad()"
            elif isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error):
                hint = "; its tensors do not fit into this device's memory: make its shapes smaller"
            raise ProblemFailure(f"{self.label}: {what} failed{at}: {type(error).__name__}: {str(error)[:2000]}{hint}",
                                 self._detail(error))

    def _detail(self, error):
        """The traceback as the problem's author knows the file, without the frames that are ours."""
        ours = (self._detail.__code__.co_filename, doubled.model_of.__code__.co_filename)
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename not in ours]
        text = "".join(traceback.format_list(frames) + traceback.format_exception_only(type(error), error))
        return text.replace(self.path, self.label)

    def _seed(self, seed):
        random.seed(seed)
        torch.manual_seed(seed)  # on every device
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed & 0xFFFFFFFF)

    def state(self):
        """What candidates get: the state as built, which a training-mode forward of the reference does not change."""
        return list(self.initial_state.items())

    def live_state(self):
        """The model's own tensors, in the order of state()."""
        return [v for v in self.model.state_dict(keep_vars=True).values() if isinstance(v, torch.Tensor)]

    def own_tables(self):
        """Names of the tensors of fractions that the model holds beside its state: candidates make them themselves."""
        held = []
        for path, module in self.model.named_modules():
            unsaved = getattr(module, "_non_persistent_buffers_set", ())
            parameters = [name for name, _ in module.named_parameters(recurse=False)]
            for name, value in (*vars(module).items(), *((name, module._buffers[name]) for name in unsaved)):
                if any(parameter.startswith(name + "_") for parameter in parameters):
                    continue  # what weight_norm makes of it in each forward
                if (isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_meta
                        and value.is_floating_point() and value.numel() > 1):
                    finite = value.detach().float().nan_to_num(0, 0, 0)
                    if not torch.equal(finite, finite.round()):
                        held.append(f"{path}.{name}".lstrip("."))
        return held

    def vary(self, seed):
        """Parameters as training might have left them; state() has them, too. False: there are none.

        Where all elements are alike (the ones and zeros of a normalisation) a tenth of a normal draw is added, in units
        of the value or of 1; else each element is multiplied by 1 + a tenth of one, so that zeros stay zeros. Running
        statistics that normalisations read: the mean plus a tenth of a draw, the variance times e to such a one. What is
        frozen, and buffers of other modules that candidates are given, alike: but for whole numbers that differ, which are
        codes or a mask, and buffers whose elements differ, which are a table; where all are alike and positive they stay so.
        """
        given = self.model.state_dict(keep_vars=True)
        norms = [m for m in self.model.modules() if isinstance(m, torch.nn.modules.batchnorm._NormBase)]
        running = [m for m in norms if not m.training and m.running_mean is not None]
        of_norms = {id(buffer) for m in norms for buffer in m.buffers(recurse=False)}

        def alike(value):
            return bool((value == value.reshape(-1)[0]).all())

        def may_vary(value):
            if value.numel() == 0 or not (value.is_floating_point() or value.is_complex()) or id(value) in of_norms:
                return False
            if isinstance(value, torch.nn.Parameter):
                return value.requires_grad or alike(value) or value.is_complex() or not bool((value == value.round()).all())
            return value.numel() > 1 and alike(value) and not value.is_complex() and bool(torch.isfinite(value).all())

        varied = [value for value in {id(value): value for value in given.values() if isinstance(value, torch.Tensor)}.values()
                  if may_vary(value)]
        if not varied and not running:
            return False
        if self.built_state is None:
            self.built_state = {name: value.clone() for name, value in self.initial_state.items()}
        generator = torch.Generator(device=self.device)
        generator.manual_seed(seed)
        with torch.no_grad():
            self.restore()
            for value in varied:
                wide = torch.float64 if value.dtype in (torch.float64, torch.complex128) else torch.float32
                noise = 0.1 * torch.randn(value.shape, generator=generator, device=self.device, dtype=wide)
                first = value.reshape(-1)[0]
                if not alike(value):
                    value.copy_(value * (1 + noise))
                elif isinstance(value, torch.nn.Parameter) or not bool(first > 0):
                    value.copy_(value + noise * max(float(first.abs()), 1.0))
                else:
                    value.copy_(value * noise.exp())
            for norm in running:
                shape = norm.running_mean.shape
                norm.running_mean.add_(0.1 * torch.randn(shape, generator=generator, device=self.device))
                norm.running_var.mul_((0.1 * torch.randn(shape, generator=generator, device=self.device)).exp())
            for name, value in self.model.state_dict().items():
                if isinstance(value, torch.Tensor):
                    self.initial_state[name].copy_(value)
        self.double_model = None
        return True

    def unvary(self):
        """The state as built."""
        if self.built_state is None:
            return
        with torch.no_grad():
            for name, value in self.built_state.items():
                self.initial_state[name].copy_(value)
        self.restore()
        self.double_model = None

    def init_pickle(self):
        try:
            return base64.b64encode(pickle.dumps(self.init)).decode()
        except Exception:
            return ""

    @functools.cached_property
    def argument_names(self):
        try:
            return [p.name for p in inspect.signature(self.model.forward).parameters.values()]
        except (TypeError, ValueError):
            return []

    def draw(self, seed):
        """A fresh draw: (leaves, names). The structure is the same each time."""
        self._seed(seed)

        def call():
            if self.draw_on_device:
                try:
                    with torch.device(self.device):
                        inputs = self.module.get_inputs()
                    self.drawn_on_device = True
                    return inputs
                except Exception:
                    if self.drawn_on_device:
                        raise
                    self.draw_on_device = False  # made on the CPU and copied from now on
                    self._seed(seed)
            return self.module.get_inputs()

        inputs = self._guard("get_inputs()", call)
        if isinstance(inputs, torch.Tensor):
            inputs = [inputs]
        if not isinstance(inputs, (list, tuple)):
            raise ProblemFailure(f"{self.label}: get_inputs() returns {type(inputs).__name__}; it must return a list", "")
        leaves, names = [], []
        self.made_strides = []
        argument_names = self.argument_names
        self.structure = [
            self._tree(value, argument_names[i] if i < len(argument_names) else f"input{i}", leaves, names)
            for i, value in enumerate(inputs)
        ]
        if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise ProblemFailure(f"{self.label}: get_inputs() makes no tensors, so there is nothing to compute on", "")
        self.leaf_types = [leaf.dtype if isinstance(leaf, torch.Tensor) else None for leaf in leaves]
        for position, leaf in enumerate(leaves):
            made = leaf.stride() if isinstance(leaf, torch.Tensor) and leaf.stride() != row_major(leaf.shape) else None
            self.made_strides.append(made)
            if isinstance(leaf, torch.Tensor):
                leaves[position] = self._laid_out(leaf, position)
        return leaves, names

    def _require_values(self, tensor, who):
        if tensor.layout != torch.strided:
            raise ProblemFailure(f"{self.label}: {who} returns a tensor of layout {tensor.layout}; only dense tensors "
                                 "are supported (call .to_dense())", "")
        if tensor.is_meta:
            raise ProblemFailure(f"{self.label}: {who} returns a tensor on the device meta, which has no values", "")

    # A method and no nested function: a function that calls itself by its closure is a reference cycle, and what its closure holds
    # (gigabytes of inputs) would live until the garbage collector comes by.
    def _tree(self, value, name, leaves, names):
        if isinstance(value, torch.Tensor):
            value = value.detach()
            self._require_values(value, "get_inputs()")
            leaves.append(value)
            names.append(name)
            return len(leaves) - 1
        if isinstance(value, (bool, int, float)):
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise ProblemFailure(f"{self.label}: an input integer does not fit in 64 bits", "")
            leaves.append(value)
            names.append(name)
            return len(leaves) - 1
        if isinstance(value, dict):
            return {"dict": [[key, self._tree(item, f"{name}[{key!r}]", leaves, names)] for key, item in value.items()]}
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self._tree(item, f"{name}[{i}]", leaves, names) for i, item in enumerate(value)]}
        if value is None or isinstance(value, str):
            return {"value": value}
        raise ProblemFailure(f"{self.label}: get_inputs() returns a {type(value).__name__}, which cannot be handed to "
                             "a candidate; tensors, numbers, strings, None, lists, tuples and dicts can", "")

    def _laid_out(self, tensor, position):
        """On the device, dense, with the strides that candidates' memory has: they are the same in every draw."""
        # Only where it is so: bytes are copied from here on, and a lazy conjugate's are not its values.
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        strides = row_major(tensor.shape)
        if self.keep_strides and tensor.numel() > 0:
            if not is_dense(tensor):
                tensor = tensor.clone(memory_format=torch.preserve_format)  # the order of dimensions is kept
            shape, first = self.first_strides.setdefault(position, (tensor.shape, tensor.stride()))
            strides = first if shape == tensor.shape else tensor.stride()
        tensor = tensor.to(self.device)
        if tensor.stride() == strides:
            return tensor
        if not self.keep_strides or tensor.numel() == 0:
            return tensor.contiguous().as_strided(tensor.shape, strides)
        return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=self.device).copy_(tensor)

    def _arguments(self, structure, leaves):
        if isinstance(structure, int):
            return leaves[structure]
        if "list" in structure:
            return [self._arguments(item, leaves) for item in structure["list"]]
        if "tuple" in structure:
            return tuple(self._arguments(item, leaves) for item in structure["tuple"])
        if "dict" in structure:
            return {key: self._arguments(item, leaves) for key, item in structure["dict"]}
        return structure["value"]

    def prepare(self, leaves, mode):
        """(callable, arguments) for a call in this mode: 0 eager, 1 compiled, 2 float64."""
        model = self.model
        if mode == 2:
            if self.double_model is None:
                self.double_model = doubled.model_of(self.model)
            # (Nudged ones are double already.)
            leaves = [doubled.input_of(leaf, dtype) for leaf, dtype in zip(leaves, self.leaf_types)]
            model = doubled.evaluation(self.double_model, leaves)
        elif mode == 1:
            if self.compiled is None:
                self.compiled = torch.compile(self.model)
            model = self.compiled
        return model, tuple(self._arguments(item, leaves) for item in self.structure)

    def run(self, call):
        model, arguments = call
        with torch.no_grad():
            return model(*arguments)

    def guarded_run(self, call):
        return self._guard("Model.forward", lambda: self.run(call))

    def restore(self):
        """Undoes what a forward pass wrote to buffers (BatchNorm in training mode), so that every call is the first."""
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                if isinstance(value, torch.Tensor):
                    value.copy_(self.initial_state[name])

    def stateful(self):
        """Whether forward changes the model's own state."""
        return any(not torch.equal(value, self.initial_state[name])
                   for name, value in self.model.state_dict().items() if isinstance(value, torch.Tensor)
                   and value.numel() > 0 and not bool(torch.isnan(value).any() if value.is_floating_point() else False))

    def flatten(self, result):
        leaves, paths = [], []
        self._walk(result, "", leaves, paths)
        if not leaves:
            raise ProblemFailure(f"{self.label}: Model.forward returns no tensor, so there is nothing to compare", "")
        self.paths = paths
        return leaves

    def _walk(self, value, path, leaves, paths):
        if isinstance(value, torch.Tensor):
            self._require_values(value, "Model.forward")
            # Only where it is so: what is recorded of the operations must not have more in it.
            if value.is_conj() or value.is_neg():
                value = value.resolve_conj().resolve_neg()
            leaves.append(value.detach().contiguous())
            paths.append(path)
        elif isinstance(value, (bool, int, float)):
            dtype = torch.float64 if isinstance(value, float) else None
            leaves.append(torch.tensor(value, dtype=dtype, device=self.device))
            paths.append(path)
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                self._walk(item, f"{path}[{i}]", leaves, paths)
        elif isinstance(value, dict):
            for key, item in value.items():
                self._walk(item, f"{path}[{key!r}]", leaves, paths)
        elif value is not None:
            raise ProblemFailure(f"{self.label}: Model.forward returns a {type(value).__name__}, which cannot be "
                                 "compared; tensors, numbers, lists, tuples and dicts can", "")

    def begin_trace(self):
        trace = torch.jit._trace
        names = {self.model: type(self.model).__name__}
        for name, module in self.model.named_modules():
            if name:
                names[module] = f"{type(module).__name__}[{name.split('.')[-1]}]"
        trace._trace_module_map = names

    def end_trace(self):
        torch.jit._trace._trace_module_map = None

    def can_compile(self):
        return hasattr(torch, "compile") and int(torch.__version__.split(".")[0]) >= 2
