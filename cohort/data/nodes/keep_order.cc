#include "cohort/data/nodes/keep_order.h"

#include <memory>
#include <utility>

namespace cohort::internal {
namespace {

class KeepOrderNode final : public UnaryNode {
 public:
  explicit KeepOrderNode(DataNodePtr input) : UnaryNode("keep_order", std::move(input)) {}

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<KeepOrderNode>(std::move(inputs[0]));
  }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return input().make_iterator(context.keeping_order());
  }
  std::unique_ptr<IndexedData> make_indexed() const override { return input().make_indexed(); }
  bool is_transparent() const override { return true; }
  bool passes_file_sharding() const override { return true; }
  bool passes_element_sharding() const override { return true; }
  int64_t batch_size() const override { return input().batch_size(); }
};

}  // namespace

DataNodePtr make_keep_order(DataNodePtr input) {
  return std::make_shared<KeepOrderNode>(std::move(input));
}

}  // namespace cohort::internal
