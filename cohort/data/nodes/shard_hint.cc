#include "cohort/data/graph/node.h"
#include "cohort/data/nodes/shard.h"

namespace cohort::internal {
namespace {

class ShardHintNode final : public UnaryNode {
 public:
  explicit ShardHintNode(DataNodePtr input) : UnaryNode("shard", std::move(input)) {}

  Attributes attributes() const override {
    return {{"num_shards", "SHARD_HINT"}, {"index", "SHARD_HINT"}};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<ShardHintNode>(std::move(inputs[0]));
  }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return input().make_iterator(context);
  }
  std::unique_ptr<IndexedData> make_indexed() const override { return input().make_indexed(); }
  bool is_transparent() const override { return true; }
  bool passes_file_sharding() const override { return true; }
  ShardingRole sharding_role() const override { return ShardingRole::kShardHint; }
  int64_t batch_size() const override { return input().batch_size(); }
};

}  // namespace

DataNodePtr make_shard_hint(DataNodePtr input) {
  return std::make_shared<ShardHintNode>(std::move(input));
}

}  // namespace cohort::internal
