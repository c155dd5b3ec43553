// Take steps of a compiled program one after the other: each returned state is the input of the next step.

#include "program.hpp"

// Random numbers of every step, and the place from which the program reads those of one.
struct Drawn {
  const char *numbers;
  int64_t stride, bytes;
  char *read_at;
};

// An output to keep, as a row per step.
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
  int64_t ends, ends_bytes;  // the output with the ended moves (-1: none), and its bytes
  int64_t ended;             // set by `take`: whether the last step has ended a move
};

static bool one_step(Loop &loop, const Handle *others, int64_t row) {
  const Interface &torch = loop.torch;
  std::memcpy(loop.taken, loop.state, loop.states * sizeof(Handle));
  std::memset(loop.state, 0, loop.states * sizeof(Handle));
  for (int64_t i = 0; i < loop.others; ++i)
    if (torch.share(others[i], &loop.taken[loop.states + i])) return false;
  const size_t inputs = loop.states + loop.others;
  if (torch.run(loop.program, loop.taken, inputs, loop.returned, loop.outputs, nullptr, nullptr)) return false;
  // A tensor returned twice has one handle.
  for (int64_t i = 1; i < loop.outputs; ++i)
    for (int64_t j = 0; j < i; ++j)
      if (loop.returned[i] == loop.returned[j]) {
        if (torch.share(loop.returned[j], &loop.returned[i])) return false;
        break;
      }
  std::memcpy(loop.state, loop.returned, loop.states * sizeof(Handle));
  void *data = nullptr;
  for (int64_t i = 0; i < loop.kept; ++i) {
    const Kept &kept = loop.rows[i];
    if (torch.address(loop.returned[kept.output], &data)) return false;
    std::memcpy(kept.rows + row * kept.bytes, data, kept.bytes);
  }
  loop.ended = 0;
  if (loop.ends >= 0) {
    if (torch.address(loop.returned[loop.ends], &data)) return false;
    for (int64_t i = 0; i < loop.ends_bytes; ++i) loop.ended |= static_cast<const char *>(data)[i] != 0;
  }
  for (int64_t i = loop.states; i < loop.outputs; ++i) torch.drop(loop.returned[i]);
  return true;
}

// Take at most `steps` steps, up to the end of a move; return their number, or -1 if the program has failed.
// The first step has other inputs (drawn beforehand) than the later ones.
extern "C" int64_t take(Loop *loop, const Handle *first, const Handle *later, int64_t row, int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < loop->drawn; ++i) {
      const Drawn &drawn = loop->draws[i];
      std::memcpy(drawn.read_at, drawn.numbers + step * drawn.stride, drawn.bytes);
    }
    if (!one_step(*loop, step ? later : first, row + step)) return -1;
    if (loop->ended) return step + 1;
  }
  return steps;
}

// The part of a step in C++ as a compiled program: `part` of native_step.hpp.
struct Part {
  Interface torch;
  void *program;
  int64_t inputs, outputs;
  const Handle *given;
  Handle *taken, *returned;  // the outputs of the last call live until the next one
  void **results;
};

extern "C" void drop_part(Part *part) {
  for (int64_t i = 0; i < part->outputs; ++i) {
    bool twice = false;
    for (int64_t j = 0; j < i; ++j) twice |= part->returned[i] == part->returned[j];
    if (!twice && part->returned[i]) part->torch.drop(part->returned[i]);
  }
  std::memset(part->returned, 0, part->outputs * sizeof(Handle));
}

extern "C" int32_t run_part(void *context) {
  Part &part = *static_cast<Part *>(context);
  const Interface &torch = part.torch;
  drop_part(&part);
  for (int64_t i = 0; i < part.inputs; ++i)
    if (torch.share(part.given[i], &part.taken[i])) return 1;
  if (torch.run(part.program, part.taken, part.inputs, part.returned, part.outputs, nullptr, nullptr)) return 1;
  for (int64_t i = 0; i < part.outputs; ++i)
    if (torch.address(part.returned[i], &part.results[i])) return 1;
  return 0;
}
