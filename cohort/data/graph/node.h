// What a dataset is made of: a graph of immutable nodes, each of which can make iterators.
//
// A new kind of node is one new source file: a class derived from DataNode (or UnaryNode), its
// iterator, and the Dataset function that makes it. Nothing else asks what kind a node is: rewrites
// use with_inputs and the queries below. docs/data.md walks through an example.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/structure/spec.h"
#include "cohort/data/graph/cardinality.h"
#include "cohort/data/iteration/indexed.h"
#include "cohort/data/iteration/iterator.h"

namespace cohort::internal {

class DataNode;
using DataNodePtr = std::shared_ptr<const DataNode>;

// The kind of a node's source, as far as sharding cares.
enum class SourceKind {
  kNone,         // from its inputs
  kFiles,        // from files that its input names: sharding the input shards the files
  kUnshardable,  // from memory or from a function: has no files to divide
};

// What dividing a dataset between workers does with a node beyond dividing above or below it.
enum class ShardingRole {
  kNone,
  kShuffle,           // of file names: done after dividing them, or workers would share files
  kRebatch,           // at the end: dividing by elements cuts batches by the simple rule instead
  kShardHint,         // becomes the division (AutoShardPolicy::HINT)
  kWholeDatasetOnly,  // holds for the undivided dataset only: left out, with a warning
};

inline constexpr int64_t kUnknownBatchSize = -1;
// Elements are examples, of which nothing has made batches yet.
inline constexpr int64_t kSingleExamples = 0;

// Thread safety: immutable; make_iterator and make_indexed from any thread.
class DataNode {
 public:
  // Names and values, as explain() prints them. They take part in what a state must match, so they
  // say everything that changes the sequence of elements and that the user has chosen.
  using Attributes = std::vector<std::pair<std::string, std::string>>;

  DataNode(std::string name, std::vector<DataNodePtr> inputs)
      : name_(std::move(name)), inputs_(std::move(inputs)) {}
  virtual ~DataNode() = default;
  DataNode(const DataNode&) = delete;
  DataNode& operator=(const DataNode&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<DataNodePtr>& inputs() const { return inputs_; }
  virtual Attributes attributes() const { return {}; }

  // The same node over other inputs, of the same number.
  virtual DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const = 0;

  // The same over the inputs of one of several workers, which run side by side.
  virtual DataNodePtr of_worker(std::vector<DataNodePtr> inputs, int64_t /*index*/,
                                int64_t /*num_workers*/) const {
    return with_inputs(std::move(inputs));
  }

  // May run user functions. Errors: FailedPrecondition (cannot be known), the functions' own.
  virtual StructureSpec element_spec() const = 0;
  // Whether element_spec has to look at elements, or to call user functions: then other elements
  // may look otherwise.
  virtual bool guesses_spec() const {
    return std::any_of(inputs_.begin(), inputs_.end(),
                       [](const DataNodePtr& input) { return input->guesses_spec(); });
  }
  // A number, kInfiniteCardinality or kUnknownCardinality.
  virtual int64_t cardinality() const = 0;

  virtual std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const = 0;
  // Random access to the elements, or null where that would cost more than reading them in order.
  // Elements are then functions of their position alone.
  virtual std::unique_ptr<IndexedData> make_indexed() const { return nullptr; }

  // Whether its elements and its iterators' states are its (only) input's: a state then fits
  // pipelines that end with such nodes and those that do not. (Below others it may decide how they
  // read, and with it what their states hold.)
  virtual bool is_transparent() const { return false; }

  // The seed of the order of its elements, where it was given none and has drawn its own; and the
  // same node with one that all workers have agreed on (nodes/shuffle_seeds.h).
  virtual std::optional<uint64_t> drawn_seed() const { return std::nullopt; }
  virtual DataNodePtr with_agreed_seed(uint64_t /*seed*/) const { return nullptr; }

  // For rewrites; the defaults are safe.
  virtual SourceKind source() const { return SourceKind::kNone; }
  // Whether dividing the files below this node divides its elements and does nothing else.
  virtual bool passes_file_sharding() const { return false; }
  // Whether dividing the elements above this node may as well be done below it.
  virtual bool passes_element_sharding() const { return false; }
  virtual ShardingRole sharding_role() const { return ShardingRole::kNone; }
  // The rows of each element (of the last one perhaps fewer), where elements are batches;
  // kSingleExamples where they certainly are none. May run user functions, as element_spec.
  virtual int64_t batch_size() const { return kUnknownBatchSize; }

 private:
  const std::string name_;
  const std::vector<DataNodePtr> inputs_;
};

// A node over one input; its elements look like its input's, unless it says otherwise.
class UnaryNode : public DataNode {
 public:
  UnaryNode(std::string name, DataNodePtr input) : DataNode(std::move(name), {std::move(input)}) {}

  const DataNode& input() const { return *inputs().front(); }
  StructureSpec element_spec() const override { return input().element_spec(); }
};

// A node over one input that gives random access to its elements if its input does.
class IndexableNode : public UnaryNode {
 public:
  using UnaryNode::UnaryNode;

  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    if (auto indexed = make_indexed()) {
      return std::make_unique<IndexedIterator>(std::move(indexed));
    }
    return in_order(context);
  }
  std::unique_ptr<IndexedData> make_indexed() const final {
    auto indexed = input().make_indexed();
    return indexed ? by_position(std::move(indexed)) : nullptr;
  }

 private:
  // This node's elements over the input's. May be null, as make_indexed.
  virtual std::unique_ptr<IndexedData> by_position(std::unique_ptr<IndexedData> elements) const = 0;
  // Reads elements in order, if there is no random access.
  virtual std::unique_ptr<DataIterator> in_order(const IteratorContext& context) const = 0;
};

}  // namespace cohort::internal
