#include "cohort/data/dataset_reader.h"

#include <c10/core/GradMode.h>

#include "cohort/core/error.h"
#include "cohort/data/graph.h"

namespace cohort::internal {

DatasetReader::DatasetReader(DataNodePtr root, const IteratorContext& context)
    : root_(std::move(root)),
      context_(context),
      graph_(std::make_shared<const std::string>(describe_state_graph(*root_))),
      iterator_(root_->make_iterator(context)) {}

IteratorState DatasetReader::state() const {
  IteratorState state;
  state.set_bytes("graph", graph_);
  state.set_child("root", iterator_->save());
  return state;
}

std::unique_ptr<DataIterator> DatasetReader::iterator_at(const IteratorState& state) const {
  if (state.has("workers")) {
    throw InvalidArgumentError(
        "this state is of a distributed iterator, of several input workers or in the middle of a "
        "step; restore it into an iterator of the distributed dataset");
  }
  if (const auto difference = first_graph_difference(state.get_bytes("graph"), *graph_)) {
    throw InvalidArgumentError("this state is of another pipeline: " + *difference);
  }
  const c10::NoGradGuard no_grad;
  auto iterator = root_->make_iterator(context_);
  iterator->restore(state.child("root"));
  return iterator;
}

}  // namespace cohort::internal
