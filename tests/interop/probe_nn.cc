#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <cohort/core/error.h>
#include <cohort/ops/ctc.h>
#include <cohort/ops/nn_ops.h>
#include <cohort/ops/sampling/stateless_random.h>
#include <cohort/parameter_server/variables/sampled_loss.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

using Tensors = std::vector<Tensor>;
using NnFunction = std::function<Tensors(const Tensors&, const Json&)>;

std::optional<int64_t> optional_int(const Json& options, const char* name) {
  if (!options.contains(name)) return std::nullopt;
  return options.at(name).get<int64_t>();
}

DType dtype_option(const Json& options) {
  const std::map<std::string, DType> dtypes = {{"float32", float32},        {"float64", float64},
                                               {"float16", at::kHalf},      {"int32", int32},
                                               {"bfloat16", at::kBFloat16}, {"int64", int64}};
  return dtypes.at(options.value("dtype", "float32"));
}

std::vector<int64_t> shape_in(const Json& options) {
  return options.at("shape").get<std::vector<int64_t>>();
}

random::StatelessSeed seed_of(const Json& options) {
  const auto seed = options.at("seed").get<std::vector<int64_t>>();
  return {seed.at(0), seed.at(1)};
}

nn::CtcLossOptions ctc_options(const Json& options) {
  return {.logits_time_major = options.value("logits_time_major", true),
          .blank_index = optional_int(options, "blank_index")};
}

std::optional<random::SampledCandidates> candidates_in(const Tensors& in) {
  return random::SampledCandidates{in.at(4), in.at(5), in.at(6)};
}

// Entries of a dense tensor that are not below 0, as a COO tensor.
Tensor sparse_labels(const Tensor& dense) {
  const Tensor places = dense.ge(0).nonzero().t().contiguous();
  return at::sparse_coo_tensor(places, dense.masked_select(dense.ge(0)), dense.sizes());
}

random::UniformOptions uniform_options(const Json& o) {
  return {.minval = o.value("minval", 0.0), .maxval = o.value("maxval", 1.0), .dtype = dtype_option(o)};
}
random::NormalOptions normal_options(const Json& o) {
  return {.mean = o.value("mean", 0.0), .stddev = o.value("stddev", 1.0), .dtype = dtype_option(o)};
}

const std::map<std::string, NnFunction>& loss_functions() {
  static const std::map<std::string, NnFunction> functions = {
      {"moments",
       [](const Tensors& in, const Json& o) -> Tensors {
         const auto [mean, variance] =
             nn::moments(in.at(0), o.at("axes").get<std::vector<int64_t>>(),
                         {.keepdims = o.value("keepdims", false)});
         return {mean + variance, mean, variance};
       }},
      {"l2_normalize",
       [](const Tensors& in, const Json& o) -> Tensors {
         return {nn::l2_normalize(in.at(0), {.axis = o.at("axis").get<std::vector<int64_t>>(),
                                             .epsilon = o.at("epsilon").get<double>()})};
       }},
      {"weighted_cross_entropy_with_logits",
       [](const Tensors& in, const Json&) -> Tensors {
         return {nn::weighted_cross_entropy_with_logits(in.at(0), in.at(1), in.at(2))};
       }},
      {"ctc_loss",
       [](const Tensors& in, const Json& o) -> Tensors {
         return {nn::ctc_loss(in.at(0), in.at(1), in.at(2), in.at(3), ctc_options(o))};
       }},
      {"ctc_loss_sparse",
       [](const Tensors& in, const Json& o) -> Tensors {
         return {nn::ctc_loss(sparse_labels(in.at(0)), in.at(1), {}, in.at(2), ctc_options(o))};
       }},
      {"ctc_greedy_decoder",
       [](const Tensors& in, const Json& o) -> Tensors {
         const nn::CtcDecoded found =
             nn::ctc_greedy_decoder(in.at(0), in.at(1),
                                    {.merge_repeated = o.at("merge_repeated").get<bool>(),
                                     .blank_index = optional_int(o, "blank_index")});
         const Tensor decoded = found.decoded.coalesce();
         return {found.neg_sum_logits, decoded.indices().t(), decoded.values(),
                 at::tensor(decoded.sizes().vec())};
       }},
      {"sampled_softmax_loss",
       [](const Tensors& in, const Json& o) -> Tensors {
         return {nn::sampled_softmax_loss(
             in.at(0), in.at(1), in.at(2), in.at(3), o.at("num_sampled").get<int64_t>(),
             o.at("num_classes").get<int64_t>(),
             {.num_true = o.at("num_true").get<int64_t>(),
              .sampled_values = candidates_in(in),
              .remove_accidental_hits = o.at("remove_accidental_hits").get<bool>()})};
       }},
      {"nce_loss",
       [](const Tensors& in, const Json& o) -> Tensors {
         return {
             nn::nce_loss(in.at(0), in.at(1), in.at(2), in.at(3),
                          o.at("num_sampled").get<int64_t>(), o.at("num_classes").get<int64_t>(),
                          {.num_true = o.at("num_true").get<int64_t>(),
                           .sampled_values = candidates_in(in),
                           .remove_accidental_hits = o.at("remove_accidental_hits").get<bool>()})};
       }},
  };
  return functions;
}

const std::map<std::string, NnFunction>& random_functions() {
  static const std::map<std::string, NnFunction> functions = {
      {"stateless_uniform",
       [](const Tensors&, const Json& o) -> Tensors {
         return {random::stateless_uniform(shape_in(o), seed_of(o), uniform_options(o))};
       }},
      {"stateless_uniform_full_int",
       [](const Tensors&, const Json& o) -> Tensors {
         return {random::stateless_uniform_full_int(shape_in(o), seed_of(o), dtype_option(o))};
       }},
      {"stateless_normal",
       [](const Tensors&, const Json& o) -> Tensors {
         return {random::stateless_normal(shape_in(o), seed_of(o), normal_options(o))};
       }},
      {"stateless_truncated_normal",
       [](const Tensors&, const Json& o) -> Tensors {
         return {random::stateless_truncated_normal(shape_in(o), seed_of(o), normal_options(o))};
       }},
      {"stateless_categorical",
       [](const Tensors& in, const Json& o) -> Tensors {
         return {random::stateless_categorical(in.at(0), o.at("num_samples").get<int64_t>(),
                                               seed_of(o))};
       }},
      {"stateless_shuffle",
       [](const Tensors& in, const Json& o) -> Tensors {
         return {random::stateless_shuffle(in.at(0), seed_of(o))};
       }},
      {"split",
       [](const Tensors&, const Json& o) -> Tensors {
         return {random::split(seed_of(o), o.at("num").get<int64_t>())};
       }},
      {"fold_in",
       [](const Tensors&, const Json& o) -> Tensors {
         const auto seed = random::fold_in(seed_of(o), o.at("data").get<int64_t>());
         return {at::tensor({seed.first(), seed.second()})};
       }},
      {"stateless_gamma",
       [](const Tensors& in, const Json& o) -> Tensors {
         return {random::stateless_gamma(shape_in(o), seed_of(o), in.at(0), in.at(1))};
       }},
      {"stateless_poisson",
       [](const Tensors& in, const Json& o) -> Tensors {
         return {random::stateless_poisson(shape_in(o), seed_of(o), in.at(0))};
       }},
      {"stateless_binomial",
       [](const Tensors& in, const Json& o) -> Tensors {
         return {random::stateless_binomial(shape_in(o), seed_of(o), in.at(0), in.at(1))};
       }},
  };
  return functions;
}

// JSON has no 16-bit numbers.
Tensor widened(const Tensor& tensor) {
  return tensor.is_floating_point() && tensor.element_size() < 4 ? tensor.to(float64) : tensor;
}

Json json_or_null(const Tensor& tensor) { return tensor.defined() ? json_of(tensor) : Json(); }

Json gradients_of(const Tensor& output, const Tensors& inputs, const Json& cotangent) {
  Tensors targets;
  for (const Tensor& input : inputs) {
    if (input.defined() && input.requires_grad()) targets.push_back(input);
  }
  const Tensor weighted = (output * tensor_of(cotangent)).sum();
  const auto found = torch::autograd::grad({weighted}, targets, {}, false, false, true);
  Json gradients = Json::array();
  size_t next = 0;
  for (const Tensor& input : inputs) {
    const bool has = input.defined() && input.requires_grad();
    gradients.push_back(has ? json_or_null(found.at(next++)) : Json());
  }
  return gradients;
}

}  // namespace

Json call_nn(const Json& request) {
  try {
    Tensors inputs;
    const bool differentiates = request.contains("cotangent");
    for (const Json& input : request.at("inputs")) {
      inputs.push_back(tensor_of(input));
      Tensor& last = inputs.back();
      if (last.defined() && last.is_floating_point()) last.requires_grad_(differentiates);
    }
    const auto name = request.at("function").get<std::string>();
    const auto& functions = loss_functions().contains(name) ? loss_functions() : random_functions();
    const Tensors outputs = functions.at(name)(inputs, request.at("options"));
    Json answer = {{"outputs", Json::array()}};
    for (const Tensor& output : outputs) answer["outputs"].push_back(json_of(widened(output)));
    if (differentiates) {
      answer["gradients"] = gradients_of(outputs.at(0), inputs, request.at("cotangent"));
    }
    return answer;
  } catch (const Error& error) {
    return {{"error", code_name(error.code())}, {"text", error.what()}};
  }
}

}  // namespace cohort::interop
