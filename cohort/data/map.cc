#include <c10/core/GradMode.h>

#include <mutex>

#include "cohort/data/dataset.h"
#include "cohort/data/map_function.h"
#include "cohort/data/node.h"
#include "cohort/data/stacking.h"

namespace cohort::internal {
namespace {
using MapFunctionPtr = std::shared_ptr<const MapFunction>;

class MapIterator final : public DataIterator {
 public:
  MapIterator(std::unique_ptr<DataIterator> input, MapFunctionPtr function)
      : input_(std::move(input)), function_(std::move(function)) {}

  bool next(Structure& out) override {
    if (function_->vectorized()) {
      if (next_block(1, out) == 0) return false;
      out = select_row(out, 0);
      return true;
    }
    ++index_;  // also where the element fails
    if (!input_->next(element_)) {
      --index_;
      return false;
    }
    out = function_->apply(element_, index_ - 1);
    return true;
  }
  bool has_blocks() const override {
    return function_->vectorized() || (function_->takes_blocks() && input_->has_blocks());
  }
  int64_t next_block(int64_t n, Structure& out) override {
    if (!has_blocks()) return DataIterator::next_block(n, out);
    index_ += n;  // a block fails as a whole
    const int64_t count = input_->next_block(n, element_);
    index_ -= n - count;
    if (count == 0) return 0;
    out = function_->apply_block(element_, Positions::run(index_ - count, count));
    return count;
  }
  int64_t skip(int64_t n) override {
    const int64_t skipped = input_->skip(n);
    index_ += skipped;
    return skipped;
  }
  void rewind(uint64_t epoch) override {
    index_ = 0;
    input_->rewind(epoch);
  }
  IteratorState save() const override {
    IteratorState state;
    state.set_int("index", index_);
    state.set_child("input", input_->save());
    return state;
  }
  void restore(const IteratorState& state) override {
    index_ = state.get_int("index", 0, kInfiniteSize);
    input_->restore(state.child("input"));
  }

 private:
  std::unique_ptr<DataIterator> input_;
  MapFunctionPtr function_;
  int64_t index_ = 0;  // of the next element, for messages
  Structure element_;
};

class MapIndexed final : public IndexedData {
 public:
  MapIndexed(std::unique_ptr<IndexedData> input, MapFunctionPtr function)
      : input_(std::move(input)), function_(std::move(function)) {}

  int64_t size() const override { return input_->size(); }
  void read(int64_t position, Structure& out) override {
    if (function_->vectorized()) {
      read_block(Positions::run(position, 1), out);
      out = select_row(out, 0);
      return;
    }
    Structure element;
    input_->read(position, element);
    out = function_->apply(element, position);
  }
  bool has_blocks() const override {
    return function_->vectorized() || (function_->takes_blocks() && input_->has_blocks());
  }
  void read_block(const Positions& positions, Structure& out) override {
    if (!has_blocks()) return IndexedData::read_block(positions, out);
    Structure block;
    input_->read_block(positions, block);
    out = function_->apply_block(block, positions);
  }

 private:
  std::unique_ptr<IndexedData> input_;
  MapFunctionPtr function_;
};

// The spec of what a function returned for one element, with a dimension unknown where it is
// unknown in the input and as large as there: the rows of a batch, most of all.
StructureSpec generalize(const Structure& result, const StructureSpec& input_spec,
                         const Structure& input) {
  std::vector<std::pair<size_t, int64_t>> unknown;  // dimension, size in this element
  std::vector<Leaf> leaves = input.flatten();
  const std::vector<TensorSpec> specs = input_spec.flatten();
  for (size_t i = 0; i < specs.size() && i < leaves.size(); ++i) {
    if (!specs[i].shape()) continue;
    const std::vector<int64_t> shape = leaves[i].sizes();
    for (size_t d = 0; d < shape.size() && d < specs[i].shape()->size(); ++d) {
      if ((*specs[i].shape())[d] == kUnknownDim) unknown.emplace_back(d, shape[d]);
    }
  }
  return StructureSpec::of(result).map([&](const TensorSpec& spec) {
    std::vector<int64_t> shape = *spec.shape();
    for (const auto& [d, size] : unknown) {
      if (d < shape.size() && shape[d] == size) shape[d] = kUnknownDim;
    }
    return spec.is_string() ? TensorSpec::strings(shape) : TensorSpec(shape, spec.dtype());
  });
}

class MapNode final : public UnaryNode {
 public:
  MapNode(DataNodePtr input, MapFunctionPtr function)
      : UnaryNode("map", std::move(input)), function_(std::move(function)) {}

  Attributes attributes() const override {
    return function_->vectorized() ? Attributes{{"vectorized", "true"}} : Attributes{};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<MapNode>(std::move(inputs[0]), function_);
  }
  StructureSpec element_spec() const override {
    if (auto declared = function_->declared_spec()) return *declared;
    const std::lock_guard lock(mutex_);
    if (!spec_) spec_ = find_spec();
    return *spec_;
  }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    if (auto indexed = make_indexed()) {
      return std::make_unique<IndexedIterator>(std::move(indexed));
    }
    return std::make_unique<MapIterator>(input().make_iterator(context), function_);
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    auto indexed = input().make_indexed();
    return indexed ? std::make_unique<MapIndexed>(std::move(indexed), function_) : nullptr;
  }
  bool passes_file_sharding() const override { return true; }

 private:
  // By calling the function once.
  StructureSpec find_spec() const {
    const c10::NoGradGuard no_grad;
    const auto first = input().make_iterator({.probing = true});
    Structure element;
    if (!first->next(element)) {
      throw FailedPreconditionError(
          "map: what the function returns cannot be found out, since its input has no elements; "
          "give MapOptions.output_spec");
    }
    const StructureSpec input_spec = input().element_spec();
    if (!function_->vectorized()) {
      return generalize(function_->apply(element, 0), input_spec, element);
    }
    const Structure block = stack_elements({element}, Positions::run(0, 1));
    const Structure result = function_->apply_block(block, Positions::run(0, 1));
    return generalize(select_row(result, 0), input_spec, element);
  }

  MapFunctionPtr function_;
  mutable std::mutex mutex_;
  mutable std::optional<StructureSpec> spec_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::map_erased(internal::ElementFunction fn, MapOptions options) const {
  auto function = std::make_shared<const internal::MapFunction>(std::move(fn), std::move(options));
  return Dataset(std::make_shared<internal::MapNode>(node_, std::move(function)), options_);
}

}  // namespace cohort::data
