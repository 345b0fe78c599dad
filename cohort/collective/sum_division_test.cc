// Sums by a tree over the replicas: over every backend, and however the tasks divide the replicas,
// they have the bits of the tree.
#include "cohort/collective/sum_division.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <type_traits>
#include <vector>

#include "cohort/collective/add_in_tree.h"
#include "cohort/collective/network/testing_counting_transport.h"
#include "cohort/collective/sole_communicator.h"
#include "cohort/collective/testing_conformance.h"

namespace cohort::collective {
namespace {

using Random = std::mt19937;

// A value of each replica; an empty one is missing.
template <class T>
using Values = std::vector<std::vector<T>>;

template <class T>
Values<T> make_values(int replicas, size_t count, bool with_missing, Random& random) {
  Values<T> values(static_cast<size_t>(replicas));
  for (size_t r = 0; r < values.size(); ++r) {
    if (with_missing && r > 0 && random() % 3 == 0) continue;
    for (size_t i = 0; i < count; ++i) {
      const int number = static_cast<int>(random() % 2001) - 1000;
      if constexpr (std::is_integral_v<T>) {
        values[r].push_back(static_cast<T>(number / (std::is_same_v<T, uint8_t> ? 200 : 1)));
      } else {
        values[r].push_back(
            static_cast<T>(std::ldexp(number, static_cast<int>(random() % 16) - 14)));
      }
    }
  }
  return values;
}

// Element i of the sum of replicas [first, last), by the definition of the tree.
template <class T, class Sum>
std::optional<Sum> sum_of_node(const Values<T>& values, int first, int last, size_t i) {
  if (last - first == 1) {
    const std::vector<T>& one = values[static_cast<size_t>(first)];
    return one.empty() ? std::optional<Sum>() : static_cast<Sum>(one[i]);
  }
  const int middle =
      first + static_cast<int>(std::bit_ceil(static_cast<unsigned>(last - first)) / 2);
  const auto left = sum_of_node<T, Sum>(values, first, middle, i);
  const auto right = sum_of_node<T, Sum>(values, middle, last, i);
  if (!left || !right) return left ? left : right;
  return static_cast<Sum>(*left + *right);
}

// How many replicas each task has: any division.
std::vector<int> divide(int replicas, int tasks, Random& random) {
  std::vector<int> of_task(static_cast<size_t>(tasks), 1);
  for (int r = tasks; r < replicas; ++r) ++of_task[random() % of_task.size()];
  return of_task;
}

struct SumCase {
  DType dtype;
  size_t count;
  bool in_own_memory;
  bool with_missing;
};

// What one task gets, rounded to T.
template <class T, class Sum>
std::vector<T> sum_on(Communicator& member, const std::vector<int>& replicas_of,
                      const Values<T>& values, const SumCase& one) {
  const auto division = std::make_shared<const SumDivision>(replicas_of, member.rank());
  member.use_division(division);
  const auto first = static_cast<size_t>(
      std::accumulate(replicas_of.begin(), replicas_of.begin() + member.rank(), 0));
  std::vector<const void*> local;
  for (int r = 0; r < replicas_of[static_cast<size_t>(member.rank())]; ++r) {
    const std::vector<T>& value = values[first + static_cast<size_t>(r)];
    local.push_back(value.empty() ? nullptr : value.data());
  }
  const size_t room = division->own_parts().size() * one.count;
  std::vector<Sum> other(one.in_own_memory ? 0 : room);
  Sum* const parts =
      one.in_own_memory
          ? static_cast<Sum*>(member.buffer(static_cast<int64_t>(room * sizeof(Sum))).data)
          : other.data();
  const auto count = static_cast<int64_t>(one.count);
  division->add_up_local(local, parts, count, one.dtype);
  member.all_reduce_parts({parts, count, sum_dtype(one.dtype)}, {.name = "sum"});
  std::vector<T> sum(one.count);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<T>(parts[i]);
  return sum;
}

class SumDivisionOf : public CommunicatorConformance {
 protected:
  template <class T, class Sum = T>
  void expect_tree(const Communicators& members, int replicas, const SumCase& one,
                   std::vector<int> of_task = {}) {
    Random random(static_cast<unsigned>(replicas) * 100 + static_cast<unsigned>(one.count));
    const auto values = make_values<T>(replicas, one.count, one.with_missing, random);
    std::vector<T> expected(one.count);
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] = static_cast<T>(*sum_of_node<T, Sum>(values, 0, replicas, i));
    }
    if (of_task.empty()) of_task = divide(replicas, static_cast<int>(members.size()), random);
    expect_none(run_tasks(members, [&](Communicator& member) {
      const std::vector<T> sum = sum_on<T, Sum>(member, of_task, values, one);
      ASSERT_EQ(std::memcmp(sum.data(), expected.data(), sum.size() * sizeof(T)), 0)
          << replicas << " replicas, " << one.count << " elements, task " << member.rank();
    }));
  }
};

TEST_P(SumDivisionOf, AnyDivisionGivesTheBitsOfTheTree) {
  for (int tasks = 1; tasks <= 5; ++tasks) {
    const Communicators members =
        tasks == 1 ? Communicators{std::make_shared<SoleCommunicator>()} : make(tasks);
    for (int replicas = tasks; replicas <= 17; ++replicas) {
      const bool odd = replicas % 2 == 1;
      expect_tree<float>(members, replicas, {float32, 1, false, false});
      expect_tree<float>(members, replicas, {float32, 1037, odd, true});
      expect_tree<float>(members, replicas, {float32, 9001, !odd, odd});
    }
  }
}

TEST_P(SumDivisionOf, EveryDtype) {
  const Communicators members = make(3);
  for (const int replicas : {3, 7, 12}) {
    for (const size_t count : {size_t{5}, size_t{7001}}) {
      for (const bool own : {false, true}) {
        expect_tree<double>(members, replicas, {float64, count, own, true});
        expect_tree<at::Half, float>(members, replicas, {DType::Half, count, own, true});
        expect_tree<at::BFloat16, float>(members, replicas, {DType::BFloat16, count, own, true});
        expect_tree<int64_t>(members, replicas, {int64, count, own, true});
        expect_tree<int32_t>(members, replicas, {int32, count, own, true});
        expect_tree<int16_t>(members, replicas, {DType::Short, count, own, true});
        expect_tree<uint8_t>(members, replicas, {uint8, count, own, true});
      }
    }
  }
}

TEST_P(SumDivisionOf, LargeValuesFromEitherMemory) {
  constexpr size_t kCount = 600'017;  // slices of several messages, where a task brings three parts
  const Communicators members = make(3);
  for (const bool own : {false, true}) {
    expect_tree<float>(members, 8, {float32, kCount, own, false}, {1, 5, 2});
  }
}

TEST_P(SumDivisionOf, NothingIsAddedToNothing) {
  expect_none(run_tasks(make(2), [](Communicator& member) {
    member.use_division(std::make_shared<const SumDivision>(std::vector{1, 2}, member.rank()));
    float none = 3;
    member.all_reduce_parts({&none, 0, float32}, {.name = "none"});
    EXPECT_EQ(none, 3);
    bool flags[2] = {};
    EXPECT_THROW(member.all_reduce_parts({flags, 1, boolean}, {.name = "flags"}),
                 InvalidArgumentError);
  }));
}

INSTANTIATE_TEST_SUITE_P(All, SumDivisionOf, ::testing::ValuesIn(all_backends()),
                         [](const auto& info) { return info.param.name; });

TEST(SumDivision, ATaskBringsTheLargestNodesOfItsReplicas) {
  const SumDivision six({3, 3}, 1);
  EXPECT_EQ(six.num_parts(0), 2u);
  EXPECT_EQ(six.num_parts(1), 2u);
  EXPECT_EQ(six.most_parts(), 2u);
  EXPECT_EQ(six.own_replicas(1), (ReplicaRange{1, 3}));
  EXPECT_EQ(SumDivision({4, 2, 2}, 0).most_parts(), 1u);
}

// What the tasks of a group send over a network, checked, for one sum of floats.
std::vector<Sent> sent_for(const std::vector<int>& replicas_of, int64_t count) {
  const int tasks = static_cast<int>(replicas_of.size());
  std::vector<Sent> sent(replicas_of.size());
  const Communicators members =
      make_server_group(tasks, 0, [&](const GroupMember& member, internal::ServerCore& server) {
        return checked(make_transport_communicator(
            member, std::make_unique<CountingTransport>(make_rpc_transport(member, server),
                                                        sent[static_cast<size_t>(member.rank)])));
      });
  expect_none(run_tasks(members, [&](Communicator& member) {
    const auto division = std::make_shared<const SumDivision>(replicas_of, member.rank());
    member.use_division(division);
    std::vector<float> parts(division->own_parts().size() * static_cast<size_t>(count), 1);
    member.all_reduce_parts({parts.data(), count, float32}, {.name = "x"});
    EXPECT_EQ(parts[0], static_cast<float>(division->additions().size()));
  }));
  return sent;
}

TEST(SumDivision, SmallSumsTakeOneRound) {
  for (const Sent& one : sent_for({2, 2, 2}, 16)) EXPECT_EQ(one.messages, 2);
  for (const Sent& one : sent_for({3, 3}, 8)) EXPECT_EQ(one.messages, 1);
}

// Whole nodes cost what all_reduce costs: a slice of each to each, and the sums of one to all.
TEST(SumDivision, TravelsInSlices) {
  constexpr int64_t kCount = 300'000;
  constexpr int64_t kSlice = kCount * 4 / 3;
  for (const Sent& one : sent_for({2, 2, 2}, kCount)) {
    EXPECT_NEAR(static_cast<double>(one.bytes), 4 * kSlice, 1000);
  }
  const std::vector<Sent> uneven = sent_for({3, 3, 2}, kCount);
  EXPECT_NEAR(static_cast<double>(uneven[0].bytes), 6 * kSlice, 1000);
  EXPECT_NEAR(static_cast<double>(uneven[2].bytes), 4 * kSlice, 1000);
}

}  // namespace
}  // namespace cohort::collective
