#include "cohort/parameter_server/runner/worker_input.h"

#include <utility>

#include "cohort/data/iteration/state.h"
#include "cohort/distribute/variables/variable_creation.h"

namespace cohort::internal {

WorkerInput::WorkerInput(MakeDataset make, const distribute::InputContext& context)
    : make_(std::move(make)), context_(context) {}

std::optional<WorkerInput::Batch> WorkerInput::take(const BatchPlace& place) {
  const bool passed = place.number != BatchPlace::kNext && place.number < next_;
  const bool other_order = place.start != start_;  // of a coordinator that was started again
  if (!iterator_ || place.pass != pass_ || passed || other_order) begin(place);
  try {
    return read(place.number);
  } catch (...) {  // which batches the error took along is not known
    iterator_.reset();
    throw;
  }
}

void WorkerInput::begin(const BatchPlace& place) {
  iterator_.reset();
  if (!dataset_) {
    const ScopedDatasetFunction no_variables;
    dataset_ = make_(context_);
  }
  auto iterator = dataset_->iterator_of_pass(static_cast<uint64_t>(place.pass));
  if (!place.start.empty()) iterator.restore(data::IteratorState::parse(place.start));
  iterator_.emplace(std::move(iterator));
  pass_ = place.pass;
  start_ = place.start;
  next_ = 0;
}

std::optional<WorkerInput::Batch> WorkerInput::read(int64_t number) {
  while (number != BatchPlace::kNext && next_ < number) {
    if (!iterator_->next()) return std::nullopt;
    ++next_;
  }
  std::optional<Batch> batch = iterator_->next();
  if (batch) ++next_;
  return batch;
}

}  // namespace cohort::internal
