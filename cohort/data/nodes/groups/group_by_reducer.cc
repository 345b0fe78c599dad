#include <c10/core/GradMode.h>

#include <map>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/data/dataset.h"
#include "cohort/data/functions/answers.h"
#include "cohort/data/functions/carried_state.h"
#include "cohort/data/functions/probe.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/composite_rows.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/storage/element_codec.h"

namespace cohort::internal {
namespace {

struct KeyedReduction {
  ElementFunction key_func;
  data::Reducer reducer;

  using States = std::map<int64_t, Structure>;

  void add(States& states, const Structure& element, int64_t index) const {
    try {
      const int64_t key = integer_of(key_func.whole(element));
      const auto found = states.find(key);
      const Structure before = found == states.end() ? own_state(reducer.init(key)) : found->second;
      Structure after = reducer.reduce(before, element);
      check_next_state("reduce_func", index, before, after);
      states.insert_or_assign(key, apart_from(element, std::move(after)));
    } catch (...) {
      rethrow_with_context(str("group_by_reducer: element ", index));
    }
  }
  Structure finish(int64_t key, const Structure& state) const {
    try {
      return with_marked_sparse(reducer.finalize(state));
    } catch (...) {
      rethrow_with_context(str("group_by_reducer: key ", key));
    }
  }
};
using KeyedReductionPtr = std::shared_ptr<const KeyedReduction>;

// Reads all elements before it gives the first.
class GroupByReducerIterator final : public CountingIterator {
 public:
  GroupByReducerIterator(std::unique_ptr<DataIterator> input, KeyedReductionPtr reduction)
      : CountingIterator(std::move(input)), reduction_(std::move(reduction)) {}

  bool next(Structure& out) override {
    Structure element;
    while (!ended_) {
      ended_ = !read(element);
      if (ended_) break;
      saved_.reset();
      reduction_->add(states_, element, index_ - 1);
    }
    const auto found = last_ ? states_.upper_bound(*last_) : states_.begin();
    if (found == states_.end()) return false;
    last_ = found->first;
    out = reduction_->finish(found->first, found->second);
    return true;
  }
  std::shared_ptr<const std::string> last_origin() const override { return nullptr; }
  void rewind(uint64_t epoch) override {
    forget();
    CountingIterator::rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state = CountingIterator::save();
    state.set_int("ended", ended_);
    state.set_int("begun", last_.has_value());
    state.set_int("last", last_.value_or(0));
    if (!saved_) saved_ = encode_states();
    state.set_bytes("states", saved_);
    return state;
  }
  void restore(const IteratorState& state) override {
    forget();
    ended_ = state.get_int("ended", 0, 1) == 1;
    if (state.get_int("begun", 0, 1) == 1) last_ = state.get_int("last");
    std::string_view bytes = state.get_bytes("states");
    while (!bytes.empty()) {
      const int64_t key = take_signed_varint(bytes);
      const uint64_t size = take_varint(bytes);
      if (size > bytes.size()) {
        throw DataLossError("the iterator state of group_by_reducer is damaged: it ends too early");
      }
      states_[key] = decode_element(bytes.substr(0, size), "iterator state of a group_by_reducer");
      bytes.remove_prefix(size);
    }
    CountingIterator::restore(state);
  }

 private:
  void forget() {
    states_.clear();
    saved_.reset();
    last_.reset();
    ended_ = false;
  }
  IteratorState::Bytes encode_states() const {
    std::string bytes;
    for (const auto& [key, state] : states_) {
      const std::string encoded = encode_element(state);
      append_signed_varint(bytes, key);
      append_varint(bytes, encoded.size());
      bytes += encoded;
    }
    return std::make_shared<const std::string>(std::move(bytes));
  }

  const KeyedReductionPtr reduction_;
  KeyedReduction::States states_;
  IteratorState::Bytes saved_;   // the states, until they change
  std::optional<int64_t> last_;  // the key whose element came last
  bool ended_ = false;           // the input
};

class GroupByReducerNode final : public UnaryNode {
 public:
  GroupByReducerNode(DataNodePtr input, KeyedReductionPtr reduction)
      : UnaryNode("group_by_reducer", std::move(input)), reduction_(std::move(reduction)) {}

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<GroupByReducerNode>(std::move(inputs[0]), reduction_);
  }
  StructureSpec element_spec() const override {
    return spec_.get([&] { return find_spec(); });
  }
  bool guesses_spec() const override { return true; }
  int64_t cardinality() const override {
    return input().cardinality() == 0 ? 0 : data::kUnknownCardinality;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<GroupByReducerIterator>(input().make_iterator(context), reduction_);
  }

 private:
  // The spec of what a group of the first element alone comes to.
  StructureSpec find_spec() const {
    const c10::NoGradGuard no_grad;
    std::optional<StructureSpec> found;
    probe(input(), [&](const Structure& element, int64_t index) {
      KeyedReduction::States states;
      reduction_->add(states, element, index);
      found = StructureSpec::of(reduction_->finish(states.begin()->first, states.begin()->second));
    });
    if (found) return *std::move(found);
    throw FailedPreconditionError(
        "group_by_reducer: what its elements look like cannot be found out, since its input has no "
        "elements");
  }

  const KeyedReductionPtr reduction_;
  Lazy<StructureSpec> spec_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::group_by_reducer_erased(internal::ElementFunction key_func,
                                         Reducer reducer) const {
  auto reduction = std::make_shared<const internal::KeyedReduction>(
      internal::KeyedReduction{std::move(key_func), std::move(reducer)});
  return Dataset(std::make_shared<internal::GroupByReducerNode>(node_, std::move(reduction)),
                 options_);
}

}  // namespace cohort::data
