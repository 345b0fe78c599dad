#include "cohort/data/dataset.h"

#include "cohort/data/graph/graph.h"
#include "cohort/data/graph/node.h"

namespace cohort::data {

Dataset::Dataset(internal::DataNodePtr node, Options options)
    : node_(std::move(node)),
      options_(std::move(options)),
      passes_(std::make_shared<std::atomic<uint64_t>>(0)) {}

Dataset Dataset::with_options(const Options& options) const {
  log_ignored(options);
  return Dataset(node_, options_.merged_with(options));
}

StructureSpec Dataset::element_spec() const { return node_->element_spec(); }

int64_t Dataset::cardinality() const { return node_->cardinality(); }

std::string Dataset::explain() const { return internal::explain_graph(*node_); }

DatasetIterator Dataset::iterator() const {
  return DatasetIterator(node_, {.epoch = passes_->fetch_add(1),
                                 .passes = passes_.pointer(),
                                 .deterministic = options_.is_deterministic()});
}

}  // namespace cohort::data
