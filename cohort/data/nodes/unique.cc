#include <string_view>
#include <unordered_set>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/storage/element_codec.h"

namespace cohort::internal {
namespace {

void check_comparable(const StructureSpec& spec, const std::string& which) {
  const bool fits = spec.is_leaf() && (spec.leaf().is_string() || spec.leaf().dtype() == int32 ||
                                       spec.leaf().dtype() == int64);
  if (fits) return;
  throw InvalidArgumentError(str("unique: ", which, spec,
                                 "; elements must be one tensor of int32, int64 or strings, as "
                                 "in tf.data: map them to such a one"));
}

// The elements that have come, as bytes. A state shares all of them but the last few: chunks are
// closed at a size, and joined with those before them that are not twice as large.
class SeenElements {
 public:
  // False: it was there.
  bool add(std::string element) {
    const auto [found, added] = seen_.insert(std::move(element));
    if (!added) return false;
    append_varint(tail_, found->size());
    tail_ += *found;
    if (tail_.size() >= kChunkBytes) close_chunk();
    return true;
  }
  void clear() {
    seen_.clear();
    chunks_.clear();
    tail_.clear();
  }
  void save(IteratorState& state) const {
    state.set_int("chunks", std::ssize(chunks_));
    for (size_t i = 0; i < chunks_.size(); ++i) state.set_bytes(str("chunk ", i), chunks_[i]);
    state.set_bytes("seen", tail_);
  }
  void restore(const IteratorState& state) {
    clear();
    const int64_t chunks = state.get_int("chunks", 0, kMostElements);
    for (int64_t i = 0; i < chunks; ++i) {
      chunks_.push_back(state.shared_bytes(str("chunk ", i)));
      read(*chunks_.back());
    }
    tail_ = state.get_bytes("seen");
    read(tail_);
  }

 private:
  static constexpr size_t kChunkBytes = 4096;

  void close_chunk() {
    chunks_.push_back(std::make_shared<const std::string>(std::move(tail_)));
    tail_.clear();
    while (chunks_.size() > 1 && chunks_.end()[-2]->size() < 2 * chunks_.back()->size()) {
      auto joined = std::make_shared<const std::string>(*chunks_.end()[-2] + *chunks_.back());
      chunks_.pop_back();
      chunks_.back() = std::move(joined);
    }
  }
  void read(std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t size = take_varint(bytes);
      if (size > bytes.size()) {
        throw DataLossError("the iterator state of unique is damaged: it ends in an element");
      }
      seen_.emplace(bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
  }

  std::unordered_set<std::string> seen_;
  std::vector<IteratorState::Bytes> chunks_;
  std::string tail_;
};

class UniqueIterator final : public CountingIterator {
 public:
  using CountingIterator::CountingIterator;

  bool next(Structure& out) override {
    while (read(out)) {
      check_comparable(StructureSpec::of(out), str("element ", index_ - 1, " is "));
      if (seen_.add(encode_element(out))) return true;
    }
    return false;
  }
  void rewind(uint64_t epoch) override {
    seen_.clear();
    CountingIterator::rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state = CountingIterator::save();
    seen_.save(state);
    return state;
  }
  void restore(const IteratorState& state) override {
    seen_.restore(state);
    CountingIterator::restore(state);
  }

 private:
  SeenElements seen_;
};

class UniqueNode final : public UnaryNode {
 public:
  explicit UniqueNode(DataNodePtr input) : UnaryNode("unique", std::move(input)) {
    if (this->input().guesses_spec()) return;  // other elements may look otherwise
    check_comparable(this->input().element_spec(), "elements are ");
  }

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<UniqueNode>(std::move(inputs[0]));
  }
  int64_t cardinality() const override {
    return input().cardinality() == 0 ? 0 : data::kUnknownCardinality;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<UniqueIterator>(input().make_iterator(context));
  }
  int64_t batch_size() const override { return input().batch_size(); }
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::unique() const {
  return Dataset(std::make_shared<internal::UniqueNode>(node_), options_);
}

}  // namespace cohort::data
