/* grove/kernel.h: the entry point of a native candidate (.cu or .cpp). C and C++; needs no other header.
 *
 *   #include <grove/kernel.h>
 *   GROVE_KERNEL(args) {
 *     const float* x = (const float*)args->inputs[0].data;
 *     float* y = (float*)args->outputs[0].data;
 *     ...
 *     return 0;
 *   }
 *
 * Destination-passing style: every output is allocated by the caller with the shape and dtype of the reference's
 * output, contiguous, and filled with garbage; the kernel writes all of it. Inputs must not be written.
 *
 * Inputs are, in this order: the problem's inputs as get_inputs() gives them, then the model's parameters and buffers
 * in state_dict order. All are contiguous in row-major order. A Python number among the inputs is a 0-dimensional host
 * tensor (float64, int64 or bool) whatever the device.
 *
 * CUDA: data pointers are device pointers; launch on args->stream; do not synchronise. Work on other streams must be
 * joined into args->stream before returning. CPU: args->stream is NULL; use at most args->num_threads threads.
 *
 * Return 0, or any other number to say that the kernel failed (a CUDA launch error is noticed without it).
 * The same process calls the kernel many times, with other pointers and values each time, never concurrently.
 */
#ifndef GROVE_KERNEL_H_
#define GROVE_KERNEL_H_

#include <stdint.h>

/* The layout of DLPack 0.8's DLTensor (https://github.com/dmlc/dlpack), so that <dlpack/dlpack.h> can be used beside
 * this header when it is included first. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
typedef struct {
  int32_t device_type; /* 1 = CPU, 2 = CUDA */
  int32_t device_id;
} DLDevice;
typedef struct {
  uint8_t code;   /* 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool */
  uint8_t bits;   /* bits of one lane */
  uint16_t lanes; /* 1 */
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;     /* in elements; never NULL here */
  uint64_t byte_offset; /* always 0 here */
} DLTensor;
#endif

#define GROVE_KERNEL_ABI 1

typedef struct grove_args {
  uint32_t abi;  /* GROVE_KERNEL_ABI of the caller */
  uint32_t size; /* sizeof(grove_args) of the caller; fields are only ever added at the end */
  int32_t num_inputs;
  int32_t num_outputs;
  const DLTensor* inputs;
  const DLTensor* outputs;
  void* stream;        /* cudaStream_t, NULL on the CPU */
  int32_t num_threads; /* CPU: threads the kernel may use */
  int32_t reserved;
} grove_args;

#ifdef __cplusplus
#define GROVE_KERNEL(args) extern "C" __attribute__((visibility("default"))) int grove_kernel(const grove_args* args)
#else
#define GROVE_KERNEL(args) __attribute__((visibility("default"))) int grove_kernel(const grove_args* args)
#endif

#endif /* GROVE_KERNEL_H_ */
