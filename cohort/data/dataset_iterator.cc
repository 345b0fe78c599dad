#include "cohort/data/dataset_iterator.h"

#include <c10/core/GradMode.h>

#include "cohort/core/error.h"
#include "cohort/data/graph.h"
#include "cohort/data/node.h"

namespace cohort::data {

DatasetIterator::DatasetIterator(internal::DataNodePtr root,
                                 const internal::IteratorContext& context)
    : root_(std::move(root)),
      graph_(std::make_shared<const std::string>(internal::describe_graph(*root_))),
      iterator_(root_->make_iterator(context)) {}

DatasetIterator::~DatasetIterator() = default;
DatasetIterator::DatasetIterator(DatasetIterator&&) noexcept = default;
DatasetIterator& DatasetIterator::operator=(DatasetIterator&&) noexcept = default;

std::optional<Structure> DatasetIterator::next() {
  const c10::NoGradGuard no_grad;
  std::optional<Structure> element(std::in_place);
  if (!iterator_->next(*element)) element.reset();
  return element;
}

Structure DatasetIterator::get_next() {
  if (std::optional<Structure> element = next()) return *std::move(element);
  throw OutOfRangeError("the end of the dataset is reached");
}

StructureSpec DatasetIterator::element_spec() const { return root_->element_spec(); }

IteratorState DatasetIterator::state() const {
  IteratorState state;
  state.set_bytes("graph", graph_);
  state.set_child("root", iterator_->save());
  return state;
}

void DatasetIterator::restore(const IteratorState& state) {
  if (const auto difference = internal::first_graph_difference(state.get_bytes("graph"), *graph_)) {
    throw InvalidArgumentError("this state is of another pipeline: " + *difference);
  }
  const c10::NoGradGuard no_grad;
  auto restored = root_->make_iterator({});
  restored->restore(state.child("root"));
  iterator_ = std::move(restored);
}

ElementCursor DatasetIterator::begin() { return ElementCursor(this); }

ElementCursor::ElementCursor(DatasetIterator iterator)
    : iterator_(std::make_shared<DatasetIterator>(std::move(iterator))),
      element_(iterator_->next()) {}

ElementCursor::ElementCursor(DatasetIterator* iterator)
    : iterator_(std::shared_ptr<void>(), iterator), element_(iterator_->next()) {}

ElementCursor& ElementCursor::operator++() {
  element_ = iterator_->next();
  return *this;
}

}  // namespace cohort::data
