#include "cohort/core/structure/composite.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"

namespace cohort::internal {
namespace {

Structure row_of(const Structure& leaf) {
  return leaf.leaf().dim() == 0 ? leaf : Structure::make_dict({{kRaggedRow, leaf}});
}

// The element, whose form is the spec's, with its rows marked.
Structure with_marked_rows(const Structure& element, const StructureSpec& spec) {
  if (element.is_leaf()) return spec.leaf().is_fully_defined() ? element : row_of(element);
  if (composite_kind(element) != Composite::kNone) return element;
  if (element.is_tuple()) {
    std::vector<Structure> members;
    for (size_t i = 0; i < element.size(); ++i) {
      members.push_back(with_marked_rows(element[i], spec.members()[i]));
    }
    return Structure::make_tuple(std::move(members));
  }
  Structure::Dict items;
  for (size_t i = 0; i < element.size(); ++i) {
    items.emplace_back(element.items()[i].first,
                       with_marked_rows(element[i], spec.items()[i].second));
  }
  return Structure::make_dict(std::move(items));
}

Structure with_marked_rows(const Structure& element, const StructureSpec& spec, bool guessed) {
  if (guessed) {  // other elements may have other forms
    return map_nodes(element, [](const Structure& node) -> Structure {
      return composite_kind(node) == Composite::kNone ? row_of(node) : node;
    });
  }
  if (const auto mismatch = spec.first_mismatch(element)) {
    throw InvalidArgumentError(
        str("ragged_batch: an element does not fit the dataset's spec: ", *mismatch));
  }
  return with_marked_rows(element, spec);
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
