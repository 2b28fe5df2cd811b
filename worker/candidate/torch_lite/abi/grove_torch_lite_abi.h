// What grove_torch_lite.h asks of glue.cc: plain C, so that neither side sees the other's types. A `void*` that is a
// tensor points to an at::Tensor, or to room for one where it is named `to`. Functions throw what PyTorch throws.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

struct grove_lite_options {
  int8_t dtype, device_type, device_index, layout, requires_grad, pinned, memory_format;  // -1 = not set
};

enum { GROVE_LITE_SCALAR_INT, GROVE_LITE_SCALAR_FLOAT, GROVE_LITE_SCALAR_BOOL };
struct grove_lite_scalar {
  int32_t kind;
  int64_t integer;  // INT, BOOL
  double real;      // FLOAT
};

// Where PyTorch keeps what it reads inline: byte offsets in what a tensor points to. It is a number of dimensions,
// followed by the five sizes and the five strides in place or, where there are more, by a pointer to sizes and strides.
// All of it holds while the word at `policy` has none of the bits in `policy_mask`. Where this PyTorch keeps things in
// another way, `policy` is 0 and the mask is full: the first word is part of an address and never 0.
enum { GROVE_LITE_DIMS_IN_PLACE = 5 };
struct grove_lite_layout {
  size_t sizes, storage_offset, numel, policy;
  uint32_t policy_mask;
};

enum grove_lite_question {
  GROVE_LITE_DEFINED,
  GROVE_LITE_DIM,
  GROVE_LITE_NUMEL,
  GROVE_LITE_SIZE,
  GROVE_LITE_STRIDE,
  GROVE_LITE_STORAGE_OFFSET,
  GROVE_LITE_ELEMENT_SIZE,
  GROVE_LITE_NBYTES,
  GROVE_LITE_IS_CUDA,
  GROVE_LITE_IS_CPU,
  GROVE_LITE_REQUIRES_GRAD,
  GROVE_LITE_IS_FLOATING_POINT,
  GROVE_LITE_IS_CONTIGUOUS,
  GROVE_LITE_SCALAR_TYPE,
  GROVE_LITE_GET_DEVICE,
  GROVE_LITE_DEVICE_TYPE,
  GROVE_LITE_DEVICE_INDEX,
};
enum grove_lite_access { GROVE_LITE_DATA_PTR, GROVE_LITE_CONST_DATA_PTR, GROVE_LITE_MUTABLE_DATA_PTR };
enum grove_lite_operation {
  // One tensor.
  GROVE_LITE_ABS,
  GROVE_LITE_EXP,
  GROVE_LITE_LOG,
  GROVE_LITE_SQRT,
  GROVE_LITE_RSQRT,
  GROVE_LITE_TANH,
  GROVE_LITE_SIGMOID,
  GROVE_LITE_RELU,
  GROVE_LITE_NEG,
  GROVE_LITE_CLONE,
  GROVE_LITE_DETACH,
  GROVE_LITE_T,
  GROVE_LITE_SQUEEZE,
  GROVE_LITE_SUM,
  GROVE_LITE_MEAN,
  GROVE_LITE_CONTIGUOUS,
  GROVE_LITE_CUDA,
  GROVE_LITE_CPU,
  // Two tensors; the four of arithmetic also a tensor and a number.
  GROVE_LITE_MATMUL,
  GROVE_LITE_MM,
  GROVE_LITE_BMM,
  GROVE_LITE_ADD,
  GROVE_LITE_SUB,
  GROVE_LITE_MUL,
  GROVE_LITE_DIV,
  GROVE_LITE_VIEW_AS,
  GROVE_LITE_EXPAND_AS,
  GROVE_LITE_RESHAPE_AS,
  // A tensor and integers.
  GROVE_LITE_CONTIGUOUS_AS,
  GROVE_LITE_VIEW,
  GROVE_LITE_RESHAPE,
  GROVE_LITE_EXPAND,
  GROVE_LITE_PERMUTE,
  GROVE_LITE_TRANSPOSE,
  GROVE_LITE_SQUEEZE_DIM,
  GROVE_LITE_UNSQUEEZE,
  GROVE_LITE_FLATTEN,
  GROVE_LITE_SELECT,
  GROVE_LITE_NARROW,
  GROVE_LITE_SUM_DIMS,
  GROVE_LITE_SUM_KEEP,
  GROVE_LITE_MEAN_DIMS,
  GROVE_LITE_MEAN_KEEP,
  // Factories.
  GROVE_LITE_EMPTY,
  GROVE_LITE_ZEROS,
  GROVE_LITE_ONES,
  GROVE_LITE_FULL,
};

#pragma GCC visibility push(hidden)
void grove_lite_tensor_none(void* to);
void grove_lite_tensor_copy(void* to, const void* tensor);
void grove_lite_tensor_move(void* to, void* tensor);
void grove_lite_tensor_drop(void* tensor);
void grove_lite_tensor_assign(void* tensor, const void* from);
extern const struct grove_lite_layout grove_lite_tensors;  // from before the extension's own initialisers on
int64_t grove_lite_ask(const void* tensor, int question, int64_t argument);
// The same question; for those that grove_lite_layout answers, where it does not hold. It changes nothing, so that what
// a loop asks again and again is asked once.
int64_t grove_lite_ask_slowly(const void* tensor, int question, int64_t argument) __attribute__((pure, cold));
// Throws what the question does for a dimension that the tensor does not have.
[[noreturn]] void grove_lite_no_such_dimension(const void* tensor, int question, int64_t dimension)
    __attribute__((cold));
bool grove_lite_equal(const void* a, const void* b);
const int64_t* grove_lite_sizes(const void* tensor) __attribute__((pure, cold));
const int64_t* grove_lite_strides(const void* tensor) __attribute__((pure, cold));
void grove_lite_options_of(const void* tensor, struct grove_lite_options* options);
void* grove_lite_data(const void* tensor, int scalar_type, int access);  // scalar_type -1: without its check
void grove_lite_item(const void* tensor, int scalar_type, void* value);
void grove_lite_unary(void* to, int operation, const void* tensor);
void grove_lite_binary(void* to, int operation, const void* a, const void* b);
void grove_lite_binary_scalar(void* to, int operation, const void* a, const struct grove_lite_scalar* b);
void grove_lite_ints(void* to, int operation, const void* tensor, const int64_t* values, size_t length);
void grove_lite_to(void* to, const void* tensor, const struct grove_lite_options* options);
void grove_lite_zero(const void* tensor);
void grove_lite_fill(const void* tensor, const struct grove_lite_scalar* value);
void grove_lite_copy_into(const void* tensor, const void* source, bool non_blocking);
void grove_lite_make(void* to, int operation, bool in_torch, const int64_t* size, size_t length,
                     const struct grove_lite_scalar* value, const struct grove_lite_options* options);
void grove_lite_make_like(void* to, int operation, bool in_torch, const void* like,
                          const struct grove_lite_scalar* value, const struct grove_lite_options* options);

const char* grove_lite_scalar_type_name(int scalar_type);              // "Float"
size_t grove_lite_type_meta_name(int scalar_type, const char** text);  // "float"; its length, without a NUL
size_t grove_lite_item_size(int scalar_type);
[[noreturn]] void grove_lite_check_failed(const char* function, const char* file, uint32_t line, const char* message);
// A type that a dispatch has no case for: another error than that of a failed check in some versions.
[[noreturn]] void grove_lite_not_dispatched(const char* function, const char* file, uint32_t line, const char* message);

// CUDA; a stream is a cudaStream_t.
void* grove_lite_current_stream(int device);
void grove_lite_cuda_check(int error, const char* file, const char* function, uint32_t line);
int grove_lite_current_device();
int grove_lite_exchange_device(int device);
void grove_lite_set_device(int device);
const void* grove_lite_device_properties(int device);  // cudaDeviceProp; -1 = the current one
void grove_lite_synchronize_stream(void* stream);

#pragma GCC visibility pop

// Bindings. Kinds of arguments and results, each an object of that type.
enum {
  GROVE_LITE_KIND_VOID = 1,
  GROVE_LITE_KIND_TENSOR,
  GROVE_LITE_KIND_BOOL,
  GROVE_LITE_KIND_INT,
  GROVE_LITE_KIND_UNSIGNED,
  GROVE_LITE_KIND_LONG,
  GROVE_LITE_KIND_UNSIGNED_LONG,
  GROVE_LITE_KIND_LONG_LONG,
  GROVE_LITE_KIND_FLOAT,
  GROVE_LITE_KIND_DOUBLE,
  GROVE_LITE_KIND_STRING,
  GROVE_LITE_KIND_TENSORS,
  GROVE_LITE_KIND_INTS,
  GROVE_LITE_KIND_PAIR,
  GROVE_LITE_KIND_TRIPLE,
  GROVE_LITE_KIND_OPTIONAL_TENSOR,
  GROVE_LITE_KIND_OPTIONAL_INT,
  GROVE_LITE_KIND_OPTIONAL_DOUBLE,
};
#pragma GCC visibility push(hidden)
void* grove_lite_module(const char* name, void (*fill)(void* module));
void grove_lite_define(void* module, const char* name, const char* doc,
                       void (*run)(void (*function)(), void** arguments, void* result), void (*function)(),
                       const unsigned char* kinds, size_t count, unsigned char result, bool torch_errors);

#pragma GCC visibility pop

}  // extern "C"
