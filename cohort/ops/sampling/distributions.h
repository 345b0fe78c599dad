// Draws of distributions whose count of words is not known, from one Philox stream.
#pragma once

#include "cohort/ops/philox.h"

namespace cohort::internal {

// A gamma number of concentration alpha > 0 and rate 1 (Marsaglia and Tsang, 2000).
double draw_gamma(Philox& random, double alpha);
// A Poisson number of mean lam >= 0 (products of uniform numbers, or the rejection PTRS of Hörmann,
// 1993).
double draw_poisson(Philox& random, double lam);
// The successes of `count` >= 0 trials with probability p in [0, 1] (waiting times, or the
// rejection BTRS of Hörmann, 1993).
double draw_binomial(Philox& random, double count, double p);

}  // namespace cohort::internal
