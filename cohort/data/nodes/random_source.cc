#include <ATen/ops/empty.h>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random.h"

namespace cohort::internal {
namespace {

// Element i is word i of the generator's stream.
class RandomIterator final : public DataIterator {
 public:
  explicit RandomIterator(uint64_t seed) : random_(seed) {}

  bool next(Structure& out) override {
    Tensor number = at::empty({}, int64);
    *number.data_ptr<int64_t>() = random_.next_u32();
    out = std::move(number);
    return true;
  }
  bool has_blocks() const override { return true; }
  int64_t next_block(int64_t n, Structure& out) override {
    Tensor numbers = at::empty({n}, int64);
    auto* values = numbers.data_ptr<int64_t>();
    for (int64_t i = 0; i < n; ++i) values[i] = random_.next_u32();
    out = std::move(numbers);
    return n;
  }
  int64_t skip(int64_t n) override {
    random_.seek(random_.position() + static_cast<uint64_t>(n));
    return n;
  }
  void rewind(uint64_t) override { random_.seek(0); }
  IteratorState save() override {
    IteratorState state;
    state.set_int("seed", static_cast<int64_t>(random_.seed()));
    state.set_int("position", static_cast<int64_t>(random_.position()));
    return state;
  }
  void restore(const IteratorState& state) override {
    random_ = Philox(static_cast<uint64_t>(state.get_int("seed")));
    random_.seek(static_cast<uint64_t>(state.get_int("position", 0, kInfiniteSize)));
  }

 private:
  Philox random_;
};

class RandomNode final : public DataNode {
 public:
  RandomNode(uint64_t seed, bool seed_given)
      : DataNode("random", {}), seed_(seed), seed_given_(seed_given) {}

  Attributes attributes() const override {
    return seed_given_ ? Attributes{{"seed", str(seed_)}} : Attributes{};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr>) const override {
    return std::make_shared<RandomNode>(seed_, seed_given_);
  }
  StructureSpec element_spec() const override { return TensorSpec(std::vector<int64_t>{}, int64); }
  int64_t cardinality() const override { return data::kInfiniteCardinality; }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext&) const override {
    return std::make_unique<RandomIterator>(seed_);
  }
  SourceKind source() const override { return SourceKind::kUnshardable; }

 private:
  uint64_t seed_;
  bool seed_given_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::random(std::optional<uint64_t> seed) {
  return Dataset(std::make_shared<internal::RandomNode>(seed ? *seed : internal::next_seed(),
                                                        seed.has_value()));
}

}  // namespace cohort::data
