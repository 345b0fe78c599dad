#include <algorithm>

#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {
namespace {

// How the members become one element: a dict of these keys, or a tuple where there are none.
using Keys = std::vector<std::string>;

template <class Result>
Result combine(const Keys& keys, std::vector<Result> members) {
  if (keys.empty()) return Result::make_tuple(std::move(members));
  typename Result::Dict items;
  for (size_t i = 0; i < keys.size(); ++i) items.emplace_back(keys[i], std::move(members[i]));
  return Result::make_dict(std::move(items));
}

class ZipIterator final : public DataIterator {
 public:
  ZipIterator(std::vector<std::unique_ptr<DataIterator>> inputs, Keys keys)
      : inputs_(std::move(inputs)), keys_(std::move(keys)) {}

  bool next(Structure& out) override {
    if (ended_) return false;
    std::vector<Structure> members(inputs_.size());
    std::exception_ptr error;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      try {
        if (!inputs_[i]->next(members[i])) ended_ = true;
      } catch (const std::exception&) {  // the others step on too, so that they stay in step
        if (!error) error = std::current_exception();
      }
      if (ended_) return false;  // what another threw is of an element that is not there
    }
    if (error) std::rethrow_exception(error);
    out = combine(keys_, std::move(members));
    return true;
  }
  bool has_blocks() const override {
    return std::all_of(inputs_.begin(), inputs_.end(),
                       [](const auto& input) { return input->has_blocks(); });
  }
  int64_t next_block(int64_t n, Structure& out) override {
    if (ended_) return 0;
    std::vector<Structure> members(inputs_.size());
    std::exception_ptr error;
    int64_t count = n;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      try {
        const int64_t read = read_rows(*inputs_[i], count, members[i]);
        if (read < count) ended_ = true;
        count = std::min(count, read);
      } catch (const std::exception&) {
        if (!error) error = std::current_exception();
      }
      if (count == 0) return 0;
    }
    if (error) std::rethrow_exception(error);
    for (Structure& member : members) {
      if (num_rows(member) > count) member = slice_rows(member, 0, count);
    }
    out = combine(keys_, std::move(members));
    return count;
  }
  int64_t skip(int64_t n) override {
    if (ended_) return 0;
    int64_t skipped = n;
    for (const auto& input : inputs_) skipped = std::min(skipped, input->skip(n));
    ended_ = skipped < n;
    return skipped;
  }
  void rewind(uint64_t epoch) override {
    ended_ = false;
    for (const auto& input : inputs_) input->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int("ended", ended_);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      state.set_child(str(i), inputs_[i]->save());
    }
    return state;
  }
  void restore(const IteratorState& state) override {
    ended_ = state.get_int("ended", 0, 1) == 1;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i]->restore(state.child(str(i)));
    }
  }

 private:
  // Exactly `n` rows unless the input ends.
  static int64_t read_rows(DataIterator& input, int64_t n, Structure& out) {
    std::vector<Structure> blocks;
    std::vector<int64_t> first_rows;
    int64_t rows = 0;
    while (rows < n) {
      Structure block;
      const int64_t read = input.next_block(n - rows, block);
      if (read == 0) break;
      first_rows.push_back(rows);
      rows += read;
      blocks.push_back(std::move(block));
    }
    if (rows > 0) out = concat_blocks(blocks, Positions::list(first_rows));
    return rows;
  }

  std::vector<std::unique_ptr<DataIterator>> inputs_;
  Keys keys_;
  bool ended_ = false;
};

class ZipIndexed final : public IndexedData {
 public:
  ZipIndexed(std::vector<std::unique_ptr<IndexedData>> inputs, Keys keys)
      : inputs_(std::move(inputs)), keys_(std::move(keys)) {}
  int64_t size() const override {
    int64_t size = kInfiniteSize;
    for (const auto& input : inputs_) size = std::min(size, input->size());
    return size;
  }
  void read(int64_t position, Structure& out) override {
    std::vector<Structure> members(inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->read(position, members[i]);
    out = combine(keys_, std::move(members));
  }
  bool has_blocks() const override {
    return std::all_of(inputs_.begin(), inputs_.end(),
                       [](const auto& input) { return input->has_blocks(); });
  }
  void read_block(const Positions& positions, Structure& out) override {
    std::vector<Structure> members(inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->read_block(positions, members[i]);
    out = combine(keys_, std::move(members));
  }

 private:
  std::vector<std::unique_ptr<IndexedData>> inputs_;
  Keys keys_;
};

class ZipNode final : public DataNode {
 public:
  ZipNode(std::vector<DataNodePtr> inputs, Keys keys)
      : DataNode("zip", std::move(inputs)), keys_(std::move(keys)) {
    if (this->inputs().empty()) throw InvalidArgumentError("zip: there are no datasets to zip");
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (std::find(keys_.begin(), keys_.begin() + i, keys_[i]) != keys_.begin() + i) {
        throw InvalidArgumentError(str("zip: the key ", quoted(keys_[i]), " is given twice"));
      }
    }
  }

  Attributes attributes() const override {
    if (keys_.empty()) return {};
    std::string text;
    for (const std::string& key : keys_) text += (text.empty() ? "" : ", ") + quoted(key);
    return {{"keys", '[' + text + ']'}};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<ZipNode>(std::move(inputs), keys_);
  }
  StructureSpec element_spec() const override {
    std::vector<StructureSpec> members;
    for (const DataNodePtr& input : inputs()) members.push_back(input->element_spec());
    return combine(keys_, std::move(members));
  }
  int64_t cardinality() const override {
    int64_t shortest = data::kInfiniteCardinality;
    for (const DataNodePtr& input : inputs()) {
      const int64_t size = input->cardinality();
      if (size == data::kUnknownCardinality) return size;
      if (size == data::kInfiniteCardinality) continue;
      shortest = shortest == data::kInfiniteCardinality ? size : std::min(shortest, size);
    }
    return shortest;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    if (auto indexed = make_indexed()) {
      return std::make_unique<IndexedIterator>(std::move(indexed));
    }
    std::vector<std::unique_ptr<DataIterator>> iterators;
    for (const DataNodePtr& input : inputs()) iterators.push_back(input->make_iterator(context));
    return std::make_unique<ZipIterator>(std::move(iterators), keys_);
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    std::vector<std::unique_ptr<IndexedData>> indexed;
    for (const DataNodePtr& input : inputs()) {
      indexed.push_back(input->make_indexed());
      if (!indexed.back()) return nullptr;
    }
    return std::make_unique<ZipIndexed>(std::move(indexed), keys_);
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override {
    const int64_t size = inputs()[0]->batch_size();
    for (const DataNodePtr& input : inputs()) {
      if (input->batch_size() != size) return kUnknownBatchSize;
    }
    return size;
  }

 private:
  Keys keys_;
};

data::Dataset make_zip(const std::vector<data::Dataset>& datasets, Keys keys) {
  std::vector<DataNodePtr> nodes;
  data::Options options;
  for (const data::Dataset& dataset : datasets) {
    nodes.push_back(dataset.node());
    options = options.merged_with(dataset.options());
  }
  return data::Dataset(std::make_shared<ZipNode>(std::move(nodes), std::move(keys)), options);
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::zip(std::vector<Dataset> datasets) { return internal::make_zip(datasets, {}); }

Dataset Dataset::zip(std::vector<std::pair<std::string, Dataset>> datasets) {
  internal::Keys keys;
  std::vector<Dataset> members;
  for (auto& [key, dataset] : datasets) {
    keys.push_back(std::move(key));
    members.push_back(std::move(dataset));
  }
  return internal::make_zip(members, std::move(keys));
}

}  // namespace cohort::data
