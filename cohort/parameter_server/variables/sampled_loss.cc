#include "cohort/parameter_server/variables/sampled_loss.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/ops/nn_ops.h"

namespace cohort::nn {
namespace {

using internal::describe;
using internal::str;
using random::SampledCandidates;

struct SampledLossCall {
  const char* name;
  const EmbeddingTable& weights;
  const EmbeddingTable& biases;
  Tensor labels;
  Tensor inputs;
  int64_t num_true;
  bool remove_accidental_hits;
};

// Logits of each example's true classes, and of the drawn ones.
struct SampledLogits {
  Tensor true_logits;     // [batch, num_true]
  Tensor sampled_logits;  // [batch, num_sampled]
};

void check_call(const SampledLossCall& call) {
  const Tensor& labels = call.labels;
  const Tensor& inputs = call.inputs;
  const bool fit = labels.defined() && inputs.defined() && inputs.is_floating_point() &&
                   at::isIntegralType(labels.scalar_type(), /*includeBool=*/false) &&
                   labels.dim() == 2 && inputs.dim() == 2 && labels.size(0) == inputs.size(0) &&
                   labels.size(1) == call.num_true;
  if (fit) return;
  throw InvalidArgumentError(str("nn::", call.name,
                                 " takes integer labels [batch, num_true], here [batch, ",
                                 call.num_true, "], and floating inputs [batch, dim], but got ",
                                 describe(labels), " and ", describe(inputs)));
}

// What the user gave, or what the default sampler draws.
SampledCandidates candidates_of(const SampledLossCall& call,
                                const std::optional<SampledCandidates>& given, int64_t num_sampled,
                                int64_t num_classes, std::optional<uint64_t> seed) {
  if (!given) {
    return random::log_uniform_candidate_sampler(call.labels, call.num_true, num_sampled,
                                                 /*unique=*/true, num_classes, {.seed = seed});
  }
  const Tensor& drawn = given->sampled_candidates;
  const bool fit = drawn.defined() && drawn.dim() == 1 && drawn.size(0) == num_sampled &&
                   given->sampled_expected_count.defined() &&
                   given->sampled_expected_count.sizes() == drawn.sizes() &&
                   given->true_expected_count.defined() &&
                   given->true_expected_count.sizes() == call.labels.sizes();
  if (fit) return *given;
  throw InvalidArgumentError(str("nn::", call.name, ": sampled_values have ", describe(drawn),
                                 " candidates and expected counts ",
                                 describe(given->true_expected_count), " and ",
                                 describe(given->sampled_expected_count), "; needed are [",
                                 num_sampled, "], the shape of labels, and [", num_sampled, "]"));
}

SampledLogits logits_of(const SampledLossCall& call, const SampledCandidates& candidates) {
  const Tensor labels = call.labels.detach().to(int64);
  const Tensor sampled = candidates.sampled_candidates.detach().to(labels.device(), int64);
  const int64_t of_labels = labels.numel();
  const int64_t of_sampled = sampled.numel();
  const Tensor ids = at::cat({labels.reshape({-1}), sampled});
  const auto dtype = call.inputs.scalar_type();
  const Tensor rows = call.weights.rows(ids).to(dtype);
  const Tensor biases = call.biases.rows(ids).to(dtype);
  if (rows.dim() != 2 || rows.size(1) != call.inputs.size(1) || biases.dim() != 1) {
    throw InvalidArgumentError(str(
        "nn::", call.name, " takes weights [classes, dim] and biases ", "[classes] for inputs ",
        describe(call.inputs), ", but their rows are ", describe(rows), " and ", describe(biases)));
  }
  const Tensor true_rows =
      rows.narrow(0, 0, of_labels).view({labels.size(0), labels.size(1), rows.size(1)});
  SampledLogits logits;
  logits.true_logits = (call.inputs.unsqueeze(1) * true_rows).sum(-1) +
                       biases.narrow(0, 0, of_labels).view(labels.sizes());
  logits.sampled_logits = at::matmul(call.inputs, rows.narrow(0, of_labels, of_sampled).t()) +
                          biases.narrow(0, of_labels, of_sampled);
  if (call.remove_accidental_hits) {
    const Tensor hits = labels.unsqueeze(-1).eq(sampled).any(1);
    logits.sampled_logits =
        logits.sampled_logits + at::where(hits, -std::numeric_limits<float>::max(), 0).to(dtype);
  }
  const auto log_of = [&](const Tensor& expected) {
    return expected.detach().log().to(call.inputs.device(), dtype);
  };
  logits.true_logits = logits.true_logits - log_of(candidates.true_expected_count);
  logits.sampled_logits = logits.sampled_logits - log_of(candidates.sampled_expected_count);
  return logits;
}

}  // namespace

Tensor sampled_softmax_loss(const EmbeddingTable& weights, const EmbeddingTable& biases,
                            const Tensor& labels, const Tensor& inputs, int64_t num_sampled,
                            int64_t num_classes, const SampledSoftmaxLossOptions& options) {
  const SampledLossCall call{
      "sampled_softmax_loss",        weights, biases, labels, inputs, options.num_true,
      options.remove_accidental_hits};
  check_call(call);
  const auto candidates =
      candidates_of(call, options.sampled_values, num_sampled, num_classes, options.seed);
  return internal::libtorch_call("nn::sampled_softmax_loss", [&] {
    const auto [true_logits, sampled_logits] = logits_of(call, candidates);
    // Each true class has the same part of the example's probability.
    return -at::log_softmax(at::cat({true_logits, sampled_logits}, 1), 1)
                .narrow(1, 0, options.num_true)
                .mean(1);
  });
}

Tensor nce_loss(const EmbeddingTable& weights, const EmbeddingTable& biases, const Tensor& labels,
                const Tensor& inputs, int64_t num_sampled, int64_t num_classes,
                const NceLossOptions& options) {
  const SampledLossCall call{"nce_loss",
                             weights,
                             biases,
                             labels,
                             inputs,
                             options.num_true,
                             options.remove_accidental_hits};
  check_call(call);
  const auto candidates =
      candidates_of(call, options.sampled_values, num_sampled, num_classes, std::nullopt);
  return internal::libtorch_call("nn::nce_loss", [&] {
    const auto [true_logits, sampled_logits] = logits_of(call, candidates);
    const Tensor true_labels =
        at::full_like(true_logits, 1.0 / static_cast<double>(options.num_true));
    const Tensor of_true = sigmoid_cross_entropy_with_logits(true_labels, true_logits);
    const Tensor of_sampled =
        sigmoid_cross_entropy_with_logits(at::zeros_like(sampled_logits), sampled_logits);
    return of_true.sum(1) + of_sampled.sum(1);
  });
}

}  // namespace cohort::nn
