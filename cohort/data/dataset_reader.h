// What an iterator of a dataset reads from: the pipeline, and where it stands.
#pragma once

#include <memory>
#include <string>

#include "cohort/data/iterator.h"
#include "cohort/data/node.h"
#include "cohort/data/state.h"

namespace cohort::internal {

// Thread safety: none.
class DatasetReader {
 public:
  DatasetReader(DataNodePtr root, const IteratorContext& context);

  const DataNode& root() const { return *root_; }
  DataIterator& iterator() { return *iterator_; }

  IteratorState state() const;
  // An iterator at the place of `state`, which `replace_iterator` then puts in: for those who must
  // know that all is well before anything changes. Errors: see DatasetIterator::restore.
  std::unique_ptr<DataIterator> iterator_at(const IteratorState& state) const;
  void replace_iterator(std::shared_ptr<DataIterator> iterator) { iterator_ = std::move(iterator); }

 private:
  DataNodePtr root_;
  IteratorContext context_;
  // The graph's text, compared on restore; shared by all states.
  std::shared_ptr<const std::string> graph_;
  std::shared_ptr<DataIterator> iterator_;
};

}  // namespace cohort::internal
