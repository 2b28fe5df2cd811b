"""A problem's model in float64, as the judge's measure of what rounding alone does; grove-judge has this text in it.

What the program casts to single precision or makes in it is made in double: a program that names float32 wants it
precise. So is what it casts to a half type that its own inputs or parameters have: there it is how the program keeps its
numbers. Other half types stay: who names those wants their rounding.

A program that asks for a type gets the answer that it gets as written, or it would be another program: an epsilon of
torch.finfo(x.dtype), a branch for float32. So the type that a tensor has in the program as written goes with it.
"""

import copy
import functools

import torch
from torch.overrides import TorchFunctionMode

_DOUBLE = {torch.float32: torch.float64, torch.complex64: torch.complex128}
_COMPLEX = {torch.float16: torch.complex32, torch.float32: torch.complex64, torch.float64: torch.complex128}
_REAL = {wide: real for real, wide in _COMPLEX.items()}
_CASTS = {torch.Tensor.half: torch.float16, torch.Tensor.bfloat16: torch.bfloat16, torch.Tensor.float: torch.float32,
          torch.Tensor.double: torch.float64, torch.Tensor.cfloat: torch.complex64, torch.Tensor.cdouble: torch.complex128}
_CONVERSIONS = (torch.Tensor.to, torch.Tensor.type, torch.Tensor.type_as)
_ASKS_TYPE = torch.Tensor.dtype.__get__

# Two evaluations of a table, in single precision and in double, are the same table up to this part of its rms: an angle of
# 2**18 positions is off by 2**18 * 2**-24 = 2**-6 in single precision, and two random draws by about 1.4.
_SAME_TABLE = 2.0**-4

_EVERY_MODULE_HOLDS = set(vars(torch.nn.Module()))


def _numbers(value):
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _mark(tensor, dtype):
    """tensor, which is of dtype in the program as written."""
    tensor._grove_written = dtype
    return tensor


def _marked(tensor):
    return tensor.__dict__.get("_grove_written", tensor.dtype)


def double(value, dtype):
    """value, an input, in double if it is a floating-point tensor, and as it is if not; dtype: its type as written."""
    if not _numbers(value):
        return value
    return _mark(value.to(torch.complex128 if value.is_complex() else torch.float64), dtype)


def _widest(dtypes, default):
    """The real type that dtypes, of floating-point and complex numbers, are promoted to."""
    reals = [_REAL.get(dtype, dtype) for dtype in dtypes]
    return functools.reduce(torch.promote_types, reals) if reals else default


class _Doubled(TorchFunctionMode):
    def __init__(self, dtypes, default):
        """dtypes: those of inputs and parameters as written; default: of what names none."""
        super().__init__()
        self.wide = {**_DOUBLE, **{half: torch.float64 for half in dtypes & {torch.float16, torch.bfloat16}}}
        self.default = default
        # Of what comes by functions that no mode sees (torch 1.13: x[0]).
        self.assumed = _widest(dtypes, default)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function == _ASKS_TYPE:
            return self._written(args[0])
        named = next((item for item in (*args, *kwargs.values()) if isinstance(item, torch.dtype)), None)
        if function is torch.Tensor.data_ptr or (function is torch.Tensor.view and named is not None):
            # The bits of another type: what follows would be garbage, and would pass for the exact result.
            raise NotImplementedError("forward reads the bits of its numbers")
        if function in _CASTS:
            function, named, args = torch.Tensor.to, _CASTS[function], (args[0], _CASTS[function], *args[1:])
        if named is not None:
            args = tuple(self.wide.get(item, item) if isinstance(item, torch.dtype) else item for item in args)
            kwargs = {name: self.wide.get(item, item) if isinstance(item, torch.dtype) else item
                      for name, item in kwargs.items()}
        elif function in _CONVERSIONS:
            like = [item for item in (*args[1:], *kwargs.values()) if isinstance(item, torch.Tensor)]
            named = self._written(like[0]) if like else None
        result = function(*args, **kwargs)
        given = list(_tensors((args, kwargs)))
        if isinstance(result, torch.dtype):
            return self._promoted(given)
        for tensor in _tensors(result):
            if all(tensor is not other for other in given):
                self._mark_result(tensor, named, given)
            elif function in _CONVERSIONS and named is not None and self._written(tensor) != named:
                # As written it is a copy, which may be written to.
                return _mark(tensor.clone(), named)
        return result

    def _written(self, tensor):
        dtype = _marked(tensor)
        if dtype in (torch.float64, torch.complex128) and "_grove_written" not in tensor.__dict__:
            return _COMPLEX.get(self.assumed, torch.complex64) if tensor.is_complex() else self.assumed
        return dtype

    def _promoted(self, given):
        """The real type of a result as written; tensors without dimensions count where there are no others."""
        numbers = [tensor for tensor in given if _numbers(tensor)]
        some = [tensor for tensor in numbers if tensor.dim() > 0] or numbers
        return _widest([self._written(tensor) for tensor in some], self.default)

    def _mark_result(self, tensor, named, given):
        if tensor.dtype not in (torch.float64, torch.complex128):
            return
        is_number = named is not None and (named.is_floating_point or named.is_complex)
        dtype = _widest([named], None) if is_number else self._promoted(given)
        _mark(tensor, _COMPLEX.get(dtype, torch.complex64) if tensor.is_complex() else dtype)


def _types(values):
    return {_marked(value) for value in values if _numbers(value)}


def _evaluated(function, dtypes):
    default = torch.get_default_dtype()
    asks_default = torch.get_default_dtype
    torch.set_default_dtype(torch.float64)
    torch.get_default_dtype = lambda: default
    try:
        with _Doubled(dtypes, default):
            return function()
    finally:
        torch.get_default_dtype = asks_default
        torch.set_default_dtype(default)


def in_double(model, leaves):
    """A callable that evaluates model, which DoubleModel made; leaves: the inputs, which double() made."""
    dtypes = _types((*model.parameters(), *model.buffers(), *leaves))
    return lambda *arguments: _evaluated(lambda: model(*arguments), dtypes)


def _same_table(single, precise):
    if not _numbers(single) or not isinstance(precise, torch.Tensor) or single.dtype == torch.float64:
        return False
    if single.shape != precise.shape or single.is_complex() != precise.is_complex() or not _numbers(precise):
        return False
    single = single.to(precise.dtype)
    if not torch.equal(torch.isfinite(single), torch.isfinite(precise)):
        return False
    single, precise = (torch.nan_to_num(torch.view_as_real(t) if t.is_complex() else t, 0, 0, 0) for t in (single, precise))
    return bool((precise - single).square().sum() <= _SAME_TABLE**2 * single.square().sum())


def _made_by_itself(module):
    """What a module holds that is no part of its state, by name: candidates are not given it and make it themselves."""
    held = {name: value for name, value in vars(module).items() if name not in _EVERY_MODULE_HOLDS}
    held.update((name, module._buffers[name]) for name in module._non_persistent_buffers_set)
    return held


class DoubleModel:
    """Makes models in double of one that was built and has not run yet."""

    def __init__(self, model, build):
        """build: makes it once more, from the same seed.

        Tables that it makes for itself (cosines of positions) are made in double, too: what single precision is off there
        is the reference's error as anywhere else. Those that come out otherwise, because they are random, stay.
        """
        self._model = model
        self._state = {id(value) for value in model.state_dict(keep_vars=True).values()}
        tables = [value for module in model.modules() for value in _tensors(_made_by_itself(module))]
        shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers(), *tables)}
        try:
            # Without what the first call leaves in it; its tensors are the model's own.
            self._model = copy.deepcopy(model, shared)
        except Exception:
            return  # such a model has no float64 evaluation either
        if any(_numbers(tensor) for tensor in tables):
            self._take_tables(build)

    def _take_tables(self, build):
        try:
            again = _evaluated(build, _types(self._model.parameters()))
        except Exception:
            return
        if [type(module) for module in again.modules()] != [type(module) for module in self._model.modules()]:
            return
        for module, other in zip(self._model.modules(), again.modules()):
            precise = _made_by_itself(other)
            for name, value in _made_by_itself(module).items():
                taken = self._precise(value, precise.get(name))
                (module._buffers if name in module._buffers else vars(module))[name] = taken

    def _precise(self, single, precise):
        """single, and in its tables what they are in double."""
        if id(single) in self._state:
            return single
        if _same_table(single, precise):
            return _mark(precise.detach().to(single.device), single.dtype)
        if type(single) is type(precise):
            if type(single) in (list, tuple) and len(single) == len(precise):
                return type(single)(self._precise(one, other) for one, other in zip(single, precise))
            if type(single) is dict and single.keys() == precise.keys():
                return {key: self._precise(single[key], precise[key]) for key in single}
        return single

    def make(self, state):
        """A model in double; state: what its parameters and buffers are now, by name."""
        made = copy.deepcopy(self._model).double()
        for ours, theirs in ((made.parameters(), self._model.parameters()), (made.buffers(), self._model.buffers())):
            for tensor, single in zip(ours, theirs):
                if _numbers(tensor):
                    _mark(tensor, _marked(single))
        with torch.no_grad():
            for name, value in made.state_dict().items():
                if isinstance(value, torch.Tensor):
                    value.copy_(state[name])
        return made
