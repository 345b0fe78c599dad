// Boundaries between buckets of equal weight.

#include <ATen/ops/from_blob.h>

#include "cohort/transform/analysis/attributes.h"
#include "cohort/transform/analysis/feature_accumulator.h"
#include "cohort/transform/analysis/quantile_sketch.h"
#include "cohort/transform/analysis/simple_analysis.h"
#include "cohort/transform/analysis/token_column.h"

namespace cohort::internal {
namespace {

class QuantilesAccumulator final : public FeatureAccumulator<QuantileSketch> {
 public:
  QuantilesAccumulator(std::string name, const QuantilesOptions& options)
      : FeatureAccumulator(std::move(name), options.weighted ? 2 : 1,
                           {.reduce_instance_dims = options.reduce_instance_dims},
                           QuantileSketch(options.epsilon)),
        options_(options) {}

 private:
  void add_values(std::span<const ColumnBatch> columns, const NumericValues& values,
                  std::vector<QuantileSketch>& sketches) override {
    if (!options_.weighted) return FeatureAccumulator::add_values(columns, values, sketches);
    const std::vector<double> weights = weights_of_values(columns[0], columns[1]);
    for (const double weight : weights) {
      if (std::isinf(weight))
        throw InvalidArgumentError("a weight is infinite; weights are finite");
    }
    visit_values(values, [&](const auto* first) {
      for (int64_t i = 0; i < values.rows * values.features; ++i) {
        sketches[static_cast<size_t>(i % values.features)].add(static_cast<double>(first[i]),
                                                               weights[static_cast<size_t>(i)]);
      }
    });
  }

  AnalysisResult result() override {
    std::vector<float> boundaries;
    for (const QuantileSketch& sketch : features()) {
      for (const double boundary : sketch.boundaries(options_.num_buckets)) {
        boundaries.push_back(static_cast<float>(boundary));
      }
    }
    std::vector<int64_t> shape = form().shape();
    if (options_.reduce_instance_dims) shape = {1};
    shape.push_back(options_.num_buckets - 1);
    const auto errors =
        of_features([](auto& f) { return f.weight() > 0 ? f.error() / f.weight() : 0.0; });
    return {
        {{"quantiles", at::from_blob(boundaries.data(), shape, at::TensorOptions(float32)).clone()},
         {"error", form().result(errors, float64)}}};
  }

  const QuantilesOptions options_;
};

}  // namespace

AnalysisPtr quantiles_analysis(const QuantilesOptions& options) {
  if (options.num_buckets < 2 || options.num_buckets > (int64_t{1} << 24)) {
    throw InvalidArgumentError(
        str("num_buckets must be in [2, 2^24], but got: ", options.num_buckets));
  }
  if (!(options.epsilon > 0) || options.epsilon > 1) {
    throw InvalidArgumentError(str("epsilon must be in (0, 1], but got: ", options.epsilon));
  }
  return simple_analysis({.kind = "quantiles",
                          .attributes = {{"num_buckets", options.num_buckets},
                                         {"epsilon", options.epsilon},
                                         {"weighted", options.weighted},
                                         {"reduce_instance_dims", options.reduce_instance_dims}},
                          .num_inputs = options.weighted ? size_t{2} : size_t{1},
                          .result_names = {"quantiles", "error"}},
                         [options](std::string name, const AnalysisContext&) {
                           return std::make_unique<QuantilesAccumulator>(std::move(name), options);
                         });
}

}  // namespace cohort::internal
