#include <cohort/cohort.h>

#include <string>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

using keras::losses::Reduction;

Reduction reduction_of(const std::string& name) {
  if (name == "none") return Reduction::NONE;
  if (name == "sum") return Reduction::SUM;
  if (name == "sum_over_batch_size") return Reduction::SUM_OVER_BATCH_SIZE;
  throw InvalidArgumentError("no reduction '" + name + "'");
}

keras::losses::Loss make_loss(const std::string& name, const Json& options) {
  const Reduction reduction = reduction_of(options.at("reduction"));
  const bool from_logits = options.value("from_logits", false);
  if (name == "SparseCategoricalCrossentropy") {
    return keras::losses::SparseCategoricalCrossentropy(
        {.from_logits = from_logits, .reduction = reduction});
  }
  if (name == "BinaryCrossentropy") {
    return keras::losses::BinaryCrossentropy(
        {.from_logits = from_logits,
         .label_smoothing = options.value("label_smoothing", 0.0),
         .reduction = reduction});
  }
  if (name == "MeanSquaredError") {
    return keras::losses::MeanSquaredError({.reduction = reduction});
  }
  throw InvalidArgumentError("no loss '" + name + "'");
}

template <class Metric>
Json update_all(const Metric& metric, const Json& updates) {
  for (const Json& update : updates) {
    metric.update_state(tensor_of(update.at("labels")), tensor_of(update.at("predictions")),
                        tensor_of(update.at("sample_weight")));
  }
  return json_of(metric.result());
}

}  // namespace

Json compute_loss(const Json& request) {
  const auto loss = make_loss(request.at("loss"), request.at("options"));
  return json_of(loss(tensor_of(request.at("labels")), tensor_of(request.at("predictions")),
                      tensor_of(request.at("sample_weight"))));
}

Json compute_average_loss(const Json& request) {
  nn::AverageLossOptions options{.sample_weight = tensor_of(request.at("sample_weight"))};
  if (!request.at("global_batch").is_null()) {
    options.global_batch_size = request.at("global_batch").get<int64_t>();
  }
  return json_of(nn::compute_average_loss(tensor_of(request.at("per_example_loss")), options));
}

Json compute_metric(const Json& request) {
  const std::string name = request.at("metric");
  const Json& updates = request.at("updates");
  if (name == "Accuracy") return update_all(keras::metrics::Accuracy(), updates);
  if (name == "SparseCategoricalAccuracy") {
    return update_all(keras::metrics::SparseCategoricalAccuracy(), updates);
  }
  if (name == "Mean") {
    const keras::metrics::Mean mean;
    for (const Json& update : updates) {
      mean.update_state(tensor_of(update.at("values")), tensor_of(update.at("sample_weight")));
    }
    return json_of(mean.result());
  }
  throw InvalidArgumentError("no metric '" + name + "'");
}

}  // namespace cohort::interop
