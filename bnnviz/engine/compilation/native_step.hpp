// The loop over steps that are written in C++ around a compiled program or around the gradient of a target that is C++
// too, or the two halves of such a step, between which the caller does what the program would.
//
// A sampler's file defines a class of its chains, templated on the type of a coordinate, with
//
//   Chains(const Steps &)                    reads where everything lies;
//   void before(int64_t step, bool first)    what comes before the program, which then reads parts of the state;
//   bool after(int64_t step, int64_t row)    what comes after it; whether a move has ended;
//   void part(const Gradient &)              what the program would do, by the gradient of the target.
//
// and ends with NATIVE_STEP(Chains). Of PyTorch only the C interface is used, as in step_loop.cpp.

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

// A vector of the state that is kept after each step, as a row.
struct KeptVector {
  const char *numbers;
  char *rows;
  int64_t bytes;
};

// Where a part of what happened is written: a row for each step.
struct ToldPart {
  char *rows;
  int64_t stride;
};

struct Steps {
  Interface torch;
  void *program;
  int64_t chains, dim, in_float64, inputs, outputs, kept, randoms;
  void *const *state;         // the tensors of the state, in the order of its fields
  void **results;             // the numbers that the program, or the caller, has returned
  void *const *given;         // what was drawn before the first step
  const double *uniforms;     // (steps, randoms)
  const double *numbers;      // settings of the sampler
  const ToldPart *told;       // in the order of what happened
  const KeptVector *rows;
  Handle *taken, *returned;
  const void *scale;          // what has been learnt, where the part is C++ too
};

// The gradient of a target: derive_perceptron of mlp_native.cpp, with what it needs.
struct Gradient {
  void (*derive)(const void *network, const void *rows, int64_t chains, const void *x, const void *v, void *potential,
                 void *gradient, void *curvature);
  const void *network, *rows;
};

inline bool run_program(const Steps &steps, const Handle *inputs) {
  const Interface &torch = steps.torch;
  for (int64_t i = 0; i < steps.inputs; ++i)
    if (torch.share(inputs[i], &steps.taken[i])) return false;
  if (torch.run(steps.program, steps.taken, steps.inputs, steps.returned, steps.outputs, nullptr, nullptr)) return false;
  for (int64_t i = 0; i < steps.outputs; ++i)
    if (torch.address(steps.returned[i], &steps.results[i])) return false;
  return true;
}

inline void drop_results(const Steps &steps) {
  for (int64_t i = 0; i < steps.outputs; ++i) {
    bool twice = false;  // a tensor that is returned twice is one handle
    for (int64_t j = 0; j < i; ++j) twice |= steps.returned[i] == steps.returned[j];
    if (!twice) steps.torch.drop(steps.returned[i]);
  }
}

inline void keep_rows(const Steps &steps, int64_t row) {
  for (int64_t i = 0; i < steps.kept; ++i) {
    const KeptVector &kept = steps.rows[i];
    std::memcpy(kept.rows + row * kept.bytes, kept.numbers, kept.bytes);
  }
}

template <class Chains>
int64_t take_native_steps(const Steps &steps, const Handle *inputs, int64_t first, int64_t row, int64_t count) {
  Chains chains(steps);
  for (int64_t step = 0; step < count; ++step) {
    chains.before(step, first && step == 0);
    if (!run_program(steps, inputs)) return -1;
    const bool ended = chains.after(step, row + step);
    drop_results(steps);
    keep_rows(steps, row + step);
    if (ended) return step + 1;
  }
  return count;
}

template <class Chains>
int64_t take_whole_steps(const Steps &steps, const Gradient &gradient, int64_t first, int64_t row, int64_t count) {
  Chains chains(steps);
  for (int64_t step = 0; step < count; ++step) {
    chains.before(step, first && step == 0);
    chains.part(gradient);
    const bool ended = chains.after(step, row + step);
    keep_rows(steps, row + step);
    if (ended) return step + 1;
  }
  return count;
}

// Chains between the halves of a step, of either type.
struct Held {
  virtual ~Held() = default;
  virtual void before(bool first) = 0;
  virtual bool after(int64_t row) = 0;
};

template <class Chains>
struct HeldChains final : Held {
  explicit HeldChains(const Steps &steps) : steps(steps), chains(steps) {}
  // The uniforms are those of one step.
  void before(bool first) override { chains.before(0, first); }
  bool after(int64_t row) override {
    const bool ended = chains.after(0, row);
    keep_rows(steps, row);
    return ended;
  }
  const Steps &steps;
  Chains chains;
};

// take_native: take up to so many steps, fewer where a move ends; return how many, or -1 where the program has failed.
// ``first`` tells whether something was drawn before the first one.
// take_whole: the same around the gradient of a target.
// hold_native: read where everything lies; before_native and after_native are the halves of a step, and the second one
// returns whether a move has ended.
#define NATIVE_STEP(Chains)                                                                                     \
  extern "C" int64_t take_native(const Steps *steps, const Handle *inputs, int64_t first, int64_t row,          \
                                 int64_t count) {                                                               \
    return steps->in_float64 ? take_native_steps<Chains<double>>(*steps, inputs, first, row, count)             \
                             : take_native_steps<Chains<float>>(*steps, inputs, first, row, count);             \
  }                                                                                                             \
  extern "C" int64_t take_whole(const Steps *steps, const Gradient *gradient, int64_t first, int64_t row,         \
                                int64_t count) {                                                                \
    return steps->in_float64 ? take_whole_steps<Chains<double>>(*steps, *gradient, first, row, count)           \
                             : take_whole_steps<Chains<float>>(*steps, *gradient, first, row, count);           \
  }                                                                                                             \
  extern "C" Held *hold_native(const Steps *steps) {                                                            \
    if (steps->in_float64) return new HeldChains<Chains<double>>(*steps);                                       \
    return new HeldChains<Chains<float>>(*steps);                                                               \
  }                                                                                                             \
  extern "C" void before_native(Held *held, int64_t first) { held->before(first); }                             \
  extern "C" int64_t after_native(Held *held, int64_t row) { return held->after(row); }                         \
  extern "C" void drop_native(Held *held) { delete held; }
