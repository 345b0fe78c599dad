#include "cohort/data/dataset_iterator.h"

#include <c10/core/GradMode.h>

#include "cohort/core/error.h"
#include "cohort/data/graph/dataset_reader.h"

namespace cohort::data {

DatasetIterator::DatasetIterator(internal::DataNodePtr root,
                                 const internal::IteratorContext& context)
    : reader_(std::make_shared<internal::DatasetReader>(std::move(root), context)) {}

DatasetIterator::~DatasetIterator() = default;
DatasetIterator::DatasetIterator(DatasetIterator&&) noexcept = default;
DatasetIterator& DatasetIterator::operator=(DatasetIterator&&) noexcept = default;

std::optional<Structure> DatasetIterator::next() {
  const c10::NoGradGuard no_grad;
  std::optional<Structure> element(std::in_place);
  if (!reader_->next(*element)) element.reset();
  return element;
}

Structure DatasetIterator::get_next() {
  if (std::optional<Structure> element = next()) return *std::move(element);
  throw OutOfRangeError("the end of the dataset is reached");
}

StructureSpec DatasetIterator::element_spec() const { return reader_->root().element_spec(); }

IteratorState DatasetIterator::state() const { return reader_->state(); }

void DatasetIterator::restore(const IteratorState& state) {
  reader_->go_to(reader_->place_at(state));
}

ElementCursor DatasetIterator::begin() { return ElementCursor(this); }

ElementCursor::ElementCursor(DatasetIterator iterator)
    : iterator_(std::make_shared<DatasetIterator>(std::move(iterator))),
      element_(iterator_->next()) {}

ElementCursor::ElementCursor(DatasetIterator* iterator)
    : iterator_(std::shared_ptr<DatasetIterator>(std::shared_ptr<void>(), iterator)),
      element_(iterator_->next()) {}

ElementCursor& ElementCursor::operator++() {
  element_ = iterator_->next();
  return *this;
}

}  // namespace cohort::data
