#include "cohort/data/dataset.h"

namespace cohort::data {

Structure Dataset::get_single_element() const {
  DatasetIterator elements = iterator();
  std::optional<Structure> element = elements.next();
  if (!element) {
    throw InvalidArgumentError(
        "get_single_element: the dataset is empty; it must have exactly one element");
  }
  if (elements.next()) {
    throw InvalidArgumentError(
        "get_single_element: the dataset has more than one element; take(1) "
        "before it leaves the first");
  }
  return *std::move(element);
}

}  // namespace cohort::data
