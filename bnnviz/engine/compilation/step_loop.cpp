// Take steps of a compiled program one after the other: what it returns of the state is what it takes for the next one.
//
// Of PyTorch only the C interface is used, by the addresses of its functions, so that this needs none of its headers and
// libraries. A handle is a tensor there; a program takes the handles of its inputs away from whoever runs it.

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

// Random numbers of every step, and where the program reads those of one.
struct Drawn {
  const char *numbers;
  int64_t stride, bytes;
  char *read_at;
};

// What is kept of an output: a row for each step.
struct Kept {
  int64_t output, bytes;
  char *rows;
};

struct Loop {
  Interface torch;
  void *program;
  int64_t states, others, outputs, drawn, kept;
  Handle *state, *taken, *returned;
  const Drawn *draws;
  const Kept *rows;
  int64_t ends, ends_from, ends_to;  // the output that says which moves have ended, -1 for none, and the bytes there
};

static bool same_again(const Loop &loop) {
  // A tensor that is returned twice is one handle.
  for (int64_t i = 1; i < loop.outputs; ++i)
    for (int64_t j = 0; j < i; ++j)
      if (loop.returned[i] == loop.returned[j]) {
        if (loop.torch.share(loop.returned[j], &loop.returned[i])) return false;
        break;
      }
  return true;
}

static bool one_step(const Loop &loop, const Handle *others, int64_t row, bool &ended) {
  const Interface &torch = loop.torch;
  std::memcpy(loop.taken, loop.state, loop.states * sizeof(Handle));
  std::memset(loop.state, 0, loop.states * sizeof(Handle));
  for (int64_t i = 0; i < loop.others; ++i)
    if (torch.share(others[i], &loop.taken[loop.states + i])) return false;
  const size_t inputs = loop.states + loop.others;
  if (torch.run(loop.program, loop.taken, inputs, loop.returned, loop.outputs, nullptr, nullptr)) return false;
  if (!same_again(loop)) return false;
  std::memcpy(loop.state, loop.returned, loop.states * sizeof(Handle));
  void *data = nullptr;
  for (int64_t i = 0; i < loop.kept; ++i) {
    const Kept &kept = loop.rows[i];
    if (torch.address(loop.returned[kept.output], &data)) return false;
    std::memcpy(kept.rows + row * kept.bytes, data, kept.bytes);
  }
  ended = false;
  if (loop.ends >= 0) {
    if (torch.address(loop.returned[loop.ends], &data)) return false;
    for (int64_t i = loop.ends_from; i < loop.ends_to; ++i) ended |= static_cast<const char *>(data)[i] != 0;
  }
  for (int64_t i = loop.states; i < loop.outputs; ++i) torch.drop(loop.returned[i]);
  return true;
}

// Take up to so many steps, fewer where a move ends; return how many, or -1 where the program has failed.
// The first step has other inputs (what was drawn for it) than those after it.
extern "C" int64_t take_steps(const Loop *loop, const Handle *first, const Handle *later, int64_t row, int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < loop->drawn; ++i) {
      const Drawn &drawn = loop->draws[i];
      std::memcpy(drawn.read_at, drawn.numbers + step * drawn.stride, drawn.bytes);
    }
    bool ended = false;
    if (!one_step(*loop, step ? later : first, row + step, ended)) return -1;
    if (ended) return step + 1;
  }
  return steps;
}
