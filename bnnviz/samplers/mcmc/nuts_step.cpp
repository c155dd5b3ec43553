// Take a leapfrog step of every chain's tree, in place: NUTS.kernel of nuts.py. The leapfrog itself is done elsewhere,
// unless the metric is diagonal and the gradient of the target is C++.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "native_step.hpp"

namespace {

const double NOTHING = -std::numeric_limits<double>::infinity();

// log(exp(a) + exp(b)).
double log_add(double a, double b) {
  const double most = std::max(a, b);
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return std::isinf(most) ? most : most + std::log1p(std::exp(-std::fabs(a - b)));
}

// The sum of term(0), ..., in several parts that a processor adds at once.
template <class Sum, class Term>
Sum sum_of(int64_t count, Term term) {
  constexpr int64_t PARTS = 8;
  Sum parts[PARTS] = {}, sum = 0;
  int64_t i = 0;
  for (; i + PARTS <= count; i += PARTS)
    for (int64_t part = 0; part < PARTS; ++part) parts[part] += term(i + part);
  for (; i < count; ++i) sum += term(i);
  for (const Sum &part : parts) sum += part;
  return sum;
}

int64_t ones_of(int64_t number) {
  int64_t ones = 0;
  for (; number; number &= number - 1) ++ones;
  return ones;
}

int64_t last_ones_of(int64_t number) {
  int64_t ones = 0;
  for (; number & 1; number >>= 1) ++ones;
  return ones;
}

template <class Real>
class Trees {
 public:
  explicit Trees(const Steps &steps)
      : steps(steps), chains(steps.chains), dim(steps.dim), next(steps.state), failed(steps.chains) {
    // State of nuts.py, field by field.
    read(x), read(momentum_sum), read(count), read(alive), read(fresh), read(initial_energy);
    for (Point *point : {&front, &back}) read(point->x), read(point->momentum), read(point->force);
    for (Proposal *one : {&proposal, &subtree_proposal}) read(one->x), read(one->gradient), read(one->potential);
    read(log_weight), read(subtree_log_weight), read(subtree_momentum_sum), read(direction), read(step_size);
    read(depth), read(leaf), read(checkpoint_momenta), read(checkpoint_sums), read(acceptance_sum);
    // NUTS.native_step.
    const double *number = steps.numbers;
    temperature = *number++, least_log_weight = *number++, size = *number++;
    deepest = static_cast<int64_t>(*number++), most_levels = static_cast<int64_t>(*number++);
  }

  void before(int64_t step, bool first) {
    const double *side = steps.uniforms + step * steps.randoms;
    for (int64_t chain = 0; chain < chains; ++chain) {
      failed[chain] = first && fresh[chain] && !begin(chain);
      fresh[chain] = false;
      if (leaf[chain] == 0 && (std::log(side[chain]) >= std::log(0.5)) == (direction[chain] > 0)) turn(chain);
    }
  }

  // NUTS._leapfrog with a diagonal metric.
  void part(const Gradient &target) {
    const Real *scale = static_cast<const Real *>(steps.scale);
    Real *const *result = reinterpret_cast<Real *const *>(steps.results);
    Real *position = result[0], *momentum = result[1], *force = result[2], *gradient = result[3];
    for (int64_t chain = 0; chain < chains; ++chain) {
      const Real h = step_size[chain] * direction[chain];
      for (int64_t i = chain * dim, k = 0; k < dim; ++i, ++k) {
        momentum[i] = front.momentum[i] - Real(0.5) * h * front.force[i];
        position[i] = front.x[i] + h * (scale[k] * momentum[i]);
      }
    }
    target.derive(target.network, target.rows, chains, position, nullptr, result[4], gradient, nullptr);
    for (int64_t chain = 0; chain < chains; ++chain) {
      const Real h = step_size[chain] * direction[chain];
      for (int64_t i = chain * dim, k = 0; k < dim; ++i, ++k) {
        force[i] = scale[k] * gradient[i];
        momentum[i] -= Real(0.5) * h * force[i];
      }
    }
  }

  bool after(int64_t step, int64_t row) {
    const double *lot = steps.uniforms + step * steps.randoms + chains, *last_lot = lot + chains;
    bool one_ended = false;
    for (int64_t chain = 0; chain < chains; ++chain) {
      const Real potential = static_cast<const Real *>(steps.results[4])[chain];
      tell(0, row, chain, potential);
      for (int64_t part = 1; part < 8; ++part) part == 1 ? tell(1, row, chain, false) : tell(part, row, chain, 0.0);
      tell(8, row, chain, static_cast<bool>(failed[chain]));
      if (!alive[chain]) continue;
      const double weight = extend(chain, potential, std::log(lot[chain]));
      bool stopped = checkpoint(chain);
      const bool diverging = weight < least_log_weight;
      stopped |= diverging;
      if (!stopped && leaf[chain] == int64_t(1) << depth[chain]) stopped = merge(chain, std::log(last_lot[chain]));
      if (stopped) end(chain, row, diverging);
      one_ended |= stopped;
    }
    return one_ended;
  }

 private:
  struct Point {
    Real *x, *momentum, *force;
  };
  struct Proposal {
    Real *x, *gradient, *potential;
  };

  template <class Number>
  void read(Number *&part) {
    part = static_cast<Number *>(*next++);
  }

  template <class Number>
  void tell(int64_t part, int64_t row, int64_t chain, Number value) {
    reinterpret_cast<Number *>(steps.infos[part].rows + row * steps.infos[part].stride)[chain] = value;
  }

  Real *at(Real *matrix, int64_t chain) const { return matrix + chain * dim; }

  void copy(Real *to, const Real *from) const { std::copy(from, from + dim, to); }

  void propose(const Proposal &to, int64_t chain, const Real *position, const Real *gradient, Real potential) {
    copy(at(to.x, chain), position), copy(at(to.gradient, chain), gradient);
    to.potential[chain] = potential;
  }

  static double kinetic_energy(const Real *momentum, int64_t dim) {
    return 0.5 * sum_of<double>(dim, [=](int64_t i) { return double(momentum[i]) * double(momentum[i]); });
  }

  // NUTS._begun; returns whether U is finite there.
  bool begin(int64_t chain) {
    const Real *momentum = at(static_cast<Real *>(steps.given[0]), chain);
    const Real *force = at(static_cast<Real *>(steps.given[1]), chain);
    const double energy = double(proposal.potential[chain]) + kinetic_energy(momentum, dim);
    for (const Point &end : {front, back}) {
      copy(at(end.x, chain), at(proposal.x, chain));
      copy(at(end.momentum, chain), momentum), copy(at(end.force, chain), force);
    }
    copy(at(momentum_sum, chain), momentum);
    initial_energy[chain] = energy, log_weight[chain] = 0, depth[chain] = 0, acceptance_sum[chain] = 0;
    step_size[chain] = static_cast<Real>(size);
    drop_subtree(chain);
    const bool lost = alive[chain] && !std::isfinite(energy);
    alive[chain] = alive[chain] && !lost;
    return !lost;
  }

  void drop_subtree(int64_t chain) {
    leaf[chain] = 0, subtree_log_weight[chain] = NOTHING;
    std::fill_n(at(subtree_momentum_sum, chain), dim, Real(0));
  }

  // NUTS._turned.
  void turn(int64_t chain) {
    direction[chain] = -direction[chain];
    for (Real *Point::*part : {&Point::x, &Point::momentum, &Point::force}) {
      Real *one = at(front.*part, chain);
      std::swap_ranges(one, one + dim, at(back.*part, chain));
    }
  }

  // NUTS._log_weight and NUTS._extended; returns the logarithm of the point's weight.
  double extend(int64_t chain, Real potential, double lot) {
    Real *const *result = reinterpret_cast<Real *const *>(steps.results);
    copy(at(front.x, chain), at(result[0], chain)), copy(at(front.momentum, chain), at(result[1], chain));
    copy(at(front.force, chain), at(result[2], chain));
    const Real *momentum = at(front.momentum, chain);
    Real *sum = at(subtree_momentum_sum, chain);
    double weight = (initial_energy[chain] - double(potential) - kinetic_energy(momentum, dim)) / temperature;
    if (!std::isfinite(weight)) weight = NOTHING;
    const double total = log_add(subtree_log_weight[chain], weight);
    if (lot < weight - total)
      propose(subtree_proposal, chain, at(front.x, chain), at(result[3], chain), potential);
    subtree_log_weight[chain] = total;
    for (int64_t i = 0; i < dim; ++i) sum[i] += momentum[i];
    acceptance_sum[chain] += std::exp(std::min(weight, 0.0));
    return weight;
  }

  // NUTS._checkpointed with the levels of tree.py; returns whether a smaller subtree that the point ends has turned.
  bool checkpoint(int64_t chain) {
    const int64_t number = leaf[chain]++, highest = ones_of(number >> 1);
    const Real *momentum = at(front.momentum, chain), *sum = at(subtree_momentum_sum, chain);
    Real *momenta = checkpoint_momenta + chain * most_levels * dim, *sums = checkpoint_sums + chain * most_levels * dim;
    if (number % 2 == 0) {
      copy(momenta + highest * dim, momentum);
      for (int64_t i = 0; i < dim; ++i) sums[highest * dim + i] = sum[i] - Real(0.5) * momentum[i];
      return false;
    }
    for (int64_t level = highest; level > highest - last_ones_of(number); --level) {
      const Real *first = momenta + level * dim, *until = sums + level * dim;
      if (goes_back(first, momentum, [=](int64_t i) { return sum[i] - Real(0.5) * momentum[i] - until[i]; })) return true;
    }
    return false;
  }

  // Whether one of two momenta goes back on a sum of momenta.
  template <class Sum>
  bool goes_back(const Real *first, const Real *last, Sum sum) const {
    const Real one = sum_of<Real>(dim, [=](int64_t i) { return first[i] * sum(i); });
    const Real other = sum_of<Real>(dim, [=](int64_t i) { return last[i] * sum(i); });
    return !std::isnan(one) && !std::isnan(other) && (one <= 0 || other <= 0);
  }

  // NUTS._merged; returns whether the tree ends.
  bool merge(int64_t chain, double lot) {
    const double more = subtree_log_weight[chain];
    Real *sum = at(momentum_sum, chain);
    const Real *subtree_sum = at(subtree_momentum_sum, chain);
    for (int64_t i = 0; i < dim; ++i) sum[i] += subtree_sum[i];
    if (lot < more - log_weight[chain])
      propose(proposal, chain, at(subtree_proposal.x, chain), at(subtree_proposal.gradient, chain),
              subtree_proposal.potential[chain]);
    log_weight[chain] = log_add(log_weight[chain], more);
    ++depth[chain];
    drop_subtree(chain);
    const Real *first = at(front.momentum, chain), *last = at(back.momentum, chain);
    const bool turned =
        goes_back(first, last, [=](int64_t i) { return sum[i] - Real(0.5) * (first[i] + last[i]); });
    return turned || depth[chain] >= deepest;
  }

  // NUTS._ended.
  void end(int64_t chain, int64_t row, bool diverging) {
    const double leapfrogs = double((int64_t(1) << depth[chain]) - 1 + leaf[chain]);
    Real *here = at(x, chain);
    const Real *there = at(proposal.x, chain);
    const double squared = sum_of<double>(dim, [=](int64_t i) { return std::pow(double(there[i] - here[i]), 2); });
    tell(1, row, chain, true), tell(2, row, chain, acceptance_sum[chain] / leapfrogs), tell(3, row, chain, leapfrogs);
    tell(4, row, chain, initial_energy[chain]), tell(5, row, chain, std::sqrt(squared));
    tell(6, row, chain, double(diverging)), tell(7, row, chain, double(depth[chain] >= most_levels));
    copy(here, there);
    fresh[chain] = true, count[chain] += 1;
  }

  const Steps &steps;
  const int64_t chains, dim;
  void *const *next;
  std::vector<char> failed;
  double temperature, least_log_weight, size;
  int64_t deepest, most_levels;
  Real *x, *momentum_sum, *subtree_momentum_sum, *direction, *step_size, *checkpoint_momenta, *checkpoint_sums;
  double *count, *initial_energy, *log_weight, *subtree_log_weight, *acceptance_sum;
  bool *alive, *fresh;
  int64_t *depth, *leaf;
  Point front, back;
  Proposal proposal, subtree_proposal;
};

}  // namespace

NATIVE_STEP(Trees)
