#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/nodes/choice/chosen_inputs.h"
#include "cohort/data/nodes/shuffle_elements.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random.h"

namespace cohort::internal {
namespace {

using Weights = std::vector<double>;

void check_weights(std::span<const double> weights, size_t num_datasets) {
  if (weights.size() != num_datasets) {
    throw InvalidArgumentError(
        str("there are ", num_datasets, " datasets, but ", weights.size(), " weights"));
  }
  double largest = 0;
  for (const double weight : weights) {
    if (!std::isfinite(weight) || weight < 0) {
      throw InvalidArgumentError(
          str("a weight is ", weight, "; weights are finite and at least 0"));
    }
    largest = std::max(largest, weight);
  }
  if (largest == 0) {
    throw InvalidArgumentError("all weights are 0; one dataset must have a weight above it");
  }
}

// Draws from the datasets that have elements left: what draws from all and leaves out the others
// would give, without the draws that come to nothing.
class DrawnChoices : public Choices {
 public:
  DrawnChoices(Weights weights, const ShuffleSeed& seed, uint64_t epoch, bool stop_on_empty)
      : weights_(std::move(weights)), seed_(seed), stop_on_empty_(stop_on_empty) {
    random_ = Philox(seed_.seed, seed_.epoch(epoch));
  }

  std::optional<size_t> next(const std::vector<bool>& ended) override {
    return draw(weights_, ended);
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

 protected:
  double total_weight(const Weights& weights, const std::vector<bool>& ended) const {
    double total = 0;
    for (size_t i = 0; i < weights.size(); ++i) total += counts(ended, i) ? weights[i] : 0;
    return total;
  }
  size_t draw(const Weights& weights, const std::vector<bool>& ended) {
    double drawn = random_.next_double() * total_weight(weights, ended);
    size_t choice = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (!counts(ended, i) || weights[i] == 0) continue;
      choice = i;  // the last one, should rounding leave something over
      if (drawn < weights[i]) break;
      drawn -= weights[i];
    }
    return choice;
  }

 private:
  bool counts(const std::vector<bool>& ended, size_t i) const {
    return stop_on_empty_ || !ended[i];
  }

  const Weights weights_;
  ShuffleSeed seed_;
  const bool stop_on_empty_;
  Philox random_;
};

// Each draw has weights of its own, which are read.
class ReadWeightChoices final : public DrawnChoices {
 public:
  ReadWeightChoices(std::unique_ptr<DataIterator> weights, size_t num_datasets,
                    const ShuffleSeed& seed, uint64_t epoch, bool stop_on_empty)
      : DrawnChoices({}, seed, epoch, stop_on_empty),
        source_(std::move(weights)),
        weights_(num_datasets) {}

  std::optional<size_t> next(const std::vector<bool>& ended) override {
    for (int64_t skipped = 0; skipped < kMostSkipped; ++skipped) {
      if (!read_weights()) return std::nullopt;
      if (total_weight(weights_, ended) > 0) return draw(weights_, ended);
    }
    throw FailedPreconditionError(str("sample_from_datasets: the last ", kMostSkipped,
                                      " elements of weights are 0 for all ",
                                      "datasets that have elements left"));
  }
  void rewind(uint64_t epoch) override {
    DrawnChoices::rewind(epoch);
    position_ = 0;
    source_->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state = DrawnChoices::save();
    state.set_int("weights_read", position_);
    state.set_child("weights", source_->save());
    return state;
  }
  void restore(const IteratorState& state) override {
    DrawnChoices::restore(state);
    position_ = state.get_int("weights_read", 0, kMostElements);
    source_->restore(state.child("weights"));
  }

 private:
  static constexpr int64_t kMostSkipped = 100'000;

  bool read_weights() {
    const int64_t position = position_++;
    Structure element;
    if (!source_->next(element)) return false;
    try {
      const bool fits = element.is_leaf() && element.leaf().is_tensor() &&
                        element.tensor().dim() == 1 && element.tensor().is_floating_point();
      if (!fits) {
        throw InvalidArgumentError(
            str("it is ", element, "; weights are floating-point numbers, [datasets]"));
      }
      const Tensor numbers = element.tensor().detach().to(at::kCPU, float64).contiguous();
      const auto* number = numbers.data_ptr<double>();
      check_weights({number, static_cast<size_t>(numbers.size(0))}, weights_.size());
      std::copy_n(number, weights_.size(), weights_.begin());
    } catch (...) {
      rethrow_with_context(str("sample_from_datasets: element ", position, " of weights"));
    }
    return true;
  }

  std::unique_ptr<DataIterator> source_;
  Weights weights_;
  int64_t position_ = 0;
};

// `weights` nothing: the last input is a dataset of them.
class SampleNode final : public ChosenNode {
 public:
  SampleNode(std::vector<DataNodePtr> inputs, std::optional<Weights> weights, ShuffleSeed seed,
             bool stop_on_empty)
      : ChosenNode("sample_from_datasets", inputs, inputs.size() - (weights ? 0 : 1),
                   stop_on_empty),
        weights_(std::move(weights)),
        seed_(seed) {
    if (!weights_) check_spec_of_weights();
  }

  Attributes attributes() const override {
    std::string weights;
    for (const double weight : weights_.value_or(Weights())) {
      weights += (weights.empty() ? "" : ", ") + str(weight);
    }
    Attributes attributes = {{"weights", weights_ ? '[' + weights + ']' : "read"}};
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
    if (!weights_ && inputs().back()->cardinality() != data::kInfiniteCardinality) {
      return endless == 0 ? 0 : data::kUnknownCardinality;  // the weights may end first
    }
    if (endless != data::kUnknownCardinality || stop_on_empty()) return endless;
    int64_t sum = 0;
    for (size_t i = 0; i < num_datasets(); ++i) {
      const int64_t size = inputs()[i]->cardinality();
      if (size == data::kUnknownCardinality) return size;
      if (sum >= kInfiniteSize - size) return data::kInfiniteCardinality;  // as concatenate's
      sum += size;
    }
    return sum;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    if (weights_) {
      return chosen_by(
          std::make_unique<DrawnChoices>(*weights_, seed_, context.epoch, stop_on_empty()),
          context);
    }
    return chosen_by(
        std::make_unique<ReadWeightChoices>(inputs().back()->make_iterator(context), num_datasets(),
                                            seed_, context.epoch, stop_on_empty()),
        context);
  }
  // Weights that are read are of the whole datasets.
  bool passes_file_sharding() const override { return weights_.has_value(); }

 private:
  void check_spec_of_weights() const {
    const DataNode& source = *inputs().back();
    if (source.guesses_spec()) return;  // other elements may look otherwise
    const StructureSpec spec = source.element_spec();
    bool fits =
        spec.is_leaf() && !spec.leaf().is_string() && at::isFloatingType(spec.leaf().dtype());
    if (fits && spec.leaf().shape()) {
      const std::vector<int64_t>& shape = *spec.leaf().shape();
      fits = shape.size() == 1 &&
             (shape[0] == kUnknownDim || shape[0] == static_cast<int64_t>(num_datasets()));
    }
    if (fits) return;
    throw InvalidArgumentError(str("sample_from_datasets: the elements of weights are ", spec,
                                   "; they must be floating-point numbers, one for each of ",
                                   num_datasets(), " datasets"));
  }

  const std::optional<Weights> weights_;
  const ShuffleSeed seed_;
};

void check_given_weights(const Weights& weights, size_t num_datasets) {
  if (num_datasets == 0) {
    throw InvalidArgumentError("sample_from_datasets: there are no datasets to sample from");
  }
  if (weights.empty()) return;
  try {
    check_weights(weights, num_datasets);
  } catch (const Error&) {
    rethrow_with_context("sample_from_datasets");
  }
}

ShuffleSeed seed_of(const data::SampleFromDatasetsOptions& options) {
  return {options.seed ? *options.seed : next_seed(),
          options.seed ? SeedOrigin::kGiven : SeedOrigin::kDrawn,
          options.rerandomize_each_iteration};
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::sample_from_datasets(const std::vector<Dataset>& datasets,
                                      const SampleFromDatasetsOptions& options) {
  internal::check_given_weights(options.weights, datasets.size());
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
  return Dataset(std::make_shared<internal::SampleNode>(std::move(nodes), std::move(weights),
                                                        internal::seed_of(options),
                                                        options.stop_on_empty_dataset),
                 merged);
}

Dataset Dataset::sample_from_datasets(const std::vector<Dataset>& datasets, const Dataset& weights,
                                      const SampleFromDatasetsOptions& options) {
  internal::check_given_weights({}, datasets.size());
  if (!options.weights.empty()) {
    throw InvalidArgumentError(
        "sample_from_datasets: there are options.weights beside a dataset of weights; give one");
  }
  std::vector<internal::DataNodePtr> nodes;
  Options merged;
  for (const Dataset& dataset : datasets) {
    nodes.push_back(dataset.node());
    merged = merged.merged_with(dataset.options());
  }
  nodes.push_back(weights.node());
  return Dataset(std::make_shared<internal::SampleNode>(std::move(nodes), std::nullopt,
                                                        internal::seed_of(options),
                                                        options.stop_on_empty_dataset),
                 merged.merged_with(weights.options()));
}

}  // namespace cohort::data
