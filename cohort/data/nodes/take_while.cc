#include "cohort/core/error_context.h"
#include "cohort/data/dataset.h"
#include "cohort/data/functions/answers.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/counting_iterator.h"

namespace cohort::internal {
namespace {
using ElementFunctionPtr = std::shared_ptr<const ElementFunction>;

class TakeWhileIterator final : public CountingIterator {
 public:
  TakeWhileIterator(std::unique_ptr<DataIterator> input, ElementFunctionPtr predicate)
      : CountingIterator(std::move(input)), predicate_(std::move(predicate)) {}

  bool next(Structure& out) override {
    if (ended_) return false;
    ended_ = !read(out);
    if (ended_) return false;
    try {
      ended_ = !is_true(predicate_->whole(out));
    } catch (...) {
      rethrow_with_context(str("take_while: element ", index_ - 1));
    }
    return !ended_;
  }
  void rewind(uint64_t epoch) override {
    ended_ = false;
    CountingIterator::rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state = CountingIterator::save();
    state.set_int("ended", ended_);
    return state;
  }
  void restore(const IteratorState& state) override {
    ended_ = state.get_int("ended", 0, 1) == 1;
    CountingIterator::restore(state);
  }

 private:
  ElementFunctionPtr predicate_;
  bool ended_ = false;
};

class TakeWhileNode final : public UnaryNode {
 public:
  TakeWhileNode(DataNodePtr input, ElementFunctionPtr predicate)
      : UnaryNode("take_while", std::move(input)), predicate_(std::move(predicate)) {}

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<TakeWhileNode>(std::move(inputs[0]), predicate_);
  }
  int64_t cardinality() const override {
    return input().cardinality() == 0 ? 0 : data::kUnknownCardinality;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<TakeWhileIterator>(input().make_iterator(context), predicate_);
  }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  ElementFunctionPtr predicate_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::take_while_erased(internal::ElementFunction fn) const {
  auto predicate = std::make_shared<const internal::ElementFunction>(std::move(fn));
  return Dataset(std::make_shared<internal::TakeWhileNode>(node_, std::move(predicate)), options_);
}

}  // namespace cohort::data
