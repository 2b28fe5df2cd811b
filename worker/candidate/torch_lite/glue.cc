// The other side of grove_torch_lite.h: the same names, done by PyTorch. Compiled against the full headers once per
// machine and linked into every extension that was built with the small one; see there.
//
// A Tensor of the small header is taken for an at::Tensor: one owning pointer that is never null. Containers of tensors
// (vector, tuple, optional) are those of the one standard library that both sides are compiled with, over that pointer.
#include <ATen/Dispatch.h>
#include <torch/extension.h>
#ifdef GROVE_WITH_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "grove_torch_lite_abi.h"

namespace {

using at::Tensor;
static_assert(sizeof(Tensor) == sizeof(void*) && alignof(Tensor) == alignof(void*), "a Tensor is one pointer");
#define GROVE_SAME(ours, theirs) static_assert(static_cast<int>(theirs) == ours, #theirs " has another number")
GROVE_SAME(0, at::ScalarType::Byte);
GROVE_SAME(1, at::ScalarType::Char);
GROVE_SAME(2, at::ScalarType::Short);
GROVE_SAME(3, at::ScalarType::Int);
GROVE_SAME(4, at::ScalarType::Long);
GROVE_SAME(5, at::ScalarType::Half);
GROVE_SAME(6, at::ScalarType::Float);
GROVE_SAME(7, at::ScalarType::Double);
GROVE_SAME(11, at::ScalarType::Bool);
GROVE_SAME(15, at::ScalarType::BFloat16);
GROVE_SAME(0, at::DeviceType::CPU);
GROVE_SAME(1, at::DeviceType::CUDA);
GROVE_SAME(0, at::Layout::Strided);
GROVE_SAME(0, at::MemoryFormat::Contiguous);
GROVE_SAME(1, at::MemoryFormat::Preserve);
GROVE_SAME(2, at::MemoryFormat::ChannelsLast);
GROVE_SAME(3, at::MemoryFormat::ChannelsLast3d);
#undef GROVE_SAME

const Tensor& T(const void* tensor) { return *static_cast<const Tensor*>(tensor); }
void Put(void* to, Tensor value) { new (to) Tensor(std::move(value)); }

at::Scalar ScalarOf(const grove_lite_scalar& s) {
  if (s.kind == GROVE_LITE_SCALAR_FLOAT) return at::Scalar(s.real);
  if (s.kind == GROVE_LITE_SCALAR_BOOL) return at::Scalar(s.integer != 0);
  return at::Scalar(s.integer);
}

at::TensorOptions OptionsOf(const grove_lite_options& o) {
  at::TensorOptions options;
  if (o.dtype >= 0) options = options.dtype(static_cast<at::ScalarType>(o.dtype));
  if (o.device_type >= 0)
    options = options.device(at::Device(static_cast<at::DeviceType>(o.device_type), o.device_index));
  if (o.layout >= 0) options = options.layout(static_cast<at::Layout>(o.layout));
  if (o.requires_grad >= 0) options = options.requires_grad(o.requires_grad != 0);
  if (o.pinned >= 0) options = options.pinned_memory(o.pinned != 0);
  if (o.memory_format >= 0) options = options.memory_format(static_cast<at::MemoryFormat>(o.memory_format));
  return options;
}

template <typename Value>
void* DataOf(const Tensor& tensor, int access) {
#if defined(TORCH_VERSION_MAJOR) && TORCH_VERSION_MAJOR >= 2
  if (access == GROVE_LITE_CONST_DATA_PTR) return const_cast<Value*>(tensor.const_data_ptr<Value>());
  if (access == GROVE_LITE_MUTABLE_DATA_PTR) return tensor.mutable_data_ptr<Value>();
#else
  (void)access;
#endif
  return tensor.data_ptr<Value>();
}

// ------------------------------------------------------------------------------------------------------------- layout

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // that of a class with virtual functions: g++ and clang have it
// Only names the members that a class derived from PyTorch's may name; none is ever made.
struct Inside : c10::TensorImpl {
  using Policy = c10::TensorImpl::SizesStridesPolicy;
  static void SetPolicy(c10::TensorImpl* impl, Policy policy) { (impl->*&Inside::set_custom_sizes_strides)(policy); }
  static grove_lite_layout Offsets() {
    return {offsetof(Inside, sizes_and_strides_), offsetof(Inside, storage_offset_), offsetof(Inside, numel_), 0,
            0xffffffffu};
  }
};
#pragma GCC diagnostic pop

std::vector<uint32_t> Words(const Tensor& tensor) {
  std::vector<uint32_t> words(sizeof(c10::TensorImpl) / sizeof(uint32_t));
  std::memcpy(words.data(), static_cast<const void*>(tensor.unsafeGetTensorImpl()), words.size() * sizeof(uint32_t));
  return words;
}

// Whether a tensor is found as it is by reading it as grove_torch_lite.h does.
bool Fits(const grove_lite_layout& layout, const Tensor& tensor) {
  const char* at = reinterpret_cast<const char*>(tensor.unsafeGetTensorImpl());
  const auto number = [&](size_t offset) {
    int64_t value;
    std::memcpy(&value, at + offset, sizeof(value));
    return value;
  };
  const int64_t dims = number(layout.sizes);
  if (dims != tensor.dim() || number(layout.numel) != tensor.numel() ||
      number(layout.storage_offset) != tensor.storage_offset()) {
    return false;
  }
  const bool in_place = dims <= GROVE_LITE_DIMS_IN_PLACE;
  const int64_t* sizes = reinterpret_cast<const int64_t*>(at + layout.sizes) + 1;
  if (!in_place) sizes = *reinterpret_cast<const int64_t* const*>(sizes);
  return sizes == tensor.sizes().data() &&
         sizes + (in_place ? GROVE_LITE_DIMS_IN_PLACE : dims) == tensor.strides().data();
}

// Taken from PyTorch's own declarations and then tried out; what does not fit is asked for by calls.
grove_lite_layout FindLayout() {
  grove_lite_layout layout = Inside::Offsets();
  try {
    Tensor tensor = at::empty({2, 3});
    const std::vector<uint32_t> plain = Words(tensor);
    std::vector<uint32_t> mask(plain.size(), 0);
    for (const auto policy : {Inside::Policy::CustomStrides, Inside::Policy::CustomSizes}) {
      Inside::SetPolicy(tensor.unsafeGetTensorImpl(), policy);
      const std::vector<uint32_t> words = Words(tensor);
      for (size_t i = 0; i < mask.size(); ++i) mask[i] |= words[i] ^ plain[i];
    }
    Inside::SetPolicy(tensor.unsafeGetTensorImpl(), Inside::Policy::Default);
    size_t found = 0, word = 0;
    for (size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) continue;
      ++found;
      word = i;
    }
    if (found != 1 || (plain[word] & mask[word]) != 0) return layout;
    for (const Tensor& each : {tensor, tensor.t(), at::empty({}), at::empty({0, 4}), at::empty({6, 7}).narrow(1, 2, 3),
                               at::empty({2, 3, 4, 5, 6}), at::empty({2, 1, 2, 3, 1, 2, 1}).transpose(0, 5)}) {
      if (!Fits(layout, each)) return layout;
    }
    layout.policy = word * sizeof(uint32_t);
    layout.policy_mask = mask[word];
  } catch (const std::exception&) {
    // As it was: by calls.
  }
  return layout;
}

// ------------------------------------------------------------------------------------------------------------ bindings

namespace py = pybind11;
using py::detail::make_caster;

// Room for one argument's converter, by kind.
class Argument {
 public:
  Argument() = default;
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;
  ~Argument() {
    if (drop_ != nullptr) drop_(&room_);
  }
  bool Load(unsigned char kind, py::handle from, bool convert);
  void* value() { return value_; }

 private:
  alignas(16) unsigned char room_[96];
  void (*drop_)(void*) = nullptr;
  void* value_ = nullptr;
};

// Calls visit(null pointer of the kind's type); the kinds that an argument may have.
template <typename Visit>
bool ByKind(unsigned char kind, Visit&& visit) {
  switch (kind) {
    case GROVE_LITE_KIND_TENSOR:
      return visit(static_cast<Tensor*>(nullptr));
    case GROVE_LITE_KIND_BOOL:
      return visit(static_cast<bool*>(nullptr));
    case GROVE_LITE_KIND_INT:
      return visit(static_cast<int*>(nullptr));
    case GROVE_LITE_KIND_UNSIGNED:
      return visit(static_cast<unsigned*>(nullptr));
    case GROVE_LITE_KIND_LONG:
      return visit(static_cast<long*>(nullptr));
    case GROVE_LITE_KIND_UNSIGNED_LONG:
      return visit(static_cast<unsigned long*>(nullptr));
    case GROVE_LITE_KIND_LONG_LONG:
      return visit(static_cast<long long*>(nullptr));
    case GROVE_LITE_KIND_FLOAT:
      return visit(static_cast<float*>(nullptr));
    case GROVE_LITE_KIND_DOUBLE:
      return visit(static_cast<double*>(nullptr));
    case GROVE_LITE_KIND_STRING:
      return visit(static_cast<std::string*>(nullptr));
    case GROVE_LITE_KIND_TENSORS:
      return visit(static_cast<std::vector<Tensor>*>(nullptr));
    case GROVE_LITE_KIND_INTS:
      return visit(static_cast<std::vector<int64_t>*>(nullptr));
#ifdef GROVE_LITE_STD_OPTIONAL
    case GROVE_LITE_KIND_OPTIONAL_TENSOR:
      return visit(static_cast<std::optional<Tensor>*>(nullptr));
    case GROVE_LITE_KIND_OPTIONAL_INT:
      return visit(static_cast<std::optional<int64_t>*>(nullptr));
    case GROVE_LITE_KIND_OPTIONAL_DOUBLE:
      return visit(static_cast<std::optional<double>*>(nullptr));
#endif
    default:
      throw std::logic_error("a kind of argument that this glue does not know");
  }
}

// The same for results, which may be tuples too.
template <typename Visit>
bool ByResultKind(unsigned char kind, Visit&& visit) {
  switch (kind) {
    case GROVE_LITE_KIND_PAIR:
      return visit(static_cast<std::tuple<Tensor, Tensor>*>(nullptr));
    case GROVE_LITE_KIND_TRIPLE:
      return visit(static_cast<std::tuple<Tensor, Tensor, Tensor>*>(nullptr));
    default:
      return ByKind(kind, std::forward<Visit>(visit));
  }
}

bool Argument::Load(unsigned char kind, py::handle from, bool convert) {
  return ByKind(kind, [&](auto* type) {
    using V = typename std::remove_pointer<decltype(type)>::type;
    using Converter = make_caster<V>;
    static_assert(sizeof(Converter) <= sizeof(room_) && alignof(Converter) <= 16, "more room is needed");
    auto* converter = new (&room_) Converter();
    drop_ = [](void* room) { static_cast<Converter*>(room)->~Converter(); };
    if (!converter->load(from, convert)) return false;
    value_ = &py::detail::cast_op<V&>(*converter);
    return true;
  });
}

struct Function {
  void (*run)(void (*)(), void**, void*);
  void (*function)();
  std::vector<unsigned char> kinds;
  unsigned char result;
  bool torch_errors;
};

// A function of pybind11 whose types are known at run time: its dispatcher, messages and documentation are those of
// any other.
class Bound : public py::cpp_function {
 public:
  Bound(py::module_& module, const char* name, const char* doc, std::unique_ptr<Function> function) {
    auto record = make_function_record();
    Function* f = function.release();
    record->data[0] = f;
    record->free_data = [](py::detail::function_record* r) { delete static_cast<Function*>(r->data[0]); };
    record->impl = &Bound::Run;
    record->nargs_pos = static_cast<std::uint16_t>(f->kinds.size());
    py::handle sibling = py::getattr(module, name, py::none());
    py::object sibling_held = py::reinterpret_borrow<py::object>(sibling);
    record->name = const_cast<char*>(name);
    record->scope = module;
    record->sibling = sibling_held;
    if (doc != nullptr) record->doc = const_cast<char*>(doc);
    std::string text = "(";
    for (size_t i = 0; i < f->kinds.size(); ++i) {
      text += (i == 0 ? "{" : ", {") + NameOf(f->kinds[i]) + "}";
    }
    text += ") -> " + NameOf(f->result);
    const std::type_info* const no_types[] = {nullptr};
    initialize_generic(std::move(record), text.c_str(), no_types, f->kinds.size());
  }

 private:
  static std::string NameOf(unsigned char kind) {
    std::string name;
    const auto take = [&](auto* type) {
      constexpr auto text = make_caster<typename std::remove_pointer<decltype(type)>::type>::name;
      name = text.text;
      return true;
    };
    if (kind == GROVE_LITE_KIND_VOID) {
      take(static_cast<py::detail::void_type*>(nullptr));
    } else {
      ByResultKind(kind, take);
    }
    return name;
  }

  static void Call(const Function& f, void** values, void* result) {
    if (!f.torch_errors) return f.run(f.function, values, result);
    HANDLE_TH_ERRORS
    return f.run(f.function, values, result);
    END_HANDLE_TH_ERRORS_PYBIND
  }

  static py::handle Run(py::detail::function_call& call) {
    const Function& f = *static_cast<const Function*>(call.func.data[0]);
    constexpr size_t kMaxArguments = 64;
    Argument arguments[kMaxArguments];
    void* values[kMaxArguments];
    for (size_t i = 0; i < f.kinds.size(); ++i) {
      if (!arguments[i].Load(f.kinds[i], call.args[i], call.args_convert[i])) return PYBIND11_TRY_NEXT_OVERLOAD;
    }
    for (size_t i = 0; i < f.kinds.size(); ++i) values[i] = arguments[i].value();
    if (f.result == GROVE_LITE_KIND_VOID) {
      Call(f, values, nullptr);
      return py::none().release();
    }
    py::handle given;
    ByResultKind(f.result, [&](auto* type) {
      using V = typename std::remove_pointer<decltype(type)>::type;
      alignas(V) unsigned char room[sizeof(V)];
      Call(f, values, room);
      struct Held {
        V* value;
        ~Held() { value->~V(); }
      } held{reinterpret_cast<V*>(room)};
      given = make_caster<V>::cast(std::move(*held.value), py::return_value_policy::move, call.parent);
      return true;
    });
    return given;
  }
};

}  // namespace

extern "C" {

void grove_lite_tensor_none(void* to) { new (to) Tensor(); }
void grove_lite_tensor_copy(void* to, const void* tensor) { new (to) Tensor(T(tensor)); }
void grove_lite_tensor_move(void* to, void* tensor) { new (to) Tensor(std::move(*static_cast<Tensor*>(tensor))); }
void grove_lite_tensor_drop(void* tensor) { static_cast<Tensor*>(tensor)->~Tensor(); }
void grove_lite_tensor_assign(void* tensor, const void* from) { *static_cast<Tensor*>(tensor) = T(from); }

const grove_lite_layout grove_lite_tensors __attribute__((init_priority(101))) = FindLayout();

int64_t grove_lite_ask_slowly(const void* tensor, int question, int64_t argument) {
  return grove_lite_ask(tensor, question, argument);
}
void grove_lite_no_such_dimension(const void* tensor, int question, int64_t dimension) {
  grove_lite_ask(tensor, question, dimension);
  throw std::logic_error("a dimension that the tensor has after all");
}
int64_t grove_lite_ask(const void* tensor, int question, int64_t argument) {
  const Tensor& t = T(tensor);
  switch (question) {
    case GROVE_LITE_DEFINED:
      return t.defined();
    case GROVE_LITE_DIM:
      return t.dim();
    case GROVE_LITE_NUMEL:
      return t.numel();
    case GROVE_LITE_SIZE:
      return t.size(argument);
    case GROVE_LITE_STRIDE:
      return t.stride(argument);
    case GROVE_LITE_STORAGE_OFFSET:
      return t.storage_offset();
    case GROVE_LITE_ELEMENT_SIZE:
      return t.element_size();
    case GROVE_LITE_NBYTES:
      return static_cast<int64_t>(t.nbytes());
    case GROVE_LITE_IS_CUDA:
      return t.is_cuda();
    case GROVE_LITE_IS_CPU:
      return t.is_cpu();
    case GROVE_LITE_REQUIRES_GRAD:
      return t.requires_grad();
    case GROVE_LITE_IS_FLOATING_POINT:
      return t.is_floating_point();
    case GROVE_LITE_IS_CONTIGUOUS:
      return t.is_contiguous(static_cast<at::MemoryFormat>(argument));
    case GROVE_LITE_SCALAR_TYPE:
      return static_cast<int64_t>(t.scalar_type());
    case GROVE_LITE_GET_DEVICE:
      return t.get_device();
    case GROVE_LITE_DEVICE_TYPE:
      return static_cast<int64_t>(t.device().type());
    case GROVE_LITE_DEVICE_INDEX:
      return t.device().index();
    default:
      throw std::logic_error("a question that this glue does not know");
  }
}

bool grove_lite_equal(const void* a, const void* b) { return T(a).equal(T(b)); }
const int64_t* grove_lite_sizes(const void* tensor) { return T(tensor).sizes().data(); }
const int64_t* grove_lite_strides(const void* tensor) { return T(tensor).strides().data(); }
void grove_lite_options_of(const void* tensor, grove_lite_options* options) {
  const Tensor& t = T(tensor);
  const at::TensorOptions o = t.options();
  *options = {static_cast<int8_t>(c10::typeMetaToScalarType(o.dtype())),
              static_cast<int8_t>(o.device().type()),
              static_cast<int8_t>(o.device().index()),
              static_cast<int8_t>(o.layout()),
              -1,
              -1,
              -1};
}

void* grove_lite_data(const void* tensor, int scalar_type, int access) {
  const Tensor& t = T(tensor);
  switch (scalar_type) {
    case -1:
#if defined(TORCH_VERSION_MAJOR) && TORCH_VERSION_MAJOR >= 2
      if (access == GROVE_LITE_CONST_DATA_PTR) return const_cast<void*>(t.const_data_ptr());
      if (access == GROVE_LITE_MUTABLE_DATA_PTR) return t.mutable_data_ptr();
#endif
      return t.data_ptr();
    case 0:
      return DataOf<uint8_t>(t, access);
    case 1:
      return DataOf<int8_t>(t, access);
    case 2:
      return DataOf<int16_t>(t, access);
    case 3:
      return DataOf<int>(t, access);
    case 4:
      return DataOf<int64_t>(t, access);
    case 5:
      return DataOf<at::Half>(t, access);
    case 6:
      return DataOf<float>(t, access);
    case 7:
      return DataOf<double>(t, access);
    case 11:
      return DataOf<bool>(t, access);
    case 15:
      return DataOf<at::BFloat16>(t, access);
    default:
      throw std::logic_error("a type that this glue does not know");
  }
}

void grove_lite_item(const void* tensor, int scalar_type, void* value) {
  const Tensor& t = T(tensor);
  switch (scalar_type) {
    case 0:
      *static_cast<uint8_t*>(value) = t.item<uint8_t>();
      return;
    case 1:
      *static_cast<int8_t*>(value) = t.item<int8_t>();
      return;
    case 2:
      *static_cast<int16_t*>(value) = t.item<int16_t>();
      return;
    case 3:
      *static_cast<int*>(value) = t.item<int>();
      return;
    case 4:
      *static_cast<int64_t*>(value) = t.item<int64_t>();
      return;
    case 5:
      *static_cast<at::Half*>(value) = t.item<at::Half>();
      return;
    case 6:
      *static_cast<float*>(value) = t.item<float>();
      return;
    case 7:
      *static_cast<double*>(value) = t.item<double>();
      return;
    case 11:
      *static_cast<bool*>(value) = t.item<bool>();
      return;
    case 15:
      *static_cast<at::BFloat16*>(value) = t.item<at::BFloat16>();
      return;
    default:
      throw std::logic_error("a type that this glue does not know");
  }
}

void grove_lite_unary(void* to, int operation, const void* tensor) {
  const Tensor& t = T(tensor);
  switch (operation) {
#define GROVE_LITE_UNARY(name, id) \
  case id:                         \
    return Put(to, t.name());
#define GROVE_LITE_BINARY(name, id)
#include "grove_torch_lite_ops.inc"
#undef GROVE_LITE_UNARY
#undef GROVE_LITE_BINARY
    default:
      throw std::logic_error("an operation that this glue does not know");
  }
}

void grove_lite_binary(void* to, int operation, const void* a, const void* b) {
  switch (operation) {
#define GROVE_LITE_UNARY(name, id)
#define GROVE_LITE_BINARY(name, id) \
  case id:                          \
    return Put(to, T(a).name(T(b)));
#include "grove_torch_lite_ops.inc"
#undef GROVE_LITE_UNARY
#undef GROVE_LITE_BINARY
    default:
      throw std::logic_error("an operation that this glue does not know");
  }
}

void grove_lite_binary_scalar(void* to, int operation, const void* a, const grove_lite_scalar* b) {
  const at::Scalar scalar = ScalarOf(*b);
  switch (operation) {
    case GROVE_LITE_ADD:
      return Put(to, T(a) + scalar);
    case GROVE_LITE_SUB:
      return Put(to, T(a) - scalar);
    case GROVE_LITE_MUL:
      return Put(to, T(a) * scalar);
    case GROVE_LITE_DIV:
      return Put(to, T(a) / scalar);
    default:
      throw std::logic_error("an operation that this glue does not know");
  }
}

void grove_lite_ints(void* to, int operation, const void* tensor, const int64_t* values, size_t length) {
  const Tensor& t = T(tensor);
  const at::IntArrayRef v(values, length);
  switch (operation) {
    case GROVE_LITE_CONTIGUOUS_AS:
      return Put(to, t.contiguous(static_cast<at::MemoryFormat>(v[0])));
    case GROVE_LITE_VIEW:
      return Put(to, t.view(v));
    case GROVE_LITE_RESHAPE:
      return Put(to, t.reshape(v));
    case GROVE_LITE_EXPAND:
      return Put(to, t.expand(v));
    case GROVE_LITE_PERMUTE:
      return Put(to, t.permute(v));
    case GROVE_LITE_TRANSPOSE:
      return Put(to, t.transpose(v[0], v[1]));
    case GROVE_LITE_SQUEEZE_DIM:
      return Put(to, t.squeeze(v[0]));
    case GROVE_LITE_UNSQUEEZE:
      return Put(to, t.unsqueeze(v[0]));
    case GROVE_LITE_FLATTEN:
      return Put(to, t.flatten(v[0], v[1]));
    case GROVE_LITE_SELECT:
      return Put(to, t.select(v[0], v[1]));
    case GROVE_LITE_NARROW:
      return Put(to, t.narrow(v[0], v[1], v[2]));
    case GROVE_LITE_SUM_DIMS:
      return Put(to, t.sum(v));
    case GROVE_LITE_SUM_KEEP:
      return Put(to, t.sum(v, true));
    case GROVE_LITE_MEAN_DIMS:
      return Put(to, t.mean(v));
    case GROVE_LITE_MEAN_KEEP:
      return Put(to, t.mean(v, true));
    default:
      throw std::logic_error("an operation that this glue does not know");
  }
}

void grove_lite_to(void* to, const void* tensor, const grove_lite_options* options) {
  Put(to, T(tensor).to(OptionsOf(*options)));
}
void grove_lite_zero(const void* tensor) { T(tensor).zero_(); }
void grove_lite_fill(const void* tensor, const grove_lite_scalar* value) { T(tensor).fill_(ScalarOf(*value)); }
void grove_lite_copy_into(const void* tensor, const void* source, bool non_blocking) {
  T(tensor).copy_(T(source), non_blocking);
}

#define GROVE_MAKE(space)                                               \
  switch (operation) {                                                  \
    case GROVE_LITE_EMPTY:                                              \
      return Put(to, space::empty(shape, o));                           \
    case GROVE_LITE_ZEROS:                                              \
      return Put(to, space::zeros(shape, o));                           \
    case GROVE_LITE_ONES:                                               \
      return Put(to, space::ones(shape, o));                            \
    case GROVE_LITE_FULL:                                               \
      return Put(to, space::full(shape, ScalarOf(*value), o));          \
    default:                                                            \
      throw std::logic_error("a factory that this glue does not know"); \
  }
void grove_lite_make(void* to, int operation, bool in_torch, const int64_t* size, size_t length,
                     const grove_lite_scalar* value, const grove_lite_options* options) {
  const at::IntArrayRef shape(size, length);
  const at::TensorOptions o = OptionsOf(*options);
  if (in_torch) {
    GROVE_MAKE(torch)
  } else {
    GROVE_MAKE(at)
  }
}
#undef GROVE_MAKE

#define GROVE_MAKE(space)                                               \
  switch (operation) {                                                  \
    case GROVE_LITE_EMPTY:                                              \
      return Put(to, space::empty_like(t, o));                          \
    case GROVE_LITE_ZEROS:                                              \
      return Put(to, space::zeros_like(t, o));                          \
    case GROVE_LITE_ONES:                                               \
      return Put(to, space::ones_like(t, o));                           \
    case GROVE_LITE_FULL:                                               \
      return Put(to, space::full_like(t, ScalarOf(*value), o));         \
    default:                                                            \
      throw std::logic_error("a factory that this glue does not know"); \
  }
void grove_lite_make_like(void* to, int operation, bool in_torch, const void* like, const grove_lite_scalar* value,
                          const grove_lite_options* options) {
  const Tensor& t = T(like);
  const at::TensorOptions o = OptionsOf(*options);
  if (in_torch) {
    GROVE_MAKE(torch)
  } else {
    GROVE_MAKE(at)
  }
}
#undef GROVE_MAKE

const char* grove_lite_scalar_type_name(int scalar_type) {
  return c10::toString(static_cast<at::ScalarType>(scalar_type));
}
size_t grove_lite_type_meta_name(int scalar_type, const char** text) {
  const auto name = c10::scalarTypeToTypeMeta(static_cast<at::ScalarType>(scalar_type)).name();
  *text = name.data();
  return name.size();
}
size_t grove_lite_item_size(int scalar_type) { return c10::elementSize(static_cast<at::ScalarType>(scalar_type)); }
void grove_lite_check_failed(const char* function, const char* file, uint32_t line, const char* message) {
  c10::detail::torchCheckFail(function, file, line, message);
}
void grove_lite_not_dispatched(const char* function, const char* file, uint32_t line, const char* message) {
  try {  // with what this version throws
    AT_DISPATCH_SWITCH(at::kInt, "int", AT_DISPATCH_CASE(at::kFloat, [] {}));
  } catch (const c10::NotImplementedError&) {
    throw c10::NotImplementedError({function, file, line}, message);
  } catch (const c10::Error&) {
  }
  c10::detail::torchCheckFail(function, file, line, message);
}

#ifdef GROVE_WITH_CUDA
void* grove_lite_current_stream(int device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device)).stream();
}
void grove_lite_cuda_check(int error, const char* file, const char* function, uint32_t line) {
  c10::cuda::c10_cuda_check_implementation(error, file, function, line, true);
}
int grove_lite_current_device() { return c10::cuda::current_device(); }
int grove_lite_exchange_device(int device) {
  const int before = c10::cuda::current_device();
  if (before != device) c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
  return before;
}
void grove_lite_set_device(int device) { c10::cuda::set_device(static_cast<c10::DeviceIndex>(device)); }
const void* grove_lite_device_properties(int device) {
  return device < 0 ? at::cuda::getCurrentDeviceProperties()
                    : at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device));
}
void grove_lite_synchronize_stream(void* stream) { c10::cuda::stream_synchronize(static_cast<cudaStream_t>(stream)); }
#endif

void* grove_lite_module(const char* name, void (*fill)(void* module)) {
  PYBIND11_CHECK_PYTHON_VERSION
  PYBIND11_ENSURE_INTERNALS_READY
  auto module = py::module_::create_extension_module(name, nullptr, new PyModuleDef());
  try {
    fill(&module);
    return module.ptr();
  }
  PYBIND11_CATCH_INIT_EXCEPTIONS
  return nullptr;
}

void grove_lite_define(void* module, const char* name, const char* doc, void (*run)(void (*)(), void**, void*),
                       void (*function)(), const unsigned char* kinds, size_t count, unsigned char result,
                       bool torch_errors) {
  auto& m = *static_cast<py::module_*>(module);
  auto f = std::make_unique<Function>();
  *f = Function{run, function, std::vector<unsigned char>(kinds, kinds + count), result, torch_errors};
  Bound bound(m, name, doc, std::move(f));
  m.add_object(name, bound, true);
}

}  // extern "C"
