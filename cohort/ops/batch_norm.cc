#include "cohort/ops/batch_norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/var_mean.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/ops/graph_node.h"
#include "cohort/ops/kernels/batch_norm_kernels.h"

namespace cohort::internal {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

struct ChannelRows {
  int64_t count = 0;
  int64_t channels = 0;
};
ChannelRows channel_rows(const Tensor& x) { return {x.numel() / x.size(-1), x.size(-1)}; }

constexpr int64_t kElementsOfThread = 32768;  // that are worth a thread

// Calls body(part, first row, last row) for each part of a division that depends on sizes alone, on
// several threads: whatever is added up by parts has the same bits on any number of them.
template <class Body>
void for_parts(const ChannelRows& rows, int64_t parts, const Body& body) {
  intra_op_parallel_for(
      0, parts, std::max<int64_t>(kElementsOfThread * parts / (rows.count * rows.channels), 1),
      [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part) {
          body(static_cast<size_t>(part), rows.count * part / parts,
               rows.count * (part + 1) / parts);
        }
      });
}
int64_t num_parts(const ChannelRows& rows) {
  constexpr int64_t kMostParts = 16;
  return std::clamp<int64_t>(rows.count * rows.channels / kElementsOfThread, 1, kMostParts);
}

template <class Body>
void for_rows(const ChannelRows& rows, const Body& body) {
  intra_op_parallel_for(0, rows.count, std::max<int64_t>(kElementsOfThread / rows.channels, 1),
                        body);
}

Moments moments_of(const float* x, const ChannelRows& rows) {
  const int64_t parts = num_parts(rows);
  std::vector<Moments> found(static_cast<size_t>(parts), Moments(rows.channels));
  for_parts(rows, parts, [&](size_t part, int64_t first, int64_t last) {
    add_moments(x + first * rows.channels, last - first, rows.channels, found[part]);
  });
  for (size_t part = 1; part < found.size(); ++part) merge_moments(found[part], found[0]);
  return std::move(found[0]);
}

// Sums of the gradient by the output, and of its products with x - mean.
struct GradientSums {
  std::vector<double> sums;
  std::vector<double> products;
};
GradientSums gradient_sums(const float* x, const float* mean, const float* gradient,
                           const ChannelRows& rows) {
  const auto channels = static_cast<size_t>(rows.channels);
  const int64_t parts = num_parts(rows);
  std::vector<GradientSums> found(static_cast<size_t>(parts),
                                  {std::vector<double>(channels), std::vector<double>(channels)});
  for_parts(rows, parts, [&](size_t part, int64_t first, int64_t last) {
    const int64_t at = first * rows.channels;
    add_gradient_sums(x + at, mean, gradient + at, last - first, rows.channels,
                      found[part].sums.data(), found[part].products.data());
  });
  for (size_t part = 1; part < found.size(); ++part) {
    for (size_t c = 0; c < channels; ++c) {
      found[0].sums[c] += found[part].sums[c];
      found[0].products[c] += found[part].products[c];
    }
  }
  return std::move(found[0]);
}

float value_at(const Tensor& weight, size_t channel, float otherwise) {
  return weight.defined() ? weight.data_ptr<float>()[channel] : otherwise;
}

// Inputs: the gradient of the output. Outputs: those of x, gamma and beta.
class NormalizationNode final : public GraphNode {
 public:
  NormalizationNode(const Tensor& x, const Tensor& gamma, const Tensor& beta, Tensor mean,
                    std::vector<double> reciprocals, double epsilon)
      : x_(x, /*is_output=*/false),
        gamma_(gamma, /*is_output=*/false),
        beta_(beta, /*is_output=*/false),
        mean_(std::move(mean)),
        reciprocals_(std::move(reciprocals)),
        epsilon_(epsilon) {}

  std::string name() const override { return "NormalizationByBatch"; }

  variable_list apply(variable_list&& gradients) override {
    const std::lock_guard lock(mutex_);
    if (!gradients[0].defined()) return variable_list(3);
    TORCH_CHECK(mean_.defined(), torch::autograd::ERR_BACKWARD_TWICE);
    if (at::GradMode::is_enabled()) return derive(gradients[0]);
    return compute(x_.unpack(), gamma_.unpack(), gradients[0].contiguous());
  }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    x_.reset_data();
    gamma_.reset_data();
    beta_.reset_data();
    mean_.reset();
  }

 private:
  variable_list compute(const Tensor& x, const Tensor& gamma, const Tensor& gradient) {
    const ChannelRows rows = channel_rows(x);
    const auto channels = static_cast<size_t>(rows.channels);
    const auto* const values = x.data_ptr<float>();
    const auto* const mean = mean_.data_ptr<float>();
    const auto* const outer = gradient.data_ptr<float>();
    const GradientSums sums = gradient_sums(values, mean, outer, rows);
    variable_list results(3);
    const auto weight_gradient = [&](size_t i, const auto& of) {
      if (!task_should_compute_output(i)) return;
      results[i] = at::empty({rows.channels}, mean_.options());
      for (size_t c = 0; c < channels; ++c) {
        results[i].data_ptr<float>()[c] = static_cast<float>(of(c));
      }
    };
    weight_gradient(1, [&](size_t c) { return sums.products[c] * reciprocals_[c]; });
    weight_gradient(2, [&](size_t c) { return sums.sums[c]; });
    if (!task_should_compute_output(0)) return results;
    std::vector<float> by(3 * channels);  // scales, constants, slopes
    const auto count = static_cast<double>(rows.count);
    for (size_t c = 0; c < channels; ++c) {
      const double scale = reciprocals_[c] * value_at(gamma, c, 1);
      by[c] = static_cast<float>(scale);
      by[channels + c] = static_cast<float>(scale * sums.sums[c] / count);
      by[2 * channels + c] =
          static_cast<float>(scale * sums.products[c] * reciprocals_[c] * reciprocals_[c] / count);
    }
    results[0] = at::empty(x.sizes(), x.options());
    auto* const to = results[0].data_ptr<float>();
    const InputGradient terms{mean, by.data(), by.data() + channels, by.data() + 2 * channels};
    for_rows(rows, [&](int64_t first, int64_t last) {
      const int64_t at = first * rows.channels;
      normalization_gradient_rows(terms, values + at, outer + at, last - first, rows.channels,
                                  to + at);
    });
    return results;
  }

  // Computes and records gradients by libtorch's own operations.
  variable_list derive(const Tensor& gradient) {
    variable_list sources{x_.unpack(), gamma_.unpack(), beta_.unpack()};
    variable_list wanted;
    for (Tensor& source : sources) {
      if (!source.defined() || !source.requires_grad()) continue;
      source = source.view_as(source);  // one tensor may be several
      wanted.push_back(source);
    }
    const Tensor output =
        normalize_by_batch_reference(sources[0], sources[1], sources[2], epsilon_);
    const variable_list found =
        torch::autograd::grad({output}, wanted, {gradient}, /*retain_graph=*/true,
                              /*create_graph=*/true, /*allow_unused=*/true);
    variable_list results(3);
    size_t next = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].defined() && sources[i].requires_grad()) results[i] = found[next++];
    }
    return results;
  }

  SavedVariable x_;
  SavedVariable gamma_;
  SavedVariable beta_;
  Tensor mean_;                            // undefined once released
  const std::vector<double> reciprocals_;  // of the standard deviations
  const double epsilon_;
};

}  // namespace

bool can_normalize_by_batch(const Tensor& x) {
  return x.is_cpu() && x.layout() == at::kStrided && x.scalar_type() == at::kFloat &&
         x.dim() >= 2 && x.numel() > 0 && x.is_contiguous() && !x.is_neg();
}

NormalizedBatch normalize_by_batch(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                   double epsilon) {
  const ChannelRows rows = channel_rows(x);
  const auto channels = static_cast<size_t>(rows.channels);
  const auto* const values = x.data_ptr<float>();
  const Moments moments = moments_of(values, rows);
  NormalizedBatch result{at::empty(x.sizes(), x.options()), at::empty({rows.channels}, x.options()),
                         at::empty({rows.channels}, x.options())};
  std::vector<double> reciprocals(channels);
  std::vector<float> by(2 * channels);  // scales, offsets
  for (size_t c = 0; c < channels; ++c) {
    const double variance = moments.squares[c] / static_cast<double>(rows.count);
    result.mean.data_ptr<float>()[c] = static_cast<float>(moments.mean[c]);
    result.variance.data_ptr<float>()[c] = static_cast<float>(variance);
    reciprocals[c] = 1 / std::sqrt(variance + epsilon);
    by[c] = static_cast<float>(reciprocals[c] * value_at(gamma, c, 1));
    by[channels + c] = value_at(beta, c, 0);
  }
  const Normalizer terms{result.mean.data_ptr<float>(), by.data(), by.data() + channels};
  auto* const to = result.output.data_ptr<float>();
  for_rows(rows, [&](int64_t first, int64_t last) {
    const int64_t at = first * rows.channels;
    normalize_rows(terms, values + at, last - first, rows.channels, to + at);
  });
  if (at::GradMode::is_enabled() && torch::autograd::compute_requires_grad(x, gamma, beta)) {
    record(
        result.output, edges_of({x, gamma, beta}),
        make_node<NormalizationNode>(x, gamma, beta, result.mean, std::move(reciprocals), epsilon));
  }
  return result;
}

Tensor normalize_by_batch_reference(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                    double epsilon) {
  std::vector<int64_t> others(static_cast<size_t>(x.dim() - 1));
  std::iota(others.begin(), others.end(), 0);
  const auto [variance, mean] = at::var_mean(x, others, /*unbiased=*/false, /*keepdim=*/true);
  Tensor output = (x - mean) * (variance + epsilon).rsqrt();
  if (gamma.defined()) output = output * gamma;
  return beta.defined() ? output + beta : output;
}

}  // namespace cohort::internal
