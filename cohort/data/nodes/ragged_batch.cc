#include "cohort/core/composite.h"
#include "cohort/data/dataset.h"
#include "cohort/data/nodes/node.h"

namespace cohort::internal {
namespace {

Structure with_marked_rows(const Structure& element, const StructureSpec& spec, bool guessed) {
  if (element.is_leaf()) {
    const bool always_the_same = !guessed && spec.leaf().is_fully_defined();
    if (element.leaf().dim() == 0 || always_the_same) return element;
    return Structure::make_dict({{kRaggedRow, element}});
  }
  if (composite_kind(element) != Composite::kNone) return element;
  if (element.is_tuple()) {
    std::vector<Structure> members;
    for (size_t i = 0; i < element.size(); ++i) {
      members.push_back(with_marked_rows(element[i], spec.members()[i], guessed));
    }
    return Structure::make_tuple(std::move(members));
  }
  Structure::Dict items;
  for (size_t i = 0; i < element.size(); ++i) {
    items.emplace_back(element.items()[i].first,
                       with_marked_rows(element[i], spec.items()[i].second, guessed));
  }
  return Structure::make_dict(std::move(items));
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::ragged_batch(int64_t batch_size, BatchOptions options) const {
  const StructureSpec spec = element_spec();
  return map([spec, guessed = node_->guesses_spec()](const Structure& element) {
           return internal::with_marked_rows(element, spec, guessed);
         })
      .batch(batch_size, options);
}

}  // namespace cohort::data
