// Call a compiled program through the C interface of PyTorch, by the addresses of its functions, without its headers
// and libraries. A handle is a tensor; a program takes over the handles of its inputs.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

using Handle = void *;

struct Interface {
  int32_t (*run)(void *program, Handle *inputs, size_t, Handle *outputs, size_t, void *stream, void *executor);
  int32_t (*share)(Handle tensor, Handle *another);
  int32_t (*address)(Handle tensor, void **data);
  int32_t (*drop)(Handle tensor);
};
