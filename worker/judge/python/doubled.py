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
_REALS = {torch.bfloat16, *_COMPLEX}
_CASTS = {torch.Tensor.half: torch.float16, torch.Tensor.bfloat16: torch.bfloat16, torch.Tensor.float: torch.float32,
          torch.Tensor.double: torch.float64, torch.Tensor.cfloat: torch.complex64, torch.Tensor.cdouble: torch.complex128}
_CONVERSIONS = (torch.Tensor.to, torch.Tensor.type, torch.Tensor.type_as)
_ASKS_TYPE = torch.Tensor.dtype.__get__
_ASKS_SIZE = (torch.Tensor.element_size, getattr(torch.Tensor, "itemsize", torch.Tensor.dtype).__get__)


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


def _widest(dtypes, default):
    """The real type that those of dtypes that promote are promoted to."""
    reals = _REALS.intersection(_REAL.get(dtype, dtype) for dtype in dtypes)
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
        if function in _ASKS_SIZE or (function is torch.Tensor.type and len(args) == 1 and not kwargs):
            return function(torch.empty(0, dtype=self._written(args[0]), device=args[0].device))
        given = list(_tensors((args, kwargs)))
        if named is not None and not given and function in (torch.promote_types, torch.can_cast):
            return function(*args, **kwargs)
        if function in _CASTS:
            function, named, args = torch.Tensor.to, _CASTS[function], (args[0], _CASTS[function], *args[1:])
        if named is not None:
            args = tuple(self.wide.get(item, item) if isinstance(item, torch.dtype) else item for item in args)
            kwargs = {name: self.wide.get(item, item) if isinstance(item, torch.dtype) else item
                      for name, item in kwargs.items()}
        elif function in _CONVERSIONS:
            like = [item for item in given if item is not args[0]]
            named = self._written(like[0]) if like else None
        result = function(*args, **kwargs)
        if isinstance(result, torch.dtype):  # of result_type
            return self._as_written(result, named, given)
        for tensor in _tensors(result):
            if all(tensor is not other for other in given):
                if tensor.dtype in (torch.float64, torch.complex128):
                    _mark(tensor, self._as_written(tensor.dtype, named, given))
            elif function in _CONVERSIONS and named is not None and self._written(tensor) != named:
                # As written it is a copy, which may be written to.
                return _mark(tensor.clone(), named)
        return result

    def _written(self, tensor):
        if "_grove_written" in tensor.__dict__ or tensor.dtype not in (torch.float64, torch.complex128):
            return _marked(tensor)
        return _COMPLEX.get(self.assumed, torch.complex64) if tensor.is_complex() else self.assumed

    def _as_written(self, dtype, named, given):
        """What is of dtype here, made of the tensors given; named: the type that the program named."""
        if dtype not in (torch.float64, torch.complex128):
            return dtype
        if named is not None and (named.is_floating_point or named.is_complex):
            real = _widest([named], self.default)
        else:
            # Tensors without dimensions count where there are no others.
            numbers = [tensor for tensor in given if _numbers(tensor)]
            some = [tensor for tensor in numbers if tensor.dim() > 0] or numbers
            real = _widest([self._written(tensor) for tensor in some], self.default)
        return _COMPLEX.get(real, torch.complex64) if dtype == torch.complex128 else real


def model_of(model):
    """A copy of model in float64, for evaluation(): parameters, buffers and tensors among its modules' attributes."""
    made = copy.deepcopy(model).double()
    for module, single in zip(made.modules(), model.modules()):
        for ours, theirs in ((module._parameters, single._parameters), (module._buffers, single._buffers)):
            for name, tensor in theirs.items():
                if _numbers(tensor):
                    _mark(ours[name], tensor.dtype)
        for name, value in vars(module).items():
            if _numbers(value):
                vars(module)[name] = input_of(value.detach(), value.dtype).requires_grad_(value.requires_grad)
    return made


def input_of(value, dtype):
    """An input in float64 if it is a floating-point tensor, else as it is; dtype: its type as written."""
    if not _numbers(value):
        return value
    return _mark(value.to(torch.complex128 if value.is_complex() else torch.float64), dtype)


def evaluation(model, leaves):
    """A callable that evaluates model, which model_of() made; leaves: the inputs, which input_of() made."""
    dtypes = {_marked(value) for value in (*model.parameters(), *model.buffers(), *leaves) if _numbers(value)}

    def call(*arguments):
        default, get, set_ = torch.get_default_dtype(), torch.get_default_dtype, torch.set_default_dtype
        mode = _Doubled(dtypes, default)

        def set_default(dtype):
            mode.default = dtype
            set_(mode.wide.get(dtype, dtype))

        set_(torch.float64)
        torch.get_default_dtype, torch.set_default_dtype = lambda: mode.default, set_default
        try:
            with mode:
                return model(*arguments)
        finally:
            torch.get_default_dtype, torch.set_default_dtype = get, set_
            set_(default)

    return call
