#include "cohort/data/torch_dataset.h"

#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/data/datasets/base.h>

#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// As a user of torch::data writes one.
class Squares : public torch::data::datasets::Dataset<Squares> {
 public:
  explicit Squares(size_t size) : size_(size) {}
  torch::data::Example<> get(size_t index) override {
    if (index == 4) throw std::runtime_error("no such thing");
    const Tensor x = at::arange(5, at::kLong)[static_cast<int64_t>(index)];
    return {x, x * x};
  }
  torch::optional<size_t> size() const override { return size_; }

 private:
  size_t size_;
};

class Unsized : public torch::data::datasets::Dataset<Unsized, Tensor> {
 public:
  Tensor get(size_t) override { return at::arange(2, at::kLong); }
  torch::optional<size_t> size() const override { return torch::nullopt; }
};

struct Single {
  torch::data::Example<Tensor, torch::data::example::NoTarget> get(size_t index) const {
    return at::arange(3, at::kLong)[static_cast<int64_t>(index)];
  }
  std::optional<size_t> size() const { return 3; }
};

TEST(TorchDataset, GivesExamples) {
  const Dataset dataset = from_torch_dataset(Squares(4));
  EXPECT_THAT(texts(dataset), ElementsAre("(0, 0)", "(1, 1)", "(2, 4)", "(3, 9)"));
  EXPECT_EQ(dataset.cardinality(), 4);
  EXPECT_EQ(dataset.element_spec(),
            StructureSpec::make_tuple({TensorSpec(std::vector<int64_t>{}, int64),
                                       TensorSpec(std::vector<int64_t>{}, int64)}));
  EXPECT_THAT(texts(dataset.shuffle(4).skip(0)),
              UnorderedElementsAre("(0, 0)", "(1, 1)", "(2, 4)", "(3, 9)"));
  EXPECT_THAT(ints(from_torch_dataset(Single())), ElementsAre(0, 1, 2));
}

TEST(TorchDataset, ResumesByPosition) {
  const auto make = [] { return from_torch_dataset(Squares(4)).shuffle(4, {.seed = 1}); };
  auto iterator = make().iterator();
  iterator.get_next();
  auto restored = make().iterator();
  restored.restore(IteratorState::parse(iterator.state().serialize()));
  EXPECT_EQ(texts(restored), texts(iterator));
}

TEST(TorchDataset, SaysWhichElementFailed) {
  EXPECT_EQ(thrown<UnknownError>([] { texts(from_torch_dataset(Squares(5))); }),
            "from_torch_dataset: element 4: no such thing");
  EXPECT_THAT(thrown<InvalidArgumentError>([] { from_torch_dataset(Unsized()); }),
              HasSubstr("from_generator"));
}

}  // namespace
}  // namespace cohort::data
