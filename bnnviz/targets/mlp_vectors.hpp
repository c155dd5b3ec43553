// Vectors of a processor, of 32 bytes, with what a perceptron's activations and losses compute of them.

#pragma once

#include <cstdint>

namespace {

constexpr int64_t BYTES = 32;  // of a vector

template <class Real>
struct Lanes {
  typedef Real Vector __attribute__((vector_size(BYTES)));
  typedef Real Loose __attribute__((vector_size(BYTES), aligned(sizeof(Real)), may_alias));
  static constexpr int64_t COUNT = BYTES / sizeof(Real);
};
template <>
struct Lanes<int32_t> {
  typedef int32_t Vector __attribute__((vector_size(BYTES)));
};
template <>
struct Lanes<int64_t> {
  typedef int64_t Vector __attribute__((vector_size(BYTES)));
};

template <class Real>
using Vector = typename Lanes<Real>::Vector;

#define INLINE inline __attribute__((always_inline))
#define INLINED __attribute__((always_inline))

template <class Real>
INLINE Vector<Real> load(const Real *from) {
  return *reinterpret_cast<const typename Lanes<Real>::Loose *>(from);
}

template <class Real>
INLINE void store(Real *to, Vector<Real> value) {
  *reinterpret_cast<typename Lanes<Real>::Loose *>(to) = value;
}

template <class Real>
INLINE Vector<Real> all(Real value) {
  return Vector<Real>{} + value;
}

template <class Real>
INLINE Real sum(Vector<Real> value) {
  Real total = 0;
  for (int64_t i = 0; i < Lanes<Real>::COUNT; ++i) total += value[i];
  return total;
}

// exp(x) for x <= 0: 2^n exp(r) with |r| <= log(2) / 2 (Cephes, S. L. Moshier).
INLINE Vector<float> exp_below(Vector<float> x) {
  x = x < -87.0f ? all(-87.0f) : x;
  const Vector<float> shifted = x * 1.44269504088896341f + 12582912.0f, n = shifted - 12582912.0f;
  const Vector<float> r = x - n * 0.693359375f + n * 2.12194440e-4f;
  Vector<float> p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f, p = p * r + 4.1665795894e-2f, p = p * r + 1.6666665459e-1f, p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const auto power = (reinterpret_cast<Lanes<int32_t>::Vector>(shifted) << 23) + 0x3f800000;
  return p * reinterpret_cast<Vector<float>>(power);
}

INLINE Vector<double> exp_below(Vector<double> x) {
  x = x < -708.0 ? all(-708.0) : x;
  const Vector<double> shifted = x * 1.4426950408889634074 + 6755399441055744.0, n = shifted - 6755399441055744.0;
  const Vector<double> r = x - n * 6.93145751953125e-1 - n * 1.42860682030941723212e-6, square = r * r;
  Vector<double> p = square * 1.26177193074810590878e-4 + 3.02994407707441961300e-2;
  p = (p * square + 9.99999999999999999910e-1) * r;
  Vector<double> q = square * 3.00198505138664455042e-6 + 2.52448340349684104192e-3;
  q = q * square + 2.27265548208155028766e-1, q = q * square + 2.0;
  const auto power = (reinterpret_cast<Lanes<int64_t>::Vector>(shifted) << 52) + 0x3ff0000000000000;
  return (p / (q - p) * 2.0 + 1.0) * reinterpret_cast<Vector<double>>(power);
}

template <class Real>
INLINE Vector<Real> absolute(Vector<Real> x) {
  return x < Real(0) ? -x : x;
}

template <class Real>
INLINE Vector<Real> tanh_of(Vector<Real> x) {
  const Vector<Real> t = exp_below(absolute<Real>(x) * Real(-2)), found = (Real(1) - t) / (Real(1) + t);
  return x < Real(0) ? -found : found;
}

template <class Real>
INLINE Vector<Real> sigmoid(Vector<Real> x) {
  const Vector<Real> t = exp_below(-absolute<Real>(x));
  return (x < Real(0) ? t : all(Real(1))) / (Real(1) + t);
}

}  // namespace
