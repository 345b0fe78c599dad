#include <ATen/ops/empty.h>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/counting_iterator.h"

namespace cohort::internal {
namespace {

Tensor index_tensor(int64_t index) {
  Tensor tensor = at::empty({}, int64);
  *tensor.data_ptr<int64_t>() = index;
  return tensor;
}

class EnumerateIterator final : public CountingIterator {
 public:
  EnumerateIterator(std::unique_ptr<DataIterator> input, int64_t start)
      : CountingIterator(std::move(input)), start_(start) {}

  bool next(Structure& out) override {
    if (!read(element_)) return false;
    out = tuple(index_tensor(start_ + index_ - 1), std::move(element_));
    return true;
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  int64_t next_block(int64_t n, Structure& out) override {
    const int64_t count = read_block(n, element_);
    if (count == 0) return 0;
    Tensor indices = at::empty({count}, int64);
    for (int64_t i = 0; i < count; ++i) {
      indices.data_ptr<int64_t>()[i] = start_ + index_ - count + i;
    }
    out = tuple(std::move(indices), std::move(element_));
    return count;
  }
  int64_t skip(int64_t n) override { return pass_over(n); }

 private:
  int64_t start_;
  Structure element_;
};

class EnumerateIndexed final : public IndexedData {
 public:
  EnumerateIndexed(std::unique_ptr<IndexedData> input, int64_t start)
      : input_(std::move(input)), start_(start) {}
  int64_t size() const override { return input_->size(); }
  void read(int64_t position, Structure& out) override {
    Structure element;
    input_->read(position, element);
    out = tuple(index_tensor(start_ + position), std::move(element));
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  void read_block(const Positions& positions, Structure& out) override {
    Structure block;
    input_->read_block(positions, block);
    Tensor indices = at::empty({positions.size()}, int64);
    for (int64_t i = 0; i < positions.size(); ++i) {
      indices.data_ptr<int64_t>()[i] = start_ + positions[i];
    }
    out = tuple(std::move(indices), std::move(block));
  }

 private:
  std::unique_ptr<IndexedData> input_;
  int64_t start_;
};

class EnumerateNode final : public IndexableNode {
 public:
  EnumerateNode(DataNodePtr input, int64_t start)
      : IndexableNode("enumerate", std::move(input)), start_(start) {}

  Attributes attributes() const override { return {{"start", str(start_)}}; }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<EnumerateNode>(std::move(inputs[0]), start_);
  }
  StructureSpec element_spec() const override {
    return StructureSpec::make_tuple(
        {TensorSpec(std::vector<int64_t>{}, int64), input().element_spec()});
  }
  int64_t cardinality() const override { return input().cardinality(); }

 private:
  std::unique_ptr<IndexedData> by_position(std::unique_ptr<IndexedData> elements) const override {
    return std::make_unique<EnumerateIndexed>(std::move(elements), start_);
  }
  std::unique_ptr<DataIterator> in_order(const IteratorContext& context) const override {
    return std::make_unique<EnumerateIterator>(input().make_iterator(context), start_);
  }

  int64_t start_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::enumerate(int64_t start) const {
  return Dataset(std::make_shared<internal::EnumerateNode>(node_, start), options_);
}

}  // namespace cohort::data
