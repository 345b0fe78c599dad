#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/counting_iterator.h"

namespace cohort::internal {
namespace {

class AssertCardinalityIterator final : public CountingIterator {
 public:
  AssertCardinalityIterator(std::unique_ptr<DataIterator> input, int64_t count)
      : CountingIterator(std::move(input)), count_(count) {}

  bool next(Structure& out) override {
    const bool found = read(out);
    check(found);
    return found;
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  int64_t next_block(int64_t n, Structure& out) override {
    const int64_t rows = read_block(n, out);
    check(rows > 0);
    return rows;
  }
  int64_t skip(int64_t n) override { return pass_over(n); }

 private:
  // `found` is whether there was another element; the end says so every time.
  void check(bool found) const {
    if (count_ == data::kInfiniteCardinality ? found
        : found                              ? index_ <= count_
                                             : index_ == count_) {
      return;
    }
    const std::string expected =
        count_ == data::kInfiniteCardinality ? "infinitely many" : str(count_);
    throw FailedPreconditionError(
        str("assert_cardinality: ", expected, " elements were promised, ",
            found ? "but there are more" : str("but there are ", index_)));
  }

  int64_t count_;
};

class AssertCardinalityNode final : public UnaryNode {
 public:
  AssertCardinalityNode(DataNodePtr input, int64_t count)
      : UnaryNode("assert_cardinality", std::move(input)), count_(count) {
    if (count < data::kInfiniteCardinality) {
      throw InvalidArgumentError(str("assert_cardinality: count is ", count,
                                     "; it must be at least 0, or kInfiniteCardinality"));
    }
  }

  Attributes attributes() const override { return {{"count", str(count_)}}; }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<AssertCardinalityNode>(std::move(inputs[0]), count_);
  }
  int64_t cardinality() const override { return count_; }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<AssertCardinalityIterator>(input().make_iterator(context), count_);
  }
  ShardingRole sharding_role() const override { return ShardingRole::kWholeDatasetOnly; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  int64_t count_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::assert_cardinality(int64_t count) const {
  return Dataset(std::make_shared<internal::AssertCardinalityNode>(node_, count), options_);
}

}  // namespace cohort::data
