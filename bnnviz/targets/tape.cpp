// Compute a function that is recorded as a list of operations on numbers, and its gradient by reverse accumulation, for
// many points.
//
// Points are computed LANES at a time. All is in double, whatever the type of the points.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// In the order of OPERATIONS in tape.py.
enum Operation : int32_t {
  ADD, SUB, MUL, DIV, POW, MAXIMUM, MINIMUM, ATAN2, LESS, LESS_EQUAL, EQUAL, WHERE,
  NEG, ABS, SIGN, EXP, EXPM1, LOG, LOG1P, SQRT, SIN, COS, TANH, SIGMOID, ATAN, ERF, LGAMMA, DIGAMMA
};

// Values: the point's coordinates, then constants, then the result of each operation; the last one is the function's.
struct Tape {
  int64_t dim, constants, operations, in_float64;
  const double *constant;
  const int32_t *operation;
  const int32_t *arguments;  // (operations, 3): numbers of values
};

namespace {

constexpr int LANES = 4;
constexpr double PI = 3.14159265358979323846;

double sign(double x) { return (x > 0) - (x < 0); }

double sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

// The derivatives of log gamma, by recurrence to large arguments and the asymptotic series (Abramowitz and Stegun 6.3.18
// and 6.4.12).
double digamma(double x) {
  if (x <= 0) return x == std::floor(x) ? NAN : digamma(1 - x) - PI / std::tan(PI * x);
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  const double r = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x - r * (1 / 12.0 - r * (1 / 120.0 - r * (1 / 252.0 - r * (1 / 240.0 - r / 132))));
}

double trigamma(double x) {
  if (x <= 0) return x == std::floor(x) ? NAN : std::pow(PI / std::sin(PI * x), 2) - trigamma(1 - x);
  double sum = 0;
  for (; x < 10; ++x) sum += 1 / (x * x);
  const double r = 1 / (x * x);
  return sum + 1 / x + r / 2 + r / x * (1 / 6.0 - r * (1 / 30.0 - r * (1 / 42.0 - r * (1 / 30.0 - r * 5 / 66))));
}

double value_of(Operation operation, double a, double b, double c) {
  switch (operation) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case DIV: return a / b;
    case POW: return std::pow(a, b);
    case MAXIMUM: return std::isnan(a) || a > b ? a : b;
    case MINIMUM: return std::isnan(a) || a < b ? a : b;
    case ATAN2: return std::atan2(a, b);
    case LESS: return a < b;
    case LESS_EQUAL: return a <= b;
    case EQUAL: return a == b;
    case WHERE: return a != 0 ? b : c;
    case NEG: return -a;
    case ABS: return std::fabs(a);
    case SIGN: return sign(a);
    case EXP: return std::exp(a);
    case EXPM1: return std::expm1(a);
    case LOG: return std::log(a);
    case LOG1P: return std::log1p(a);
    case SQRT: return std::sqrt(a);
    case SIN: return std::sin(a);
    case COS: return std::cos(a);
    case TANH: return std::tanh(a);
    case SIGMOID: return sigmoid(a);
    case ATAN: return std::atan(a);
    case ERF: return std::erf(a);
    case LGAMMA: return std::lgamma(a);
    case DIGAMMA: return digamma(a);
  }
  return NAN;
}

struct Slopes {
  double a, b;
};

// The derivatives of y = value_of(operation, a, b, ...) with respect to a and b.
Slopes slopes_of(Operation operation, double a, double b, double y) {
  switch (operation) {
    case ADD: return {1, 1};
    case SUB: return {1, -1};
    case MUL: return {b, a};
    case DIV: return {1 / b, -y / b};
    case POW: return {b == 0 ? 0 : b * std::pow(a, b - 1), a == 0 && b >= 0 ? 0 : y * std::log(a)};
    case MAXIMUM: return {a == b ? 0.5 : a > b, a == b ? 0.5 : a < b};
    case MINIMUM: return {a == b ? 0.5 : a < b, a == b ? 0.5 : a > b};
    case ATAN2: return {b / (a * a + b * b), -a / (a * a + b * b)};
    case NEG: return {-1, 0};
    case ABS: return {sign(a), 0};
    case EXP: return {y, 0};
    case EXPM1: return {y + 1, 0};
    case LOG: return {1 / a, 0};
    case LOG1P: return {1 / (1 + a), 0};
    case SQRT: return {0.5 / y, 0};
    case SIN: return {std::cos(a), 0};
    case COS: return {-std::sin(a), 0};
    case TANH: return {1 - y * y, 0};
    case SIGMOID: return {y * (1 - y), 0};
    case ATAN: return {1 / (1 + a * a), 0};
    case ERF: return {2 / std::sqrt(PI) * std::exp(-a * a), 0};
    case LGAMMA: return {digamma(a), 0};
    case DIGAMMA: return {trigamma(a), 0};
    default: return {0, 0};
  }
}

bool has_two(Operation operation) { return operation <= ATAN2; }
bool is_flat(Operation operation) { return operation == SIGN || (LESS <= operation && operation <= EQUAL); }

template <class Real>
void derive(const Tape &tape, int64_t points, const Real *x, Real *potential, Real *gradient) {
  const int64_t first = tape.dim + tape.constants, count = first + tape.operations;
  std::vector<double> values(count * LANES), slopes(count * LANES);
  for (int64_t k = 0; k < tape.constants; ++k)
    std::fill_n(&values[(tape.dim + k) * LANES], LANES, tape.constant[k]);
  for (int64_t begin = 0; begin < points; begin += LANES) {
    for (int64_t k = 0; k < tape.dim; ++k)
      for (int lane = 0; lane < LANES; ++lane)
        values[k * LANES + lane] = x[std::min(begin + lane, points - 1) * tape.dim + k];
    for (int64_t i = 0; i < tape.operations; ++i) {
      const int32_t *argument = tape.arguments + 3 * i;
      const double *a = &values[argument[0] * LANES], *b = &values[argument[1] * LANES];
      const double *c = &values[argument[2] * LANES];
      double *y = &values[(first + i) * LANES];
      const Operation operation = static_cast<Operation>(tape.operation[i]);
      switch (operation) {  // the most frequent ones, as vectors
        case ADD: for (int lane = 0; lane < LANES; ++lane) y[lane] = a[lane] + b[lane]; break;
        case SUB: for (int lane = 0; lane < LANES; ++lane) y[lane] = a[lane] - b[lane]; break;
        case MUL: for (int lane = 0; lane < LANES; ++lane) y[lane] = a[lane] * b[lane]; break;
        case DIV: for (int lane = 0; lane < LANES; ++lane) y[lane] = a[lane] / b[lane]; break;
        default: for (int lane = 0; lane < LANES; ++lane) y[lane] = value_of(operation, a[lane], b[lane], c[lane]);
      }
    }
    std::fill(slopes.begin(), slopes.end(), 0);
    std::fill_n(&slopes[(count - 1) * LANES], LANES, 1);
    for (int64_t i = tape.operations - 1; i >= 0; --i) {
      const Operation operation = static_cast<Operation>(tape.operation[i]);
      if (is_flat(operation)) continue;
      const int32_t *argument = tape.arguments + 3 * i;
      const double *a = &values[argument[0] * LANES], *b = &values[argument[1] * LANES];
      const double *y = &values[(first + i) * LANES], *above = &slopes[(first + i) * LANES];
      double *of_a = &slopes[argument[0] * LANES], *of_b = &slopes[argument[1] * LANES];
      double *of_c = &slopes[argument[2] * LANES];
      for (int lane = 0; lane < LANES; ++lane) {
        if (operation == WHERE) {
          (a[lane] != 0 ? of_b : of_c)[lane] += above[lane];
          continue;
        }
        const Slopes slope = slopes_of(operation, a[lane], b[lane], y[lane]);
        of_a[lane] += above[lane] * slope.a;
        if (has_two(operation)) of_b[lane] += above[lane] * slope.b;
      }
    }
    for (int64_t lane = 0; lane < std::min<int64_t>(LANES, points - begin); ++lane) {
      potential[begin + lane] = static_cast<Real>(values[(count - 1) * LANES + lane]);
      for (int64_t k = 0; k < tape.dim; ++k)
        gradient[(begin + lane) * tape.dim + k] = static_cast<Real>(slopes[k * LANES + lane]);
    }
  }
}

}  // namespace

// The form of `Gradient` in native_step.hpp, whose other arguments are not used.
extern "C" void derive_tape(const Tape *tape, const void *, int64_t points, const void *x, const void *,
                            void *potential, void *gradient, void *) {
  if (tape->in_float64)
    derive(*tape, points, static_cast<const double *>(x), static_cast<double *>(potential),
           static_cast<double *>(gradient));
  else
    derive(*tape, points, static_cast<const float *>(x), static_cast<float *>(potential),
           static_cast<float *>(gradient));
}
