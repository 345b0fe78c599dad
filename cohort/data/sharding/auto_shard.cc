#include "cohort/data/sharding/auto_shard.h"

#include <unordered_map>

#include "cohort/core/observe/logging.h"
#include "cohort/data/graph/graph.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/graph/rewrite.h"
#include "cohort/data/nodes/shard.h"
#include "cohort/data/sharding/split_batches.h"

namespace cohort::internal {
namespace {

using data::AutoShardOptions;
using data::AutoShardPolicy;

// A dataset of which one list of names is known to be too short to divide: that list's error comes
// before the first element, wherever the list is read; other lists would be read before it.
class ShortageIterator final : public DataIterator {
 public:
  ShortageIterator(std::unique_ptr<DataIterator> input, DataNodePtr names)
      : input_(std::move(input)), names_(std::move(names)) {}

  bool next(Structure& out) override {
    check();
    return input_->next(out);
  }
  int64_t skip(int64_t n) override {
    check();
    return input_->skip(n);
  }
  std::shared_ptr<const std::string> last_origin() const override { return input_->last_origin(); }
  void rewind(uint64_t epoch) override { input_->rewind(epoch); }
  IteratorState save() override { return input_->save(); }
  void restore(const IteratorState& state) override { input_->restore(state); }

 private:
  void check() const {
    Structure name;
    names_->make_iterator({})->next(name);
  }

  std::unique_ptr<DataIterator> input_;
  DataNodePtr names_;
};

class ShortageNode final : public UnaryNode {
 public:
  ShortageNode(DataNodePtr input, DataNodePtr names)
      : UnaryNode("too_few_files", std::move(input)), names_(std::move(names)) {}

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<ShortageNode>(std::move(inputs[0]), names_);
  }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<ShortageIterator>(input().make_iterator(context), names_);
  }
  bool is_transparent() const override { return true; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  DataNodePtr names_;  // of one worker: reading them is an error
};

ShardRequirement unless_empty(ShardRequirement requirement, const AutoShardOptions& options) {
  return options.parts_may_be_empty ? ShardRequirement::kNothing : requirement;
}

// Divides the files that a graph reads.
class FileSharding {
 public:
  explicit FileSharding(const AutoShardOptions& options) : options_(options) {}

  DataNodePtr sharded_root(const DataNodePtr& root) {
    DataNodePtr result = sharded(root);
    if (!too_short_ || options_.parts_may_be_empty) return result;
    return std::make_shared<ShortageNode>(std::move(result), too_short_);
  }
  // Whether it is known that some worker gets no file.
  bool leaves_parts_empty() const { return too_short_ != nullptr; }

 private:
  DataNodePtr sharded(const DataNodePtr& node) {
    DataNodePtr& result = done_[node.get()];
    if (!result) {
      result = node->of_worker(sharded_inputs(*node), options_.index, options_.num_workers);
    }
    return result;
  }
  std::vector<DataNodePtr> sharded_inputs(const DataNode& node) {
    if (node.source() == SourceKind::kUnshardable) {
      throw NotFoundError(str("found an unshardable source dataset: ", describe_node(node),
                              " reads no files; set auto_shard_policy to DATA or OFF"));
    }
    const bool is_reader = node.source() == SourceKind::kFiles && !node.inputs().empty();
    const bool passes =
        node.passes_file_sharding() || node.sharding_role() == ShardingRole::kWholeDatasetOnly;
    if (!is_reader && (!passes || node.inputs().empty())) {
      throw NotFoundError(str("found no files to divide between workers below ",
                              describe_node(node), "; set auto_shard_policy to DATA or OFF"));
    }
    std::vector<DataNodePtr> inputs;
    for (const DataNodePtr& input : node.inputs()) {
      inputs.push_back(is_reader ? shard_of_names(input) : sharded(input));
    }
    return inputs;
  }

  // Shuffles of the names come after their division: workers may shuffle differently.
  DataNodePtr shard_of_names(const DataNodePtr& names) {
    std::vector<DataNodePtr> shuffles;  // the last first
    DataNodePtr shard =
        make_shard(without_shuffles(names, shuffles), options_.num_workers, options_.index,
                   unless_empty(ShardRequirement::kFileForEach, options_));
    const int64_t count = shard->inputs()[0]->cardinality();
    if (count > 0 && count < options_.num_workers && !too_short_) too_short_ = shard;
    for (auto shuffle = shuffles.rbegin(); shuffle != shuffles.rend(); ++shuffle) {
      shard = (*shuffle)->with_inputs({shard});
    }
    return shard;
  }
  DataNodePtr without_shuffles(const DataNodePtr& node, std::vector<DataNodePtr>& shuffles) {
    if (node->inputs().size() != 1) return node;
    if (node->sharding_role() == ShardingRole::kShuffle) {
      shuffles.push_back(node);
      return without_shuffles(node->inputs()[0], shuffles);
    }
    DataNodePtr input = without_shuffles(node->inputs()[0], shuffles);
    return input == node->inputs()[0] ? node : node->with_inputs({std::move(input)});
  }

  AutoShardOptions options_;
  DataNodePtr too_short_;  // the first list of which is known that some worker would get no file
  std::unordered_map<const DataNode*, DataNodePtr> done_;  // a node that several share stays one
};

DataNodePtr shard_elements(const DataNodePtr& root, const AutoShardOptions& options) {
  DataNodePtr target = root;
  while (target->passes_element_sharding()) target = target->inputs()[0];
  return insert_above(root, target, [&](const DataNodePtr& node) {
    const bool rebatched =
        options.num_replicas > 0 && node->sharding_role() == ShardingRole::kRebatch;
    return make_shard(rebatched ? make_split(node->inputs()[0], options.num_replicas) : node,
                      options.num_workers, options.index,
                      unless_empty(ShardRequirement::kElementForEach, options));
  });
}

DataNodePtr shard_at_hints(const DataNodePtr& root, const AutoShardOptions& options) {
  return rewrite(root, [&](const DataNodePtr& node) {
    if (node->sharding_role() != ShardingRole::kShardHint) return node;
    return make_shard(node->inputs()[0], options.num_workers, options.index,
                      unless_empty(ShardRequirement::kElementForEach, options));
  });
}

DataNodePtr without_promises(const DataNodePtr& root, std::vector<std::string>& notes) {
  return rewrite(root, [&](const DataNodePtr& node) {
    if (node->sharding_role() != ShardingRole::kWholeDatasetOnly) return node;
    notes.push_back(str(describe_node(*node),
                        " holds for the whole dataset and is left out where it is "
                        "divided between workers"));
    return node->inputs()[0];
  });
}

void check(const AutoShardOptions& options) {
  if (options.num_workers < 1) {
    throw InvalidArgumentError(
        str("auto_shard: num_workers is ", options.num_workers, "; it must be at least 1"));
  }
  if (options.index < 0 || options.index >= options.num_workers) {
    throw InvalidArgumentError(str("auto_shard: index is ", options.index, "; with ",
                                   options.num_workers, " workers it must be in [0, ",
                                   options.num_workers, ")"));
  }
}

// Errors: NotFound (it cannot be divided by files, or parts that may be empty would be).
ShardedGraph sharded_by_all_files(const DataNodePtr& root, const AutoShardOptions& options) {
  FileSharding division(options);
  DataNodePtr sharded = division.sharded_root(root);
  if (options.parts_may_be_empty && division.leaves_parts_empty()) {
    throw NotFoundError(
        str("found fewer files than the ", options.num_workers, " parts that are asked for"));
  }
  return {std::move(sharded), AutoShardPolicy::FILE, {}};
}

ShardedGraph sharded_by(AutoShardPolicy policy, const DataNodePtr& root,
                        const AutoShardOptions& options) {
  switch (policy) {
    case AutoShardPolicy::OFF:
      break;
    case AutoShardPolicy::FILE:
      return {FileSharding(options).sharded_root(root), AutoShardPolicy::FILE, {}};
    case AutoShardPolicy::DATA:
      return {shard_elements(root, options), AutoShardPolicy::DATA, {}};
    case AutoShardPolicy::HINT: {
      DataNodePtr divided = shard_at_hints(root, options);
      const bool hinted = divided != root;
      return {std::move(divided), hinted ? AutoShardPolicy::HINT : AutoShardPolicy::OFF, {}};
    }
    case AutoShardPolicy::AUTO:
      try {
        return sharded_by_all_files(root, options);
      } catch (const NotFoundError& error) {
        ShardedGraph by_data = sharded_by(AutoShardPolicy::DATA, root, options);
        by_data.notes.push_back(
            str("AutoShardPolicy::AUTO divides the dataset by elements (DATA), because the "
                "division by files ",
                error.what()));
        return by_data;
      }
  }
  return {root, AutoShardPolicy::OFF, {}};
}

}  // namespace

ShardedGraph auto_shard_graph(const DataNodePtr& root, AutoShardPolicy policy,
                              const AutoShardOptions& options) {
  check(options);
  if (options.num_workers == 1) return {root, AutoShardPolicy::OFF, {}};
  ShardedGraph sharded = sharded_by(policy, root, options);
  if (sharded.applied != AutoShardPolicy::OFF) {
    sharded.root = without_promises(sharded.root, sharded.notes);
  }
  return sharded;
}

}  // namespace cohort::internal

namespace cohort::data {

Dataset auto_shard(const Dataset& dataset, const AutoShardOptions& options) {
  internal::ShardedGraph sharded =
      internal::auto_shard_graph(dataset.node(), dataset.options().auto_shard_policy(), options);
  for (const std::string& note : sharded.notes) internal::log_warning(note);
  return Dataset(std::move(sharded.root), dataset.options());
}

}  // namespace cohort::data
