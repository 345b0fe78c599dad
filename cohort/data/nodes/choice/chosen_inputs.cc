#include "cohort/data/nodes/choice/chosen_inputs.h"

#include <algorithm>

#include "cohort/core/text.h"
#include "cohort/data/nodes/joined_spec.h"

namespace cohort::internal {

ChosenIterator::ChosenIterator(std::vector<std::unique_ptr<DataIterator>> inputs,
                               std::unique_ptr<Choices> choices, bool stop_on_empty)
    : inputs_(std::move(inputs)),
      choices_(std::move(choices)),
      stop_on_empty_(stop_on_empty),
      ended_(inputs_.size(), false) {}

bool ChosenIterator::next(Structure& out) {
  while (!over_) {
    const std::optional<size_t> choice = choices_->next(ended_);
    if (!choice) {
      over_ = true;
    } else if (!ended_[*choice]) {
      last_ = *choice;
      if (inputs_[last_]->next(out)) return true;
      ended_[last_] = true;
      over_ = stop_on_empty_ || std::find(ended_.begin(), ended_.end(), false) == ended_.end();
    }
  }
  return false;
}

std::shared_ptr<const std::string> ChosenIterator::last_origin() const {
  return inputs_[last_]->last_origin();
}

void ChosenIterator::rewind(uint64_t epoch) {
  over_ = false;
  std::fill(ended_.begin(), ended_.end(), false);
  choices_->rewind(epoch);
  for (const auto& input : inputs_) input->rewind(epoch);
}

IteratorState ChosenIterator::save() {
  IteratorState state;
  state.set_int("over", over_);
  std::string ended;
  for (const bool input : ended_) ended += input ? '\1' : '\0';
  state.set_bytes("ended", std::move(ended));
  state.set_child("choices", choices_->save());
  for (size_t i = 0; i < inputs_.size(); ++i) state.set_child(str(i), inputs_[i]->save());
  return state;
}

void ChosenIterator::restore(const IteratorState& state) {
  over_ = state.get_int("over", 0, 1) == 1;
  const std::string& ended = state.get_bytes("ended");
  if (ended.size() != inputs_.size()) {
    throw DataLossError(str("the iterator state is of ", ended.size(), " datasets to choose from, ",
                            "but there are ", inputs_.size()));
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    ended_[i] = ended[i] != '\0';
    inputs_[i]->restore(state.child(str(i)));
  }
  choices_->restore(state.child("choices"));
}

ChosenNode::ChosenNode(std::string name, std::vector<DataNodePtr> inputs, size_t num_datasets,
                       bool stop_on_empty)
    : DataNode(std::move(name), std::move(inputs)),
      num_datasets_(num_datasets),
      stop_on_empty_(stop_on_empty) {
  if (!datasets_guess()) known_spec_ = joined();
}

StructureSpec ChosenNode::element_spec() const { return known_spec_ ? *known_spec_ : joined(); }

bool ChosenNode::datasets_guess() const {
  return std::any_of(inputs().begin(), inputs().begin() + static_cast<int64_t>(num_datasets_),
                     [](const DataNodePtr& input) { return input->guesses_spec(); });
}

StructureSpec ChosenNode::joined() const {
  StructureSpec spec = inputs()[0]->element_spec();
  for (size_t i = 1; i < num_datasets_; ++i) {
    spec = joined_spec(name(), spec, inputs()[i]->element_spec());
  }
  return spec;
}

int64_t ChosenNode::batch_size() const {
  const int64_t size = inputs()[0]->batch_size();
  for (size_t i = 1; i < num_datasets_; ++i) {
    if (inputs()[i]->batch_size() != size) return kUnknownBatchSize;
  }
  return size;
}

int64_t ChosenNode::endless_cardinality() const {
  size_t infinite = 0, empty = 0;
  for (size_t i = 0; i < num_datasets_; ++i) {
    const int64_t size = inputs()[i]->cardinality();
    infinite += size == data::kInfiniteCardinality ? 1 : 0;
    empty += size == 0 ? 1 : 0;
  }
  if (empty == num_datasets_) return 0;
  const bool endless = stop_on_empty_ ? infinite == num_datasets_ : infinite > 0;
  return endless ? data::kInfiniteCardinality : data::kUnknownCardinality;
}

std::unique_ptr<DataIterator> ChosenNode::chosen_by(std::unique_ptr<Choices> choices,
                                                    const IteratorContext& context) const {
  std::vector<std::unique_ptr<DataIterator>> iterators;
  for (size_t i = 0; i < num_datasets_; ++i) {
    iterators.push_back(inputs()[i]->make_iterator(context));
  }
  return std::make_unique<ChosenIterator>(std::move(iterators), std::move(choices), stop_on_empty_);
}

}  // namespace cohort::internal
