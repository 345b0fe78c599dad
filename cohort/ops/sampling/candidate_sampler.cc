#include "cohort/ops/sampling/candidate_sampler.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random.h"

namespace cohort::random {
namespace {

using internal::describe;
using internal::Philox;
using internal::str;

// How classes [0, range) are drawn.
struct Distribution {
  const char* name;
  int64_t (*draw)(Philox& random, int64_t range);
  double (*probability)(int64_t candidate, int64_t range);
};

constexpr Distribution kUniform{
    "uniform_candidate_sampler",
    [](Philox& random, int64_t range) {
      return static_cast<int64_t>(random.below(static_cast<uint64_t>(range)));
    },
    [](int64_t, int64_t range) { return 1 / static_cast<double>(range); }};

constexpr Distribution kLogUniform{
    "log_uniform_candidate_sampler",
    [](Philox& random, int64_t range) {
      const double log_range = std::log1p(static_cast<double>(range));
      const auto value = static_cast<int64_t>(std::exp(random.next_double() * log_range)) - 1;
      return value % range;  // rounding may reach the range itself
    },
    [](int64_t candidate, int64_t range) {
      const auto c = static_cast<double>(candidate);
      return std::log((c + 2) / (c + 1)) / std::log1p(static_cast<double>(range));
    }};

struct Request {
  Tensor true_classes;
  int64_t num_true;
  int64_t num_sampled;
  bool unique;
  int64_t range_max;
};

void check_candidates(const char* what, const Request& asked) {
  const Tensor& classes = asked.true_classes;
  if (!classes.defined() || classes.dim() != 2 || classes.size(1) != asked.num_true ||
      !at::isIntegralType(classes.scalar_type(), /*includeBool=*/false)) {
    throw InvalidArgumentError(str("random::", what, " takes integer true_classes [batch, ",
                                   asked.num_true, "], but got ", describe(classes)));
  }
  if (asked.num_true < 1 || asked.num_sampled < 1 || asked.range_max < 1) {
    throw InvalidArgumentError(str("random::", what, ": num_true is ", asked.num_true,
                                   ", num_sampled ", asked.num_sampled, " and range_max ",
                                   asked.range_max, "; each must be above 0"));
  }
  if (asked.unique && asked.num_sampled > asked.range_max) {
    throw InvalidArgumentError(str("random::", what, ": there are no ", asked.num_sampled,
                                   " unique candidates among ", asked.range_max, " classes"));
  }
  if (classes.numel() == 0) return;
  const auto least = classes.min().item<int64_t>();
  const auto greatest = classes.max().item<int64_t>();
  if (least >= 0 && greatest < asked.range_max) return;
  throw InvalidArgumentError(str("random::", what, ": true_classes from ", least, " to ", greatest,
                                 " for ", asked.range_max, " classes"));
}

// `classes`' expected counts among candidates for which `tries` draws were made.
Tensor expected_counts(const Distribution& distribution, const Request& asked,
                       const Tensor& classes, int64_t tries) {
  const Tensor counts = at::empty(classes.sizes(), float32);
  const int64_t* const from = classes.data_ptr<int64_t>();
  float* const to = counts.data_ptr<float>();
  for (int64_t i = 0; i < classes.numel(); ++i) {
    const double p = distribution.probability(from[i], asked.range_max);
    const auto n = static_cast<double>(tries);
    to[i] = static_cast<float>(asked.unique ? -std::expm1(n * std::log1p(-p)) : p * n);
  }
  return counts;
}

SampledCandidates sample(const Distribution& distribution, const Request& asked,
                         const CandidateSamplerOptions& options) {
  check_candidates(distribution.name, asked);
  Philox random(options.seed ? *options.seed : get_global_generator().next_u64());
  const Tensor drawn = at::empty({asked.num_sampled}, int64);
  std::unordered_set<int64_t> seen;
  int64_t tries = 0;
  for (int64_t& candidate :
       std::span(drawn.data_ptr<int64_t>(), static_cast<size_t>(asked.num_sampled))) {
    do {
      candidate = distribution.draw(random, asked.range_max);
      ++tries;
    } while (asked.unique && !seen.insert(candidate).second);
  }
  const Tensor classes = asked.true_classes.detach().to(at::kCPU, int64).contiguous();
  const auto device = asked.true_classes.device();
  return {drawn.to(device), expected_counts(distribution, asked, classes, tries).to(device),
          expected_counts(distribution, asked, drawn, tries).to(device)};
}

}  // namespace

SampledCandidates uniform_candidate_sampler(const Tensor& true_classes, int64_t num_true,
                                            int64_t num_sampled, bool unique, int64_t range_max,
                                            CandidateSamplerOptions options) {
  return sample(kUniform, {true_classes, num_true, num_sampled, unique, range_max}, options);
}

SampledCandidates log_uniform_candidate_sampler(const Tensor& true_classes, int64_t num_true,
                                                int64_t num_sampled, bool unique, int64_t range_max,
                                                CandidateSamplerOptions options) {
  return sample(kLogUniform, {true_classes, num_true, num_sampled, unique, range_max}, options);
}

}  // namespace cohort::random
