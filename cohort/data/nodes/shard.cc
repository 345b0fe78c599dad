#include "cohort/data/nodes/shard.h"

#include <algorithm>
#include <utility>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/pass_interrupted.h"
#include "cohort/data/nodes/list_files.h"

namespace cohort::internal {
namespace {

class ShardIterator final : public DataIterator {
 public:
  ShardIterator(std::unique_ptr<DataIterator> input, int64_t num_shards, int64_t index,
                ShardRequirement requirement)
      : input_(std::move(input)),
        num_shards_(num_shards),
        index_(index),
        requirement_(requirement) {}

  bool next(Structure& out) override {
    if (!checked_) return first(out);
    input_->skip(std::exchange(gap_, num_shards_ - 1));
    return input_->next(out);
  }
  int64_t skip(int64_t n) override {
    if (n > 0 && !checked_) {
      Structure element;
      try {
        if (!first(element)) return 0;
      } catch (const std::exception&) {
        // An element that nobody wants may fail.
      }
      return 1 + skip(n - 1);
    }
    n = std::min(n, kInfiniteSize / num_shards_ - 1);
    if (n == 0) return 0;
    const int64_t wanted = gap_ + (n - 1) * num_shards_ + 1;  // up to the last one of ours
    const int64_t passed = input_->skip(wanted);
    const int64_t skipped = passed <= gap_ ? 0 : (passed - gap_ - 1) / num_shards_ + 1;
    gap_ = num_shards_ - 1;
    return skipped;
  }
  std::shared_ptr<const std::string> last_origin() const override { return input_->last_origin(); }
  void rewind(uint64_t epoch) override {
    gap_ = index_;
    checked_ = requirement_ == ShardRequirement::kNothing;
    input_->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int("gap", gap_);
    if (requirement_ != ShardRequirement::kNothing) state.set_int("checked", checked_);
    state.set_child("input", input_->save());
    return state;
  }
  void restore(const IteratorState& state) override {
    checked_ = requirement_ == ShardRequirement::kNothing || state.get_int("checked", 0, 1) == 1;
    gap_ = state.get_int("gap", 0, num_shards_ - 1);
    input_->restore(state.child("input"));
  }

 private:
  // Reads the input's first num_shards elements, of which one is ours.
  bool first(Structure& out) {
    checked_ = true;
    gap_ = num_shards_ - 1;
    int64_t count = input_->skip(index_);
    const bool found = count == index_ && input_->next(out);
    if (found) {
      count += 1 + input_->skip(num_shards_ - index_ - 1);
      gap_ = index_;
    }
    const bool none_is_missed = !found && requirement_ == ShardRequirement::kElementForEach;
    if (count > 0 && count < num_shards_ && !none_is_missed) {
      of_pass([&] { throw_shortage(count); });
    }
    return found;
  }
  [[noreturn]] void throw_shortage(int64_t count) const {
    const char* what = requirement_ == ShardRequirement::kFileForEach ? "file" : "element";
    throw InvalidArgumentError(str(
        "the dataset has ", count, " ", what, count == 1 ? "" : "s",
        ", which is not enough for the required ", num_shards_,
        " shards/workers; set experimental_distribute.auto_shard_policy to DATA or OFF, or divide "
        "the input into at least ",
        num_shards_, " ", what, "s"));
  }

  std::unique_ptr<DataIterator> input_;
  int64_t num_shards_;
  int64_t index_;
  ShardRequirement requirement_;
  int64_t gap_ = index_;  // elements of others before the next of ours
  // Whether there are elements enough, or nobody asks.
  bool checked_ = requirement_ == ShardRequirement::kNothing;
};

class ShardIndexed final : public IndexedData {
 public:
  ShardIndexed(std::unique_ptr<IndexedData> input, int64_t num_shards, int64_t index)
      : input_(std::move(input)), num_shards_(num_shards), index_(index) {}
  int64_t size() const override {
    const int64_t size = input_->size();
    if (size == kInfiniteSize) return kInfiniteSize;
    return size / num_shards_ + (index_ < size % num_shards_ ? 1 : 0);
  }
  void read(int64_t position, Structure& out) override {
    input_->read(scaled_position(position, num_shards_, index_), out);
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  void read_block(const Positions& positions, Structure& out) override {
    input_->read_block(positions.scaled(num_shards_, index_, scratch_), out);
  }

 private:
  std::unique_ptr<IndexedData> input_;
  int64_t num_shards_;
  int64_t index_;
  std::vector<int64_t> scratch_;
};

class ShardNode final : public IndexableNode {
 public:
  ShardNode(DataNodePtr input, int64_t num_shards, int64_t index, ShardRequirement requirement)
      : IndexableNode("shard", std::move(input)),
        num_shards_(num_shards),
        index_(index),
        requirement_(requirement) {
    if (num_shards < 1) {
      throw InvalidArgumentError(
          str("shard: num_shards is ", num_shards, "; it must be at least 1"));
    }
    if (index < 0 || index >= num_shards) {
      throw InvalidArgumentError(str("shard: index is ", index, "; with ", num_shards,
                                     " shards it must be in [0, ", num_shards, ")"));
    }
  }

  Attributes attributes() const override {
    Attributes attributes = {{"num_shards", str(num_shards_)}, {"index", str(index_)}};
    if (requirement_ != ShardRequirement::kNothing) {
      attributes.emplace_back("require_non_empty", "true");
    }
    return attributes;
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<ShardNode>(std::move(inputs[0]), num_shards_, index_, requirement_);
  }
  int64_t cardinality() const override {
    const int64_t size = input().cardinality();
    return size < 0 ? size : size / num_shards_ + (index_ < size % num_shards_ ? 1 : 0);
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  std::unique_ptr<IndexedData> by_position(std::unique_ptr<IndexedData> elements) const override {
    const bool enough = elements->size() == 0 || elements->size() >= num_shards_;
    if (requirement_ != ShardRequirement::kNothing && !enough) return nullptr;
    return std::make_unique<ShardIndexed>(std::move(elements), num_shards_, index_);
  }
  std::unique_ptr<DataIterator> in_order(const IteratorContext& context) const override {
    return std::make_unique<ShardIterator>(input().make_iterator(context.keeping_order()),
                                           num_shards_, index_, requirement_);
  }

  int64_t num_shards_;
  int64_t index_;
  ShardRequirement requirement_;
};

}  // namespace

DataNodePtr make_shard(DataNodePtr input, int64_t num_shards, int64_t index,
                       ShardRequirement requirement) {
  if (num_shards > 1) warn_of_unseeded_file_lists(input);
  return std::make_shared<ShardNode>(std::move(input), num_shards, index, requirement);
}

}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::shard(int64_t num_shards, int64_t index) const {
  if (num_shards == SHARD_HINT) {
    return Dataset(internal::make_shard_hint(node_), options_);
  }
  return Dataset(
      internal::make_shard(node_, num_shards, index, internal::ShardRequirement::kNothing),
      options_);
}

}  // namespace cohort::data
