#include "cohort/collective/sum_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "cohort/collective/add_in_tree.h"
#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

using ::testing::ElementsAre;

TEST(SumTree, NodesAreTheLargestOfARange) {
  const SumTree eight(8);
  EXPECT_THAT(eight.nodes_of({0, 8}), ElementsAre(ReplicaRange{0, 8}));
  EXPECT_THAT(eight.nodes_of({2, 4}), ElementsAre(ReplicaRange{2, 4}));
  EXPECT_THAT(eight.nodes_of({3, 6}), ElementsAre(ReplicaRange{3, 4}, ReplicaRange{4, 6}));
  EXPECT_THAT(eight.nodes_of({1, 8}),
              ElementsAre(ReplicaRange{1, 2}, ReplicaRange{2, 4}, ReplicaRange{4, 8}));
  EXPECT_THAT(eight.nodes_of({3, 3}), ElementsAre());
  const SumTree six(6);
  EXPECT_THAT(six.nodes_of({3, 6}), ElementsAre(ReplicaRange{3, 4}, ReplicaRange{4, 6}));
  EXPECT_THAT(six.nodes_of({0, 6}), ElementsAre(ReplicaRange{0, 6}));
}

TEST(SumTree, AdditionsFollowTheTree) {
  const SumTree six(6);
  EXPECT_THAT(six.additions_within({0, 6}), ElementsAre(0, 1, 0, 2, 0, 2));
  EXPECT_THAT(six.additions_within({2, 3}), ElementsAre(0));
  const std::vector<ReplicaRange> parts = {{0, 2}, {2, 3}, {3, 4}, {4, 6}};
  EXPECT_THAT(six.additions_of(parts), ElementsAre(0, 0, 2, 1));
}

TEST(SumTree, DividesAsEquallyAsPossible) {
  EXPECT_THAT(SumTree(8).divide(3),
              ElementsAre(ReplicaRange{0, 3}, ReplicaRange{3, 6}, ReplicaRange{6, 8}));
  EXPECT_THAT(SumTree(2).divide(2), ElementsAre(ReplicaRange{0, 1}, ReplicaRange{1, 2}));
}

template <class T>
std::vector<T> sum_of(const SumTree& tree, const std::vector<std::vector<T>>& values,
                      ReplicaRange node, DType dtype) {
  std::vector<const void*> sources;
  for (int id = node.first; id < node.last; ++id) {
    const std::vector<T>& one = values[static_cast<size_t>(id)];
    sources.push_back(one.empty() ? nullptr : one.data());
  }
  size_t size = 0;
  for (const std::vector<T>& one : values) size = std::max(size, one.size());
  std::vector<T> sum(size);
  void* const target = sum.data();
  add_in_tree({&target, 1}, sources, tree.additions_within(node), static_cast<int64_t>(size),
              dtype);
  bool any = false;
  for (const void* source : sources) any = any || source != nullptr;
  if (!any) sum.clear();
  return sum;
}

// Every division of the replicas among hosts gives the bits of one host that has all of them.
template <class T>
void expect_same_bits(DType dtype, int replicas, bool with_missing) {
  std::mt19937 random(static_cast<unsigned>(replicas));
  std::vector<std::vector<T>> values(static_cast<size_t>(replicas));
  for (size_t r = 0; r < values.size(); ++r) {
    if (with_missing && random() % 3 == 0) continue;
    for (int i = 0; i < 1500; ++i) {
      const double value = std::ldexp(static_cast<double>(random() % 2001) - 1000,
                                      static_cast<int>(random() % 24) - 12);
      values[r].push_back(static_cast<T>(value));
    }
  }
  const SumTree tree(replicas);
  const std::vector<T> whole = sum_of(tree, values, {0, replicas}, dtype);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<ReplicaRange> parts;
    for (int first = 0; first < replicas;) {
      const int last =
          first + 1 + static_cast<int>(random() % static_cast<unsigned>(replicas - first));
      for (const ReplicaRange& node : tree.nodes_of({first, last})) parts.push_back(node);
      first = last;
    }
    std::vector<std::vector<T>> partial;
    std::vector<const void*> sources;
    for (const ReplicaRange& part : parts) partial.push_back(sum_of(tree, values, part, dtype));
    for (const auto& one : partial) sources.push_back(one.empty() ? nullptr : one.data());
    std::vector<T> sum(whole.size());
    void* const target = sum.data();
    add_in_tree({&target, 1}, sources, tree.additions_of(parts), static_cast<int64_t>(sum.size()),
                dtype);
    ASSERT_EQ(std::memcmp(sum.data(), whole.data(), sum.size() * sizeof(T)), 0)
        << replicas << " replicas in " << parts.size() << " parts";
  }
}

TEST(AddInTree, AnyDivisionGivesTheSameBits) {
  for (const int replicas : {1, 2, 3, 5, 6, 7, 8, 13, 16, 33}) {
    expect_same_bits<float>(float32, replicas, false);
    expect_same_bits<float>(float32, replicas, true);
    expect_same_bits<double>(float64, replicas, true);
  }
}

TEST(AddInTree, AddsInTheOrderOfTheTree) {
  // (1e8 + 1) + (-1e8 + 1) is 1 in float32, from left to right 1 as well; (1e8 + -1e8) + 2 is 2.
  const float a = 1e8F, b = 1.0F, c = -1e8F, d = 1.0F;
  float sum = 0;
  void* const target = &sum;
  const SumTree tree(4);
  add_in_tree({&target, 1}, std::vector<const void*>{&a, &b, &c, &d}, tree.additions_within({0, 4}),
              1, float32);
  EXPECT_EQ(sum, 0.0F);  // 1e8 + -1e8: both ones are lost
  add_in_tree({&target, 1}, std::vector<const void*>{&a, &c, &b, &d}, tree.additions_within({0, 4}),
              1, float32);
  EXPECT_EQ(sum, 2.0F);
}

TEST(AddInTree, RoundsShortFloatsOnce) {
  // 256 + 1 is 256 in bfloat16, and so would (256 + 1) + (256 + 1) be 512.
  const at::BFloat16 a = 256, b = 1;
  const std::vector<const void*> sources = {&a, &b, &a, &b};
  const Additions additions = SumTree(4).additions_within({0, 4});
  at::BFloat16 sum = 0;
  void* target = &sum;
  add_in_tree({&target, 1}, sources, additions, 1, DType::BFloat16);
  EXPECT_EQ(sum, at::BFloat16(514.0F));
  float exact = 0;
  target = &exact;
  add_in_tree({&target, 1}, sources, additions, 1, DType::BFloat16, float32);
  EXPECT_EQ(exact, 514.0F);
}

TEST(AddInTree, MayWriteOverSourcesAndToSeveralPlaces) {
  std::vector<int64_t> a(3000, 1), b(3000, 2), c(3000, 4), other(3000);
  void* const targets[] = {b.data(), other.data()};
  add_in_tree(targets, std::vector<const void*>{a.data(), b.data(), c.data()},
              SumTree(3).additions_within({0, 3}), 3000, int64);
  EXPECT_EQ(b, std::vector<int64_t>(3000, 7));
  EXPECT_EQ(other, b);
}

TEST(AddInTree, NothingAddsUpToZeros) {
  double sum = 5;
  void* const target = &sum;
  add_in_tree({&target, 1}, std::vector<const void*>{nullptr, nullptr},
              SumTree(2).additions_within({0, 2}), 1, float64);
  EXPECT_EQ(sum, 0);
  EXPECT_THROW(add_in_tree({&target, 1}, std::vector<const void*>{nullptr},
                           SumTree(1).additions_within({0, 1}), 1, boolean),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::collective
