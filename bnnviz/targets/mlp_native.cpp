// Compute U, its gradient and its curvature along a direction for many copies of one small perceptron: the equations of
// mlp_gradients.py, a few rows at a time, so that all that comes between the layers stays in a processor's nearest cache.
//
// Rows lie in the lanes of vectors. Rows that fill up the last vector have inputs of zero, and no loss.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "mlp_vectors.hpp"

enum Activation : int64_t { IDENTITY, TANH, RELU, SIGMOID, SILU };
enum Likelihood : int64_t { GAUSSIAN, GAUSSIAN_LEARNT, BERNOULLI, CATEGORICAL };

// Where the weights of a layer lie in the flat vector; bias and linear path are -1 where there is none.
struct Layer {
  int64_t inputs, outputs, weight, bias, activation, path;
};

// ``group`` has the number of the learned scale of each weight, ``learned`` where there is none for it.
struct Network {
  const Layer *layers;
  int64_t count, weights, learned, dim, likelihood, in_float64;
  double precision, log_sd;  // of the noise
  double prior_precision;
  const void *scale;  // what coordinates are multiplied by, (weights,); or none
  const int64_t *group;
};

// Rows of all chains, or of each one's own: ``each`` is then how many there are of a chain, and else 0.
struct Rows {
  int64_t count, each;
  double weight;
  const void *x;  // (rows, inputs)
  const void *y;  // (rows,), of classes their numbers
};

namespace {

constexpr int64_t MOST = 8;  // vectors of rows that are computed at once

template <class Real>
class Perceptron {
 public:
  Perceptron(const Network &network, bool curved) : network(network), curved(curved) {
    int64_t widest = network.layers[0].inputs;
    std::vector<int64_t> sizes = {widest * WIDTH};
    for (int64_t i = 0; i < network.count; ++i) {
      const int64_t outputs = network.layers[i].outputs;
      widest = std::max(widest, outputs);
      sizes.insert(sizes.end(), curved ? 5 : 2, outputs * WIDTH);
    }
    sizes.insert(sizes.end(), 2, widest * WIDTH);
    if (network.scale) sizes.insert(sizes.end(), 4, network.weights);
    int64_t total = 0;
    for (const int64_t size : sizes) total += size;
    room.resize(total);
    Real *next = room.data();
    auto size = sizes.begin();
    auto take = [&] { Real *const found = next; next += *size++; return found; };
    input = take();
    for (int64_t i = 0; i < network.count; ++i) {
      value.push_back(take()), slope.push_back(take());
      if (curved) first.push_back(take()), second.push_back(take()), bend.push_back(take());
    }
    for (Real **part : {&above, &below}) *part = take();
    if (network.scale)
      for (Real **part : {&factor, &weights, &direction, &by_weights}) *part = take();
  }

  // U and its gradient of each chain, and v' H v where there is a v.
  void derive(const Rows &rows, int64_t chains, const Real *theta, const Real *v, Real *potential, Real *gradient,
              Real *curvature) {
    for (int64_t chain = 0; chain < chains; ++chain) {
      const int64_t at = chain * network.dim;
      const Real *here = theta + at, *along = v ? v + at : nullptr;
      const Real *w = here, *u = along;
      Real *g = gradient + at;
      if (network.scale) {
        take_factors(here);
        w = scaled(weights, here), u = u ? scaled(direction, u) : u, g = by_weights;
      }
      std::fill_n(gradient + at, network.dim, Real(0));
      std::fill_n(g, network.weights, Real(0));
      take_noise(here);
      loss = squares = cross = curve = 0;
      for (int64_t start = 0; start < rows.count; start += WIDTH) add_rows(rows, chain * rows.each, start, w, u, g);
      if (network.likelihood <= GAUSSIAN_LEARNT) loss = 0.5 * squares * precision;
      if (network.likelihood == GAUSSIAN_LEARNT) add_noise(rows, along, gradient + at + network.dim - 1);
      if (network.scale) pull_back(w, gradient + at);
      potential[chain] = with_prior(rows.weight, here, gradient + at);
      if (v) curvature[chain] = Real(rows.weight * curve + network.prior_precision * product_of(along, along));
    }
  }

 private:
  using V = Vector<Real>;
  static constexpr int64_t LANES = Lanes<Real>::COUNT, WIDTH = LANES * MOST;

  void take_factors(const Real *here) {
    const Real *scale = static_cast<const Real *>(network.scale), rate = Real(std::sqrt(network.prior_precision));
    std::copy_n(scale, network.weights, factor);
    if (!network.learned) return;
    std::vector<Real> learned(network.learned + 1, Real(1));
    for (int64_t i = 0; i < network.learned; ++i) learned[i] = std::exp(rate * here[network.weights + i]);
    for (int64_t k = 0; k < network.weights; ++k) factor[k] *= learned[network.group[k]];
  }

  const Real *scaled(Real *to, const Real *from) {
    for (int64_t k = 0; k < network.weights; ++k) to[k] = from[k] * factor[k];
    return to;
  }

  // The gradient by the coordinates from that by the weights.
  void pull_back(const Real *w, Real *gradient) {
    const Real rate = Real(std::sqrt(network.prior_precision));
    for (int64_t k = 0; k < network.weights; ++k) gradient[k] = by_weights[k] * factor[k];
    if (!network.learned) return;
    for (int64_t k = 0; k < network.weights; ++k)
      if (network.group[k] < network.learned) gradient[network.weights + network.group[k]] += rate * by_weights[k] * w[k];
  }

  void take_noise(const Real *here) {
    precision = network.precision, log_sd = network.log_sd;
    if (network.likelihood != GAUSSIAN_LEARNT) return;
    log_sd += std::sqrt(network.prior_precision) * double(here[network.dim - 1]);
    precision = std::exp(-2 * log_sd);
  }

  // What the noise's coordinate adds: loss, derivative, and second derivative along v.
  void add_noise(const Rows &rows, const Real *v, Real *derivative) {
    const double root = std::sqrt(network.prior_precision), all = squares * precision;
    loss += rows.count * log_sd;
    *derivative = Real(root * (rows.count - all));
    if (!v) return;
    const double rate = root * double(v[network.dim - 1]);
    curve += 2 * rate * (rate * all - 2 * cross);
  }

  static double product_of(const Real *a, const Real *b, int64_t count) {
    double parts[4] = {}, total = 0;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
      for (int64_t k = 0; k < 4; ++k) parts[k] += double(a[i + k]) * double(b[i + k]);
    for (; i < count; ++i) total += double(a[i]) * double(b[i]);
    return total + parts[0] + parts[1] + parts[2] + parts[3];
  }

  double product_of(const Real *a, const Real *b) const { return product_of(a, b, network.dim); }

  Real with_prior(double weight, const Real *here, Real *gradient) {
    const Real times = Real(weight), prior = Real(network.prior_precision);
    for (int64_t k = 0; k < network.dim; ++k) gradient[k] = gradient[k] * times + prior * here[k];
    return Real(weight * loss + 0.5 * network.prior_precision * product_of(here, here));
  }

  void add_rows(const Rows &rows, int64_t before, int64_t start, const Real *w, const Real *u, Real *g) {
    const int64_t count = std::min(WIDTH, rows.count - start), inputs = network.layers[0].inputs;
    vectors = (count + LANES - 1) / LANES;
    const Real *x = static_cast<const Real *>(rows.x) + (before + start) * inputs;
    for (int64_t i = 0; i < inputs; ++i) {
      Real *to = input + i * WIDTH;
      for (int64_t r = 0; r < count; ++r) to[r] = x[r * inputs + i];
      std::fill(to + count, to + vectors * LANES, Real(0));
    }
    forward(w);
    if (u) directional(w, u);
    compare(rows, before + start, count);
    backward(w, g);
  }

  // to[o] += sum over i of w[o * by_o + i * by_i] from[i], for some o and some vectors of rows.
  template <int64_t UNITS, int64_t WIDE>
  INLINE void product(Real *to, const Real *w, int64_t by_o, int64_t by_i, const Real *from, int64_t inputs) {
    V total[UNITS][WIDE];
    for (int64_t o = 0; o < UNITS; ++o)
      for (int64_t j = 0; j < WIDE; ++j) total[o][j] = load(to + o * WIDTH + j * LANES);
    for (int64_t i = 0; i < inputs; ++i) {
      V read[WIDE];
      for (int64_t j = 0; j < WIDE; ++j) read[j] = load(from + i * WIDTH + j * LANES);
      for (int64_t o = 0; o < UNITS; ++o) {
        const V weight = all(w[o * by_o + i * by_i]);
        for (int64_t j = 0; j < WIDE; ++j) total[o][j] += weight * read[j];
      }
    }
    for (int64_t o = 0; o < UNITS; ++o)
      for (int64_t j = 0; j < WIDE; ++j) store(to + o * WIDTH + j * LANES, total[o][j]);
  }

  template <int64_t UNITS>
  INLINE void products(Real *to, const Real *w, int64_t by_o, int64_t by_i, const Real *from, int64_t inputs) {
    int64_t j = 0;
    for (; j + 2 <= vectors; j += 2) product<UNITS, 2>(to + j * LANES, w, by_o, by_i, from + j * LANES, inputs);
    if (j < vectors) product<UNITS, 1>(to + j * LANES, w, by_o, by_i, from + j * LANES, inputs);
  }

  // to += W from, where W has the strides by_o and by_i.
  void add_product(Real *to, const Real *w, int64_t by_o, int64_t by_i, const Real *from, int64_t outputs, int64_t inputs) {
    int64_t o = 0;
    for (; o + 4 <= outputs; o += 4) products<4>(to + o * WIDTH, w + o * by_o, by_o, by_i, from, inputs);
    for (; o < outputs; ++o) products<1>(to + o * WIDTH, w + o * by_o, by_o, by_i, from, inputs);
  }

  template <int64_t UNITS, int64_t WIDE>
  INLINE void outer(Real *to, const Real *d, const Real *a, int64_t inputs) {
    V total[UNITS][WIDE] = {};
    for (int64_t j = 0; j < vectors; ++j) {
      V read[WIDE];
      for (int64_t i = 0; i < WIDE; ++i) read[i] = load(a + i * WIDTH + j * LANES);
      for (int64_t o = 0; o < UNITS; ++o) {
        const V pull = load(d + o * WIDTH + j * LANES);
        for (int64_t i = 0; i < WIDE; ++i) total[o][i] += pull * read[i];
      }
    }
    for (int64_t o = 0; o < UNITS; ++o)
      for (int64_t i = 0; i < WIDE; ++i) to[o * inputs + i] += sum<Real>(total[o][i]);
  }

  // to += sum over rows of d a'.
  void add_outer(Real *to, const Real *d, const Real *a, int64_t outputs, int64_t inputs) {
    int64_t o = 0;
    for (; o + 4 <= outputs; o += 4) {
      int64_t i = 0;
      for (; i + 2 <= inputs; i += 2) outer<4, 2>(to + o * inputs + i, d + o * WIDTH, a + i * WIDTH, inputs);
      if (i < inputs) outer<4, 1>(to + o * inputs + i, d + o * WIDTH, a + i * WIDTH, inputs);
    }
    for (; o < outputs; ++o) {
      int64_t i = 0;
      for (; i + 4 <= inputs; i += 4) outer<1, 4>(to + o * inputs + i, d + o * WIDTH, a + i * WIDTH, inputs);
      for (; i < inputs; ++i) outer<1, 1>(to + o * inputs + i, d + o * WIDTH, a + i * WIDTH, inputs);
    }
  }

  // to = b, one number for each unit, or 0.
  void set_to(Real *to, const Real *b, int64_t outputs) {
    for (int64_t o = 0; o < outputs; ++o) {
      const V number = all(b ? b[o] : Real(0));
      for (int64_t j = 0; j < vectors; ++j) store(to + o * WIDTH + j * LANES, number);
    }
  }

  // to = W from + b, of a layer, with the linear path.
  void affine(Real *to, const Layer &layer, const Real *w, const Real *from) {
    set_to(to, layer.bias < 0 ? nullptr : w + layer.bias, layer.outputs);
    add_product(to, w + layer.weight, layer.inputs, 1, from, layer.outputs, layer.inputs);
    if (layer.path >= 0) add_path(to, layer, w);
  }

  void add_path(Real *to, const Layer &layer, const Real *w) {
    const int64_t inputs = network.layers[0].inputs;
    add_product(to, w + layer.path, inputs, 1, input, layer.outputs, inputs);
  }

  template <class Act>
  INLINE void each(int64_t units, Act act) {
    for (int64_t o = 0; o < units; ++o)
      for (int64_t j = 0; j < vectors; ++j) act(o * WIDTH + j * LANES);
  }

  void activate(int64_t i) {
    Real *a = value[i], *s = slope[i], *b = curved ? bend[i] : nullptr;
    const int64_t units = network.layers[i].outputs;
    const Real one = 1, two = 2;
    switch (network.layers[i].activation) {
      case TANH:
        each(units, [=](int64_t at) INLINED {
          const V found = tanh_of<Real>(load(a + at)), flat = one - found * found;
          store(a + at, found), store(s + at, flat);
          if (b) store(b + at, found * flat * -two);
        });
        break;
      case RELU:
        each(units, [=](int64_t at) INLINED {
          const V z = load(a + at);
          store(a + at, z < Real(0) ? all(Real(0)) : z), store(s + at, z > Real(0) ? all(one) : all(Real(0)));
          if (b) store(b + at, all(Real(0)));
        });
        break;
      case SIGMOID:
        each(units, [=](int64_t at) INLINED {
          const V found = sigmoid<Real>(load(a + at)), flat = found * (one - found);
          store(a + at, found), store(s + at, flat);
          if (b) store(b + at, flat * (one - found * two));
        });
        break;
      case SILU:
        each(units, [=](int64_t at) INLINED {
          const V z = load(a + at), p = sigmoid<Real>(z), rest = z * (one - p);
          store(a + at, z * p), store(s + at, p * (one + rest));
          if (b) store(b + at, p * (one - p) * (two + z * (one - p * two)));
        });
        break;
      default:
        break;
    }
  }

  void forward(const Real *w) {
    for (int64_t i = 0; i < network.count; ++i) {
      affine(value[i], network.layers[i], w, i ? value[i - 1] : input);
      activate(i);
    }
  }

  void directional(const Real *w, const Real *u) {
    for (int64_t i = 0; i < network.count; ++i) {
      const Layer &layer = network.layers[i];
      Real *d1 = first[i], *d2 = second[i];
      affine(d1, layer, u, i ? value[i - 1] : input);
      set_to(d2, nullptr, layer.outputs);
      if (i) {
        add_product(d2, u + layer.weight, layer.inputs, 1, first[i - 1], layer.outputs, layer.inputs);
        each(layer.outputs, [=](int64_t at) INLINED { store(d2 + at, load(d2 + at) * Real(2)); });
        add_product(d2, w + layer.weight, layer.inputs, 1, second[i - 1], layer.outputs, layer.inputs);
        add_product(d1, w + layer.weight, layer.inputs, 1, first[i - 1], layer.outputs, layer.inputs);
      }
      if (layer.activation == IDENTITY) continue;
      const Real *s = slope[i], *b = bend[i];
      each(layer.outputs, [=](int64_t at) INLINED {
        const V z1 = load(d1 + at);
        store(d2 + at, load(d2 + at) * load(s + at) + load(b + at) * z1 * z1);
        store(d1 + at, z1 * load(s + at));
      });
    }
  }

  // Set ``above`` to the derivative of the loss by the outputs; add to the loss, and to the curvature.
  void compare(const Rows &rows, int64_t start, int64_t count) {
    const int64_t outputs = network.layers[network.count - 1].outputs;
    if (network.likelihood == CATEGORICAL)
      compare_classes(static_cast<const int64_t *>(rows.y) + start, count, outputs);
    else if (network.likelihood == BERNOULLI)
      compare_labels(static_cast<const Real *>(rows.y) + start, count);
    else
      compare_numbers(static_cast<const Real *>(rows.y) + start, count);
    for (int64_t k = 0; k < outputs; ++k) std::fill(above + k * WIDTH + count, above + k * WIDTH + vectors * LANES, Real(0));
    if (!curved) return;
    for (int64_t k = 0; k < outputs; ++k)
      curve += product_of(above + k * WIDTH, second[network.count - 1] + k * WIDTH, count);
  }

  void compare_numbers(const Real *y, int64_t count) {
    const Real *f = value[network.count - 1], *d = curved ? first[network.count - 1] : nullptr;
    for (int64_t r = 0; r < count; ++r) {
      const double off = double(f[r]) - double(y[r]);
      above[r] = Real(off * precision);
      squares += off * off;
    }
    if (curved) curve += precision * product_of(d, d, count), cross += product_of(above, d, count);
  }

  void compare_labels(const Real *y, int64_t count) {
    const Real *f = value[network.count - 1], *d = curved ? first[network.count - 1] : nullptr;
    for (int64_t r = 0; r < count; ++r) {
      const double z = f[r], t = std::exp(-std::fabs(z)), p = (z < 0 ? t : 1) / (1 + t);
      above[r] = Real(p - double(y[r]));
      loss += std::log1p(t) + (z > 0 ? z : 0) - double(y[r]) * z;
      if (curved) curve += p * (1 - p) * double(d[r]) * double(d[r]);
    }
  }

  void compare_classes(const int64_t *y, int64_t count, int64_t outputs) {
    const Real *f = value[network.count - 1], *d = curved ? first[network.count - 1] : nullptr;
    for (int64_t r = 0; r < count; ++r) {
      Real most = f[r];
      for (int64_t k = 1; k < outputs; ++k) most = std::max(most, f[k * WIDTH + r]);
      double total = 0, mean = 0, square = 0;
      for (int64_t k = 0; k < outputs; ++k) total += above[k * WIDTH + r] = std::exp(f[k * WIDTH + r] - most);
      loss += std::log(total) + double(most) - double(f[y[r] * WIDTH + r]);
      for (int64_t k = 0; k < outputs; ++k) {
        const double p = above[k * WIDTH + r] / total;
        above[k * WIDTH + r] = Real(p - (k == y[r]));
        if (curved) mean += p * d[k * WIDTH + r], square += p * d[k * WIDTH + r] * d[k * WIDTH + r];
      }
      curve += square - mean * mean;
    }
  }

  // Add to the gradient by the weights; ``above`` holds the derivative by the outputs.
  void backward(const Real *w, Real *g) {
    const int64_t last = network.count - 1, inputs = network.layers[0].inputs;
    if (network.layers[last].path >= 0) add_outer(g + network.layers[last].path, above, input, network.layers[last].outputs, inputs);
    for (int64_t i = last; i >= 0; --i) {
      const Layer &layer = network.layers[i];
      if (layer.activation != IDENTITY) {
        Real *const d = above, *const s = slope[i];
        each(layer.outputs, [=](int64_t at) INLINED { store<Real>(d + at, load(d + at) * load(s + at)); });
      }
      add_outer(g + layer.weight, above, i ? value[i - 1] : input, layer.outputs, layer.inputs);
      for (int64_t o = 0; layer.bias >= 0 && o < layer.outputs; ++o) {
        V total = {};
        for (int64_t j = 0; j < vectors; ++j) total += load(above + o * WIDTH + j * LANES);
        g[layer.bias + o] += sum<Real>(total);
      }
      if (!i) return;
      set_to(below, nullptr, layer.inputs);
      add_product(below, w + layer.weight, 1, layer.inputs, above, layer.inputs, layer.outputs);
      std::swap(above, below);
    }
  }

  const Network &network;
  const bool curved;
  std::vector<Real> room;
  Real *input, *above, *below, *factor, *weights, *direction, *by_weights;
  std::vector<Real *> value, slope, first, second, bend;  // of each layer: (units, WIDTH)
  int64_t vectors;
  double precision, log_sd, loss, squares, cross, curve;
};

template <class Real>
void derive(const Network &network, const Rows &rows, int64_t chains, const void *theta, const void *v, void *potential,
            void *gradient, void *curvature) {
  Perceptron<Real>(network, v != nullptr)
      .derive(rows, chains, static_cast<const Real *>(theta), static_cast<const Real *>(v),
              static_cast<Real *>(potential), static_cast<Real *>(gradient), static_cast<Real *>(curvature));
}

}  // namespace

// U (chains,), its gradient (chains, dim), and v' H v (chains,) where there is a v (chains, dim).
extern "C" void derive_perceptron(const Network *network, const Rows *rows, int64_t chains, const void *theta,
                                  const void *v, void *potential, void *gradient, void *curvature) {
  network->in_float64 ? derive<double>(*network, *rows, chains, theta, v, potential, gradient, curvature)
                      : derive<float>(*network, *rows, chains, theta, v, potential, gradient, curvature);
}
