#include "cohort/data/block_rest.h"

#include "cohort/data/origin.h"
#include "cohort/data/stacking.h"

namespace cohort::internal {

void collect(DataIterator& input, int64_t n, std::vector<Structure>& elements, BlockRest& rest) {
  rest.settle(input);
  Structure element;
  while (std::ssize(elements) < n) {
    try {
      if (!input.next(element)) return;
    } catch (const InputDeadlineExceeded&) {  // each of the rest would wait as long
      throw;
    } catch (...) {
      const int64_t left = n - std::ssize(elements) - 1;
      elements.clear();
      rest.pass_over(input, left);
      throw;
    }
    elements.push_back(std::move(element));
  }
}

int64_t collect_block(DataIterator& input, int64_t n, Structure& out, BlockRest& rest) {
  std::vector<Structure> elements;
  bool cut_short = false;
  try {
    collect(input, n, elements, rest);
  } catch (const InputDeadlineExceeded&) {  // it comes again after those that did come
    if (elements.empty()) throw;
    cut_short = true;
  }
  if (elements.empty()) return 0;
  const auto count = static_cast<int64_t>(elements.size());
  try {
    out = stack_elements(elements, Positions::run(0, count));
  } catch (...) {
    if (cut_short) rest.pass_over(input, n - count);
    throw;
  }
  return count;
}

namespace {

// Its state is the input's own wherever nothing is left of a block.
class ElementBlocks final : public DataIterator {
 public:
  explicit ElementBlocks(std::unique_ptr<DataIterator> input) : input_(std::move(input)) {}

  bool next(Structure& out) override {
    rest_.settle(*input_);
    several_ = false;
    return input_->next(out);
  }
  bool has_blocks() const override { return true; }
  int64_t next_block(int64_t n, Structure& out) override {
    const int64_t count = collect_block(*input_, n, out, rest_);
    several_ = count > 1;
    return count;
  }
  int64_t skip(int64_t n) override {
    rest_.settle(*input_);
    return input_->skip(n);
  }
  std::shared_ptr<const std::string> last_origin() const override {
    return several_ ? of_several("a block", *input_) : input_->last_origin();
  }
  void rewind(uint64_t epoch) override {
    rest_.forget();
    input_->rewind(epoch);
  }
  IteratorState save() const override {
    IteratorState input = input_->save();
    if (rest_.empty()) return input;
    IteratorState state;
    rest_.save(state);
    state.set_child("blocks_of", std::move(input));
    return state;
  }
  void restore(const IteratorState& state) override {
    const bool inside = state.has("blocks_of");
    rest_.forget();
    input_->restore(inside ? state.child("blocks_of") : state);
    if (inside) rest_.restore(state);
  }

 private:
  std::unique_ptr<DataIterator> input_;
  BlockRest rest_;
  bool several_ = false;  // elements in the last block
};

}  // namespace

std::unique_ptr<DataIterator> with_blocks(std::unique_ptr<DataIterator> input) {
  if (input->has_blocks()) return input;
  return std::make_unique<ElementBlocks>(std::move(input));
}

}  // namespace cohort::internal
