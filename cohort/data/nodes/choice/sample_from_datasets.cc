#include <cmath>

#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/nodes/choice/chosen_inputs.h"
#include "cohort/data/nodes/shuffle_elements.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random.h"

namespace cohort::internal {
namespace {

// Draws from the datasets that have elements left: what draws from all and leaves out the others
// would give, without the draws that come to nothing.
class DrawnChoices final : public Choices {
 public:
  DrawnChoices(const std::vector<double>& weights, const ShuffleSeed& seed, uint64_t epoch,
               bool stop_on_empty)
      : weights_(weights), seed_(seed), stop_on_empty_(stop_on_empty) {
    rewind(epoch);
  }

  std::optional<size_t> next(const std::vector<bool>& ended) override {
    double total = 0;
    for (size_t i = 0; i < weights_.size(); ++i) total += counts(ended, i) ? weights_[i] : 0;
    double drawn = random_.next_double() * total;
    size_t choice = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (!counts(ended, i)) continue;
      choice = i;  // the last one, should rounding leave something over
      if (drawn < weights_[i]) break;
      drawn -= weights_[i];
    }
    return choice;
  }
  void rewind(uint64_t epoch) override { random_ = Philox(seed_.seed, seed_.epoch(epoch)); }
  IteratorState save() override {
    IteratorState state;
    state.set_int("seed", static_cast<int64_t>(random_.seed()));
    state.set_int("stream", static_cast<int64_t>(random_.stream()));
    state.set_int("position", static_cast<int64_t>(random_.position()));
    return state;
  }
  void restore(const IteratorState& state) override {
    seed_.seed = static_cast<uint64_t>(state.get_int("seed"));
    random_ = Philox(seed_.seed, static_cast<uint64_t>(state.get_int("stream")));
    random_.seek(static_cast<uint64_t>(state.get_int("position", 0, kInfiniteSize)));
  }

 private:
  bool counts(const std::vector<bool>& ended, size_t i) const {
    return stop_on_empty_ || !ended[i];
  }

  const std::vector<double> weights_;
  ShuffleSeed seed_;
  const bool stop_on_empty_;
  Philox random_;
};

class SampleNode final : public ChosenNode {
 public:
  SampleNode(std::vector<DataNodePtr> inputs, std::vector<double> weights, ShuffleSeed seed,
             bool stop_on_empty)
      : ChosenNode("sample_from_datasets", inputs, inputs.size(), stop_on_empty),
        weights_(std::move(weights)),
        seed_(seed) {}

  Attributes attributes() const override {
    std::string weights;
    for (const double weight : weights_) weights += (weights.empty() ? "" : ", ") + str(weight);
    Attributes attributes = {{"weights", '[' + weights + ']'}};
    if (seed_.origin == SeedOrigin::kGiven) attributes.emplace_back("seed", str(seed_.seed));
    if (seed_.origin == SeedOrigin::kAgreed) attributes.emplace_back("seed", "agreed");
    if (stop_on_empty()) attributes.emplace_back("stop_on_empty_dataset", "true");
    if (seed_.reshuffle) attributes.emplace_back("rerandomize_each_iteration", "true");
    return attributes;
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<SampleNode>(std::move(inputs), weights_, seed_, stop_on_empty());
  }
  std::optional<uint64_t> drawn_seed() const override {
    return seed_.origin == SeedOrigin::kDrawn ? std::optional(seed_.seed) : std::nullopt;
  }
  DataNodePtr with_agreed_seed(uint64_t seed) const override {
    return std::make_shared<SampleNode>(inputs(), weights_,
                                        ShuffleSeed{seed, SeedOrigin::kAgreed, seed_.reshuffle},
                                        stop_on_empty());
  }
  // Each element of each dataset comes once, unless there is an early end.
  int64_t cardinality() const override {
    const int64_t endless = endless_cardinality();
    if (endless != data::kUnknownCardinality || stop_on_empty()) return endless;
    int64_t sum = 0;
    for (const DataNodePtr& input : inputs()) {
      const int64_t size = input->cardinality();
      if (size == data::kUnknownCardinality) return size;
      if (sum >= kInfiniteSize - size) return data::kInfiniteCardinality;  // as concatenate's
      sum += size;
    }
    return sum;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return chosen_by(
        std::make_unique<DrawnChoices>(weights_, seed_, context.epoch, stop_on_empty()), context);
  }
  bool passes_file_sharding() const override { return true; }

 private:
  const std::vector<double> weights_;
  const ShuffleSeed seed_;
};

void check_weights(const std::vector<double>& weights, size_t num_datasets) {
  if (num_datasets == 0) {
    throw InvalidArgumentError("sample_from_datasets: there are no datasets to sample from");
  }
  if (weights.empty()) return;
  if (weights.size() != num_datasets) {
    throw InvalidArgumentError(str("sample_from_datasets: there are ", num_datasets,
                                   " datasets, but ", weights.size(), " weights"));
  }
  double largest = 0;
  for (const double weight : weights) {
    if (!std::isfinite(weight) || weight < 0) {
      throw InvalidArgumentError(
          str("sample_from_datasets: a weight is ", weight, "; weights are finite and at least 0"));
    }
    largest = std::max(largest, weight);
  }
  if (largest == 0) {
    throw InvalidArgumentError(
        "sample_from_datasets: all weights are 0; one dataset must have a weight above it");
  }
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::sample_from_datasets(const std::vector<Dataset>& datasets,
                                      const SampleFromDatasetsOptions& options) {
  using Origin = internal::SeedOrigin;
  internal::check_weights(options.weights, datasets.size());
  std::vector<internal::DataNodePtr> nodes;
  std::vector<double> weights;
  Options merged;
  size_t last = 0;
  for (size_t i = 0; i < datasets.size(); ++i) {
    const double weight = options.weights.empty() ? 1. : options.weights[i];
    if (weight == 0) continue;
    nodes.push_back(datasets[i].node());
    weights.push_back(weight);
    merged = merged.merged_with(datasets[i].options());
    last = i;
  }
  if (nodes.size() == 1) return datasets[last];
  const internal::ShuffleSeed seed{options.seed ? *options.seed : internal::next_seed(),
                                   options.seed ? Origin::kGiven : Origin::kDrawn,
                                   options.rerandomize_each_iteration};
  return Dataset(std::make_shared<internal::SampleNode>(std::move(nodes), std::move(weights), seed,
                                                        options.stop_on_empty_dataset),
                 merged);
}

}  // namespace cohort::data
