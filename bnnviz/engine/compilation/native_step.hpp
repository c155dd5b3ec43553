// The loop over steps in C++ around the part of a step that evaluates the target.
//
// A sampler's file defines a class of its chains, templated on the type of a coordinate, with
//
//   Chains(const Steps &)                    reads the addresses;
//   void before(int64_t step, bool first)    the work before the part, which then reads the state;
//   void part(const Gradient &)              the part by a gradient in C++;
//   bool after(int64_t step, int64_t row)    the work after the part; returns whether a move has ended.
//
// and ends with NATIVE_STEP(Chains).

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// A tensor of the state to keep after each step, as a row.
struct KeptPart {
  const char *numbers;
  char *rows;
  int64_t bytes;
};

// The destination of a field of the info: a row per step.
struct InfoPart {
  char *rows;
  int64_t stride;
};

// The gradient of a target: derive_perceptron of mlp_native.cpp with its arguments.
struct Gradient {
  void (*derive)(const void *network, const void *rows, int64_t chains, const void *x, const void *v, void *potential,
                 void *gradient, void *curvature);
  const void *network, *rows;
};

struct Steps {
  int64_t chains, dim, in_float64, kept, randoms;
  void *const *state;             // the tensors of the state, in the order of its fields
  void **results;                 // the tensors returned by the part
  void *const *given;             // inputs drawn before the first step
  const double *uniforms;         // (steps, randoms)
  const double *numbers;          // settings of the sampler
  const InfoPart *infos;           // in the order of the info's fields
  const KeptPart *rows;
  int32_t (*part)(void *context); // fills the results; nonzero on failure; null for a gradient in C++
  void *context;
  const Gradient *gradient;
  const void *scale;              // of the metric, for a gradient in C++
  int64_t ended;                  // set by `take`: whether the last step has ended a move
};

template <class Chains>
int64_t take_steps(Steps &steps, int64_t first, int64_t row, int64_t count) {
  Chains chains(steps);
  steps.ended = 0;
  for (int64_t step = 0; step < count; ++step) {
    chains.before(step, first && step == 0);
    if (!steps.part)
      chains.part(*steps.gradient);
    else if (steps.part(steps.context))
      return -1;
    steps.ended = chains.after(step, row + step);
    for (int64_t i = 0; i < steps.kept; ++i) {
      const KeptPart &kept = steps.rows[i];
      std::memcpy(kept.rows + (row + step) * kept.bytes, kept.numbers, kept.bytes);
    }
    if (steps.ended) return step + 1;
  }
  return count;
}

// Take at most `count` steps, up to the end of a move; return their number, or -1 if the part has failed. `first` is
// whether inputs were drawn before the first one.
#define NATIVE_STEP(Chains)                                                                                     \
  extern "C" int64_t take(Steps *steps, int64_t first, int64_t row, int64_t count) {                            \
    return steps->in_float64 ? take_steps<Chains<double>>(*steps, first, row, count)                            \
                             : take_steps<Chains<float>>(*steps, first, row, count);                            \
  }
