#include <ATen/ops/empty.h>

#include <algorithm>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"

namespace cohort::internal {
namespace {

// In unsigned numbers, since stop - start may exceed the signed ones.
int64_t count_steps(int64_t start, int64_t stop, int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const auto from = static_cast<uint64_t>(start), to = static_cast<uint64_t>(stop);
  const uint64_t distance = step > 0 ? to - from : from - to;
  const uint64_t size = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  const uint64_t count = (distance - 1) / size + 1;
  return static_cast<int64_t>(std::min<uint64_t>(count, kInfiniteSize - 1));
}

class RangeIndexed final : public IndexedData {
 public:
  RangeIndexed(int64_t start, int64_t step, int64_t size)
      : start_(start), step_(step), size_(size) {}

  int64_t size() const override { return size_; }
  void read(int64_t position, Structure& out) override {
    Tensor value = at::empty({}, int64);
    *value.data_ptr<int64_t>() = value_at(position);
    out = std::move(value);
  }
  bool has_blocks() const override { return true; }
  void read_block(const Positions& positions, Structure& out) override {
    Tensor values = at::empty({positions.size()}, int64);
    int64_t* value = values.data_ptr<int64_t>();
    for (int64_t i = 0; i < positions.size(); ++i) value[i] = value_at(positions[i]);
    out = std::move(values);
  }

 private:
  // The product may wrap around where the sum does not.
  int64_t value_at(int64_t position) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start_) +
                                static_cast<uint64_t>(position) * static_cast<uint64_t>(step_));
  }

  int64_t start_, step_, size_;
};

class RangeNode final : public DataNode {
 public:
  RangeNode(int64_t start, int64_t stop, int64_t step)
      : DataNode("range", {}), start_(start), stop_(stop), step_(step) {
    if (step == 0) throw InvalidArgumentError("range: step is 0; give a positive or negative one");
  }

  Attributes attributes() const override {
    return {{"start", str(start_)}, {"stop", str(stop_)}, {"step", str(step_)}};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr>) const override {
    return std::make_shared<RangeNode>(start_, stop_, step_);
  }
  StructureSpec element_spec() const override { return TensorSpec(std::vector<int64_t>{}, int64); }
  int64_t cardinality() const override { return count_steps(start_, stop_, step_); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext&) const override {
    return std::make_unique<IndexedIterator>(make_indexed());
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    return std::make_unique<RangeIndexed>(start_, step_, cardinality());
  }
  SourceKind source() const override { return SourceKind::kUnshardable; }

 private:
  int64_t start_, stop_, step_;
};

// Beyond the largest number it wraps around.
class CounterNode final : public DataNode {
 public:
  CounterNode(int64_t start, int64_t step) : DataNode("counter", {}), start_(start), step_(step) {}

  Attributes attributes() const override { return {{"start", str(start_)}, {"step", str(step_)}}; }
  DataNodePtr with_inputs(std::vector<DataNodePtr>) const override {
    return std::make_shared<CounterNode>(start_, step_);
  }
  StructureSpec element_spec() const override { return TensorSpec(std::vector<int64_t>{}, int64); }
  int64_t cardinality() const override { return data::kInfiniteCardinality; }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext&) const override {
    return std::make_unique<IndexedIterator>(make_indexed());
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    return std::make_unique<RangeIndexed>(start_, step_, kInfiniteSize);
  }
  SourceKind source() const override { return SourceKind::kUnshardable; }

 private:
  int64_t start_, step_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::range(int64_t stop) { return range(0, stop); }

Dataset Dataset::range(int64_t start, int64_t stop, int64_t step) {
  return Dataset(std::make_shared<internal::RangeNode>(start, stop, step));
}

Dataset Dataset::counter(int64_t start, int64_t step, DType dtype) {
  const Dataset numbers(std::make_shared<internal::CounterNode>(start, step));
  if (dtype == int64) return numbers;
  return numbers.map([dtype](const Tensor& block) { return block.to(dtype); },
                     {.vectorized = true,
                      .output_spec = StructureSpec(TensorSpec(std::vector<int64_t>{}, dtype))});
}

}  // namespace cohort::data
