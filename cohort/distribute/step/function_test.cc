#include "cohort/distribute/step/function.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"

namespace cohort {
namespace {

using data::Dataset;
using distribute::MirroredStrategy;
using distribute::PerReplica;
using distribute::refused;
using ::testing::HasSubstr;

TEST(Function, TakesTheBatchesOfItsDataset) {
  const MirroredStrategy strategy = distribute::mirrored(2);
  const auto dataset = strategy.experimental_distribute_dataset(Dataset::range(6).batch(4));
  const auto step = function(
      [&](const PerReplica<Structure>& batch) {
        return strategy.run([](const Tensor& x) { return 2 * x; }, batch);
      },
      {.input_signature = {{dataset.element_spec()}}});
  for (const auto& batch : dataset) {
    EXPECT_TRUE(step(batch).value(0).equal(2 * batch.value(0).tensor()));
  }
}

// Each form compiles, and says what it seems to.
TEST(Function, SignaturesAreWrittenInOneBraceOrTwo) {
  const TensorSpec tensor({{2}}, float32);
  const StructureSpec a(tensor), b(TensorSpec({{}}, int64));
  const distribute::PerReplicaSpec batch{a, 2};
  const auto any = [](const auto&...) {};
  const auto specs = [](const auto& fn) { return fn.input_signature().value(); };
  using Specs = std::vector<ArgumentSpec>;

  EXPECT_EQ(specs(function(any, {.input_signature = {batch}})), Specs{batch});
  EXPECT_EQ(specs(function(any, {.input_signature = {{batch}}})), Specs{batch});
  EXPECT_EQ(specs(function(any, {.input_signature = {a}})), Specs{a});
  EXPECT_EQ(specs(function(any, {.input_signature = {{a}}})), Specs{a});
  EXPECT_EQ(specs(function(any, {.input_signature = {tensor}})), Specs{a});
  EXPECT_EQ(specs(function(any, {.input_signature = {{tensor}}})), Specs{a});
  EXPECT_EQ(specs(function(any, {.input_signature = {TensorSpec({{2}}, float32)}})), Specs{a});
  EXPECT_EQ(specs(function(any, {.input_signature = {a, b}})), (Specs{a, b}));
  EXPECT_EQ(specs(function(any, {.input_signature = {{a, b}}})), (Specs{a, b}));
  EXPECT_EQ(specs(function(any, {.input_signature = {batch, tensor}})), (Specs{batch, a}));
  EXPECT_EQ(specs(function(any, {.input_signature = {{batch, tensor}}})), (Specs{batch, a}));
  EXPECT_EQ(specs(function(any, {.input_signature = Specs{a, b}})), (Specs{a, b}));
  EXPECT_EQ(specs(function(any, {.input_signature = Specs{}})), Specs{});
  EXPECT_EQ(specs(function(any, {.input_signature = std::optional(Specs{a})})), Specs{a});

  EXPECT_FALSE(function(any).input_signature());
  EXPECT_FALSE(function(any, {}).input_signature());
  EXPECT_FALSE(function(any, {.input_signature = {}}).input_signature());
  EXPECT_FALSE(function(any, {.input_signature = std::nullopt}).input_signature());
  FunctionOptions options;
  options.input_signature = {batch, a};
  EXPECT_EQ(specs(function(any, options)), (Specs{batch, a}));
}

TEST(Function, DescribesPerReplicaValuesOfEveryKind) {
  const distribute::PerReplicaSpec words{StructureSpec(TensorSpec::strings({{1}})), 2};
  const distribute::PerReplicaSpec numbers{StructureSpec(TensorSpec({{}}, int64)), 2};
  const auto step = function([](const auto&...) {}, {.input_signature = {words, numbers}});
  const PerReplica<StringTensor> ab({StringTensor({"a"}), StringTensor({"b"})});
  step(ab, PerReplica<int>({1, 2}));
  EXPECT_THAT(refused([&] { step(ab, ab); }),
              HasSubstr("argument 1 does not fit input_signature: replica 0"));
  EXPECT_THAT(refused([&] {
                step(PerReplica<std::string>({"a", "b"}), PerReplica<int>({1, 2}));
              }),
              HasSubstr("argument 0 has a type that input_signature cannot describe"));
}

TEST(Function, RefusesWhatDoesNotFitItsSignature) {
  const MirroredStrategy strategy = distribute::mirrored(2);
  const auto dataset = strategy.experimental_distribute_dataset(Dataset::range(6).batch(4));
  bool called = false;
  const auto step = function([&](const auto&...) { called = true; },
                             {.input_signature = {{dataset.element_spec()}}});
  const Tensor row = at::arange(2);
  EXPECT_THAT(refused([&] {
                step(PerReplica<Tensor>({row, row.to(float32)}));
              }),
              HasSubstr("argument 0 does not fit input_signature: replica 1"));
  EXPECT_THAT(refused([&] { step(PerReplica<Tensor>({row})); }), HasSubstr("1 components"));
  EXPECT_THAT(refused([&] { step(row); }), HasSubstr("argument 0"));
  EXPECT_THAT(refused([&] {
                step(PerReplica<Tensor>({row, row}), row);
              }),
              HasSubstr("2 arguments"));
  EXPECT_FALSE(called);
  step(PerReplica<Tensor>({row, row}));
  EXPECT_TRUE(called);
}

TEST(Function, ChecksPlainArguments) {
  const auto add = function([](const Tensor& a, const Tensor& b) { return a + b; },
                            {.input_signature = {{StructureSpec(TensorSpec({{2}}, float32)),
                                                  StructureSpec(TensorSpec({{}}, float32))}}});
  EXPECT_EQ(add(at::ones({2}), at::ones({})).sum().item<double>(), 4);
  EXPECT_THAT(refused([&] { add(at::ones({2}), at::ones({2})); }), HasSubstr("argument 1"));
  const auto any = function([](const auto&) {},
                            {.input_signature = {{StructureSpec(TensorSpec({{2}}, float32))}}});
  EXPECT_THAT(refused([&] {
                any(PerReplica<Tensor>({at::ones({2}), at::ones({2})}));
              }),
              HasSubstr("2 components"));
}

TEST(Function, WithoutASignatureTakesAnything) {
  const auto size = function([](const auto& value) { return value.size(); });
  EXPECT_EQ(size(std::vector<int>{1, 2}), 2U);
  EXPECT_FALSE(size.input_signature());
  const auto checked = function([](const auto&) {},
                                {.input_signature = {{StructureSpec(TensorSpec({{2}}, float32))}}});
  EXPECT_THAT(refused([&] { checked(std::vector<int>{1, 2}); }), HasSubstr("cannot describe"));
}

}  // namespace
}  // namespace cohort
