#include "cohort/data/iteration/blocks.h"

#include "cohort/data/iteration/indexed.h"
#include "cohort/data/iteration/origin.h"
#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {

void collect(DataIterator& input, int64_t n, std::vector<Structure>& elements) {
  elements.clear();
  Structure element;
  while (std::ssize(elements) < n) {
    try {
      if (!input.next(element)) return;
    } catch (const std::exception&) {
      input.skip(n - std::ssize(elements) - 1);
      throw;
    }
    elements.push_back(std::move(element));
  }
}

namespace {

// Its state is the input's own.
class ElementBlocks final : public DataIterator {
 public:
  explicit ElementBlocks(std::unique_ptr<DataIterator> input) : input_(std::move(input)) {}

  bool next(Structure& out) override {
    several_ = false;
    return input_->next(out);
  }
  bool has_blocks() const override { return true; }
  int64_t next_block(int64_t n, Structure& out) override {
    std::vector<Structure> elements;
    collect(*input_, n, elements);
    several_ = elements.size() > 1;
    if (!elements.empty()) out = stack_elements(elements, Positions::run(0, std::ssize(elements)));
    return std::ssize(elements);
  }
  int64_t skip(int64_t n) override { return input_->skip(n); }
  std::shared_ptr<const std::string> last_origin() const override {
    return several_ ? of_several("a block", *input_) : input_->last_origin();
  }
  void rewind(uint64_t epoch) override { input_->rewind(epoch); }
  IteratorState save() override { return input_->save(); }
  void restore(const IteratorState& state) override { input_->restore(state); }

 private:
  std::unique_ptr<DataIterator> input_;
  bool several_ = false;  // elements in the last block
};

}  // namespace

std::unique_ptr<DataIterator> with_blocks(std::unique_ptr<DataIterator> input) {
  if (input->has_blocks()) return input;
  return std::make_unique<ElementBlocks>(std::move(input));
}

}  // namespace cohort::internal
