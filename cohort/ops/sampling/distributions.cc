#include "cohort/ops/sampling/distributions.h"

#include <math.h>  // lgamma_r

#include <algorithm>
#include <cmath>

namespace cohort::internal {
namespace {

// Below this mean the simple methods are the faster ones, and the rejections do not hold.
constexpr double kLeastMeanOfRejection = 10;

// std::lgamma writes to a global variable.
double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

double uniform_above_zero(Philox& random) { return 1 - random.next_double(); }

double small_poisson(Philox& random, double lam) {
  const double limit = std::exp(-lam);
  double product = random.next_double();
  double count = 0;
  for (; product > limit; product *= random.next_double()) ++count;
  return count;
}

double large_poisson(Philox& random, double lam) {
  const double log_lam = std::log(lam);
  const double b = 0.931 + 2.53 * std::sqrt(lam);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = random.next_double() - 0.5;
    const double v = uniform_above_zero(random);
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + lam + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double log_v = std::log(v * inverse_alpha / (a / (us * us) + b));
    if (log_v <= k * log_lam - lam - log_gamma(k + 1)) return k;
  }
}

// Counts the waiting times until the next success that fit into the trials.
double small_binomial(Philox& random, double count, double p) {
  const double log_failure = std::log1p(-p);
  double trials = 0;
  double successes = 0;
  while (true) {
    trials += std::max(1.0, std::ceil(std::log(uniform_above_zero(random)) / log_failure));
    if (trials > count) return successes;
    ++successes;
  }
}

double large_binomial(Philox& random, double count, double p) {
  const double spread = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * spread;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double center = count * p + 0.5;
  const double v_r = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * spread;
  const double log_odds = std::log(p / (1 - p));
  const double mode = std::floor((count + 1) * p);
  const double of_mode = log_gamma(mode + 1) + log_gamma(count - mode + 1);
  while (true) {
    const double u = random.next_double() - 0.5;
    const double v = uniform_above_zero(random);
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + center);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > count) continue;
    const double log_v = std::log(v * alpha / (a / (us * us) + b));
    const double log_ratio =
        of_mode - log_gamma(k + 1) - log_gamma(count - k + 1) + (k - mode) * log_odds;
    if (log_v <= log_ratio) return k;
  }
}

}  // namespace

double draw_gamma(Philox& random, double alpha) {
  // A small alpha: a number of alpha + 1 times a power of a uniform number.
  const double boost = alpha < 1 ? std::pow(uniform_above_zero(random), 1 / alpha) : 1;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.next_normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = uniform_above_zero(random);
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * boost;
  }
}

double draw_poisson(Philox& random, double lam) {
  if (lam == 0) return 0;
  return lam < kLeastMeanOfRejection ? small_poisson(random, lam) : large_poisson(random, lam);
}

double draw_binomial(Philox& random, double count, double p) {
  if (p == 0 || count == 0) return 0;
  if (p > 0.5) return count - draw_binomial(random, count, 1 - p);
  return count * p < kLeastMeanOfRejection ? small_binomial(random, count, p)
                                           : large_binomial(random, count, p);
}

}  // namespace cohort::internal
