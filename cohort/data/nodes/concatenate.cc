#include <algorithm>
#include <optional>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/stacking.h"
#include "cohort/data/nodes/joined_spec.h"

namespace cohort::internal {
namespace {

class ConcatenateIterator final : public DataIterator {
 public:
  ConcatenateIterator(std::unique_ptr<DataIterator> first, std::unique_ptr<DataIterator> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  bool next(Structure& out) override {
    if (!first_ended_ && first_->next(out)) return true;
    first_ended_ = true;
    return second_->next(out);
  }
  bool has_blocks() const override { return first_->has_blocks() && second_->has_blocks(); }
  int64_t next_block(int64_t n, Structure& out) override {
    if (!first_ended_) {
      if (const int64_t count = first_->next_block(n, out)) return count;
    }
    first_ended_ = true;
    return second_->next_block(n, out);
  }
  int64_t skip(int64_t n) override {
    int64_t skipped = 0;
    if (!first_ended_) skipped = first_->skip(n);
    if (skipped == n) return n;
    first_ended_ = true;
    return skipped + second_->skip(n - skipped);
  }
  std::shared_ptr<const std::string> last_origin() const override {
    return (first_ended_ ? second_ : first_)->last_origin();
  }
  void rewind(uint64_t epoch) override {
    first_ended_ = false;
    first_->rewind(epoch);
    second_->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int("first_ended", first_ended_);
    state.set_child("first", first_->save());
    state.set_child("second", second_->save());
    return state;
  }
  void restore(const IteratorState& state) override {
    first_ended_ = state.get_int("first_ended", 0, 1) == 1;
    first_->restore(state.child("first"));
    second_->restore(state.child("second"));
  }

 private:
  std::unique_ptr<DataIterator> first_, second_;
  bool first_ended_ = false;
};

class ConcatenateIndexed final : public IndexedData {
 public:
  ConcatenateIndexed(std::unique_ptr<IndexedData> first, std::unique_ptr<IndexedData> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  int64_t size() const override {
    const int64_t a = first_->size(), b = second_->size();
    return a >= kInfiniteSize - b ? kInfiniteSize : a + b;
  }
  void read(int64_t position, Structure& out) override {
    const int64_t size = first_->size();
    if (position < size)
      first_->read(position, out);
    else
      second_->read(position - size, out);
  }
  bool has_blocks() const override { return first_->has_blocks() && second_->has_blocks(); }
  // What each input has of them, joined, and put in order where they alternate.
  void read_block(const Positions& positions, Structure& out) override {
    if (!has_blocks()) return IndexedData::read_block(positions, out);
    const int64_t count = positions.size(), size = first_->size();
    std::vector<int64_t> from_first, from_second, rows(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      if (positions[i] < size) from_first.push_back(positions[i]);
    }
    const auto split = static_cast<int64_t>(from_first.size());
    if (split == count) return first_->read_block(positions, out);
    if (split == 0) return second_->read_block(positions.shifted(-size, scratch_), out);
    int64_t next_first = 0, next_second = split;
    for (int64_t i = 0; i < count; ++i) {
      if (positions[i] >= size) from_second.push_back(positions[i] - size);
      rows[i] = positions[i] < size ? next_first++ : next_second++;
    }
    std::vector<Structure> blocks(2);
    first_->read_block(Positions::list(from_first), blocks[0]);
    second_->read_block(Positions::list(from_second), blocks[1]);
    const int64_t first_indices[] = {from_first[0], size + from_second[0]};
    out = concat_blocks(blocks, Positions::list(first_indices));
    if (!std::is_sorted(rows.begin(), rows.end())) out = gather_rows(out, Positions::list(rows));
  }

 private:
  std::unique_ptr<IndexedData> first_, second_;
  std::vector<int64_t> scratch_;
};

class ConcatenateNode final : public DataNode {
 public:
  ConcatenateNode(DataNodePtr first, DataNodePtr second)
      : DataNode("concatenate", {std::move(first), std::move(second)}),
        guesses_spec_(DataNode::guesses_spec()) {
    if (!guesses_spec_) known_spec_ = find_spec();
  }

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<ConcatenateNode>(std::move(inputs[0]), std::move(inputs[1]));
  }
  StructureSpec element_spec() const override {
    if (known_spec_) return *known_spec_;
    return joined_spec(name(), inputs()[0]->element_spec(), inputs()[1]->element_spec());
  }
  bool guesses_spec() const override { return guesses_spec_; }
  int64_t cardinality() const override {
    const int64_t a = inputs()[0]->cardinality(), b = inputs()[1]->cardinality();
    if (a == data::kInfiniteCardinality || b == data::kInfiniteCardinality)
      return data::kInfiniteCardinality;
    if (a == data::kUnknownCardinality || b == data::kUnknownCardinality)
      return data::kUnknownCardinality;
    return a >= kInfiniteSize - b ? data::kInfiniteCardinality : a + b;  // as repeat's
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<ConcatenateIterator>(inputs()[0]->make_iterator(context),
                                                 inputs()[1]->make_iterator(context));
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    auto first = inputs()[0]->make_indexed();
    auto second = inputs()[1]->make_indexed();
    if (!first || !second) return nullptr;
    return std::make_unique<ConcatenateIndexed>(std::move(first), std::move(second));
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override {
    const int64_t size = inputs()[0]->batch_size();
    return size == inputs()[1]->batch_size() ? size : kUnknownBatchSize;
  }

 private:
  // Nothing where an input's own spec is an error, which reading will show.
  std::optional<StructureSpec> find_spec() const {
    std::optional<StructureSpec> first, second;
    try {
      first = inputs()[0]->element_spec();
      second = inputs()[1]->element_spec();
    } catch (const std::exception&) {
      return std::nullopt;
    }
    return joined_spec(name(), *first, *second);
  }

  // Found once: in a chain of many each would ask all of those before it.
  const bool guesses_spec_;
  std::optional<StructureSpec> known_spec_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::concatenate(const Dataset& other) const {
  return Dataset(std::make_shared<internal::ConcatenateNode>(node_, other.node_),
                 options_.merged_with(other.options_));
}

}  // namespace cohort::data
