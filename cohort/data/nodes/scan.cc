#include <c10/core/GradMode.h>

#include <optional>

#include "cohort/core/error_context.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/data/dataset.h"
#include "cohort/data/functions/carried_state.h"
#include "cohort/data/functions/probe.h"
#include "cohort/data/functions/probed_spec.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/composite_rows.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/storage/element_codec.h"

namespace cohort::internal {
namespace {

struct ScanFunction {
  Structure initial;
  ElementFunction call;

  // The state that a pass begins with.
  Structure start() const { return own_state(initial); }
  // The element that comes out; `state` becomes the next one. The function may write to that: it is
  // memory of neither the element that went in nor of the one that comes out.
  Structure apply(Structure& state, const Structure& element, int64_t index) const {
    Structure result;
    try {
      result = call.whole(Structure::make_tuple({state, element}));
    } catch (...) {
      rethrow_with_context(str("scan: element ", index));
    }
    if (result.is_leaf() || result.size() != 2) {
      throw InvalidArgumentError(str("scan: for element ", index, " the function returned ",
                                     StructureSpec::of(result),
                                     "; it must return a pair of the next state and an element"));
    }
    check_next_state("scan", index, state, result[0]);
    state = apart_from(element, result[0]);
    return with_marked_sparse(apart_from(state, result[1]));
  }
};

// The user's state goes into the iterator's as it is.
class ScanIterator final : public CountingIterator {
 public:
  ScanIterator(std::unique_ptr<DataIterator> input, std::shared_ptr<const ScanFunction> function)
      : CountingIterator(std::move(input)),
        function_(std::move(function)),
        state_(function_->start()) {}

  bool next(Structure& out) override {
    Structure element;
    if (!read(element)) return false;
    out = function_->apply(state_, element, index_ - 1);
    return true;
  }
  void rewind(uint64_t epoch) override {
    state_ = function_->start();
    CountingIterator::rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state = CountingIterator::save();
    state.set_bytes("state", encode_element(state_));
    return state;
  }
  void restore(const IteratorState& state) override {
    state_ = decode_element(state.get_bytes("state"), "iterator state of a scan");
    CountingIterator::restore(state);
  }

 private:
  std::shared_ptr<const ScanFunction> function_;
  Structure state_;
};

class ScanNode final : public UnaryNode {
 public:
  ScanNode(DataNodePtr input, std::shared_ptr<const ScanFunction> function)
      : UnaryNode("scan", std::move(input)), function_(std::move(function)) {}

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<ScanNode>(std::move(inputs[0]), function_);
  }
  StructureSpec element_spec() const override {
    return spec_.get([&] { return find_spec(); });
  }
  bool guesses_spec() const override { return true; }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<ScanIterator>(input().make_iterator(context), function_);
  }

 private:
  // Finds the spec by calling the function. What changes between elements, in the input or in the
  // state, is unknown in what comes out.
  StructureSpec find_spec() const {
    const c10::NoGradGuard no_grad;
    const StructureSpec input_spec = input().element_spec();
    std::optional<StructureSpec> found;
    probe(input(), [&](const Structure& element, int64_t index) {
      Structure state = function_->start();
      const StructureSpec before = StructureSpec::of(state);
      const Structure result = function_->apply(state, element, index);
      const StructureSpec states = spec_of_states("scan", index, before, StructureSpec::of(state));
      found = generalize(result, StructureSpec::make_tuple({states, input_spec}),
                         Structure::make_tuple({state, element}));
    });
    if (found) return *std::move(found);
    throw FailedPreconditionError(
        "scan: what the function returns cannot be found out, since its input has no elements");
  }

  std::shared_ptr<const ScanFunction> function_;
  Lazy<StructureSpec> spec_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::scan_erased(Structure initial, internal::ElementFunction fn) const {
  auto function = std::make_shared<const internal::ScanFunction>(
      internal::ScanFunction{std::move(initial), std::move(fn)});
  return Dataset(std::make_shared<internal::ScanNode>(node_, std::move(function)), options_);
}

}  // namespace cohort::data
