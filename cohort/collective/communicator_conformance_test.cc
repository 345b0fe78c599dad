// What every backend must do; one suite over all of them, bare and checked.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "cohort/collective/checked_communicator.h"
#include "cohort/collective/hierarchical_communicator.h"
#include "cohort/collective/in_process_communicator.h"
#include "cohort/collective/network/gloo_transport.h"
#include "cohort/collective/network/rpc_transport.h"
#include "cohort/collective/network/testing_servers.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/collective/shared_memory/shared_memory_communicator.h"
#include "cohort/collective/sync_group.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/collective/testing_group.h"
#include "cohort/collective/testing_members.h"
#include "cohort/collective/testing_socket_communicator.h"

namespace cohort::collective {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Communicators = std::vector<std::shared_ptr<Communicator>>;

struct Backend {
  const char* name;
  Communicators (*make)(int size, int64_t generation);
  bool is_checked;
};

Communicators checked_all(Communicators members) {
  for (auto& member : members) member = checked(member);
  return members;
}

Communicators make_shared_memory_group(int size, int64_t generation) {
  return make_group(size, generation, make_shared_memory_communicator);
}

Communicators make_rpc_communicators(int size, int64_t generation) {
  return make_server_group(
      size, generation, [](const GroupMember& member, internal::ServerCore& server) {
        return make_transport_communicator(member, make_rpc_transport(member, server));
      });
}

Communicators make_gloo_communicators(int size, int64_t generation) {
  return make_server_group(
      size, generation, [](const GroupMember& member, internal::ServerCore& server) {
        return make_transport_communicator(
            member, make_gloo_transport(member, "127.0.0.1", make_rpc_transport(member, server)));
      });
}

// Two tasks on each host.
Communicators make_hierarchical_communicators(int size, int64_t generation) {
  HostRanks hosts(static_cast<size_t>((size + 1) / 2));
  for (int rank = 0; rank < size; ++rank) hosts[static_cast<size_t>(rank / 2)].push_back(rank);
  return make_server_group(
      size, generation, [&](const GroupMember& member, internal::ServerCore& server) {
        const auto between = [&](const GroupMember& leaders) {
          return make_transport_communicator(leaders, make_rpc_transport(leaders, server));
        };
        return make_hierarchical_communicator(member, hosts, make_shared_memory_communicator,
                                              between);
      });
}

const Backend kBackends[] = {
    {"InProcess", make_in_process_communicators, false},
    {"InProcessChecked",
     [](int size, int64_t generation) {
       return checked_all(make_in_process_communicators(size, generation));
     },
     true},
    {"Sockets", make_socket_communicators, false},
    {"SocketsChecked",
     [](int size, int64_t generation) {
       return checked_all(make_socket_communicators(size, generation));
     },
     true},
    {"SharedMemory", make_shared_memory_group, false},
    {"SharedMemoryChecked",
     [](int size, int64_t generation) {
       return checked_all(make_shared_memory_group(size, generation));
     },
     true},
    {"Rpc", make_rpc_communicators, false},
    {"Gloo", make_gloo_communicators, false},
    {"GlooChecked",
     [](int size, int64_t generation) {
       return checked_all(make_gloo_communicators(size, generation));
     },
     true},
    {"Hierarchy", make_hierarchical_communicators, false},
    {"HierarchyChecked",
     [](int size, int64_t generation) {
       return checked_all(make_hierarchical_communicators(size, generation));
     },
     true},
    {"RpcChecked",
     [](int size, int64_t generation) {
       return checked_all(make_rpc_communicators(size, generation));
     },
     true},
};

// Calls fn on a thread for each task; what each threw.
std::vector<std::exception_ptr> run_tasks(const Communicators& members,
                                          const std::function<void(Communicator&)>& fn) {
  std::vector<std::exception_ptr> errors(members.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        fn(*members[rank]);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void expect_none(const std::vector<std::exception_ptr>& errors) {
  for (const auto& error : errors) EXPECT_EQ(message_of<Error>(error), "no error");
}

template <class T>
Buffer buffer_over(std::vector<T>& values, DType dtype) {
  return {values.data(), static_cast<int64_t>(values.size()), dtype};
}

class CommunicatorConformance : public ::testing::TestWithParam<Backend> {
 protected:
  static Communicators make(int size, int64_t generation = 0) {
    return GetParam().make(size, generation);
  }
};

TEST_P(CommunicatorConformance, KnowsItsPlace) {
  const Communicators members = make(3, 7);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(members[static_cast<size_t>(rank)]->rank(), rank);
    EXPECT_EQ(members[static_cast<size_t>(rank)]->size(), 3);
    EXPECT_EQ(members[static_cast<size_t>(rank)]->generation(), 7);
  }
}

TEST_P(CommunicatorConformance, AllReduceAddsUpInTheOrderOfRanks) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{100'000}}) {
    // (1e8 + 1) - 1e8 is 0 in float32, in another order 1.
    expect_none(run_tasks(make(3), [&](Communicator& member) {
      const float each[] = {1e8f, 1.0f, -1e8f};
      std::vector<float> values(count, each[member.rank()]);
      all_reduce(member, buffer_over(values, float32), {.name = "sum"});
      for (const float value : values) ASSERT_EQ(value, (1e8f + 1.0f) - 1e8f);
    }));
  }
}

TEST_P(CommunicatorConformance, LargeValuesFromEitherMemory) {
  constexpr size_t kCount = 1'600'017;  // parts of 3 MB
  expect_none(run_tasks(make(2), [&](Communicator& member) {
    std::vector<float> mine(kCount);
    Buffer own = member.buffer(static_cast<int64_t>(kCount * sizeof(float)));
    own.count = static_cast<int64_t>(kCount);
    own.dtype = float32;
    for (const Buffer& buffer : {buffer_over(mine, float32), own}) {
      auto* values = static_cast<float*>(buffer.data);
      for (int round = 1; round <= 2; ++round) {
        std::iota(values, values + kCount, static_cast<float>(member.rank() * round));
        all_reduce(member, buffer, {.name = "large"});
        int64_t wrong = 0;
        for (size_t i = 0; i < kCount; ++i) wrong += values[i] != static_cast<float>(2 * i + round);
        ASSERT_EQ(wrong, 0);
      }
      values[kCount - 1] = static_cast<float>(member.rank());
      broadcast(member, buffer, 1, {.name = "hand out"});
      ASSERT_EQ(values[kCount - 1], 1.0f);
    }
  }));
}

TEST_P(CommunicatorConformance, AllReduceOfIntegersAndDoubles) {
  expect_none(run_tasks(make(2), [](Communicator& member) {
    std::vector<int64_t> longs{member.rank() + 1, int64_t{1} << 40};
    all_reduce(member, buffer_over(longs, int64), {.name = "longs"});
    EXPECT_THAT(longs, ElementsAre(3, int64_t{1} << 41));
    std::vector<double> doubles{0.1, 0.5};
    all_reduce(member, buffer_over(doubles, float64), {.name = "doubles"});
    EXPECT_THAT(doubles, ElementsAre(0.2, 1.0));
  }));
}

TEST_P(CommunicatorConformance, ATaskBringsOneBufferForEachLocalReplica) {
  expect_none(run_tasks(make(2), [](Communicator& member) {
    std::vector<float> first{1, 2}, second{10, 20};
    const Buffer both[] = {buffer_over(first, float32), buffer_over(second, float32)};
    member.all_reduce(both, {.name = "both"})->wait(Deadline::max());
    EXPECT_THAT(first, ElementsAre(22, 44));
    EXPECT_THAT(second, ElementsAre(22, 44));
    second = {7, static_cast<float>(member.rank())};
    first = {static_cast<float>(member.rank()), 8};
    member.broadcast(both, 1, {.name = "hand out"})->wait(Deadline::max());
    EXPECT_THAT(first, ElementsAre(1, 8));
    EXPECT_THAT(second, ElementsAre(1, 8));
  }));
}

TEST_P(CommunicatorConformance, ScatterAndGatherOfUnequalParts) {
  const std::vector<int64_t> counts{1, 0, 3};
  expect_none(run_tasks(make(3), [&](Communicator& member) {
    std::vector<int32_t> values{1, 2, 3, 4};
    for (int32_t& value : values) value *= member.rank() + 1;
    member.reduce_scatter(std::vector<Buffer>{buffer_over(values, int32)}, counts, {.name = "rs"})
        ->wait(Deadline::max());
    if (member.rank() == 0) {
      EXPECT_EQ(values[0], 6);
    }
    if (member.rank() == 2) {
      EXPECT_THAT(std::vector(values.begin() + 1, values.end()), ElementsAre(12, 18, 24));
    }
    all_gather(member, buffer_over(values, int32), counts, {.name = "ag"});
    EXPECT_THAT(values, ElementsAre(6, 12, 18, 24));
  }));
}

TEST_P(CommunicatorConformance, ItsOwnMemoryWorksLikeAnyOther) {
  expect_none(run_tasks(make(2), [](Communicator& member) {
    Buffer own = member.buffer(64);
    own.dtype = float32;
    own.count = 16;
    std::fill_n(static_cast<float*>(own.data), 16, 1.5f);
    all_reduce(member, own, {.name = "own"});
    EXPECT_EQ(static_cast<float*>(own.data)[15], 3.0f);
  }));
}

TEST_P(CommunicatorConformance, NobodyPassesABarrierAlone) {
  std::atomic<int> before{0};
  expect_none(run_tasks(make(4), [&](Communicator& member) {
    for (int i = 1; i <= 10; ++i) {
      ++before;
      member.barrier({.name = "round"});
      EXPECT_GE(before.load(), 4 * i);
      member.barrier({.name = "checked"});
    }
  }));
}

TEST_P(CommunicatorConformance, ATaskThatDoesNotComeIsNamedAtTheDeadline) {
  const Communicators members = make(2);
  const auto errors = run_tasks(members, [&](Communicator& member) {
    if (member.rank() == 1) return;
    std::vector<float> values{1};
    all_reduce(member, buffer_over(values, float32),
               {.name = "losses", .timeout = milliseconds(30)});
  });
  EXPECT_THAT(message_of<DeadlineExceededError>(errors[0]), HasSubstr(members[0]->task_name(1)));
  // No further call gets through, on either side.
  const auto later = run_tasks(members, [](Communicator& member) {
    member.barrier({.name = "later", .timeout = milliseconds(500)});
  });
  for (const auto& error : later) EXPECT_NE(error, nullptr);
}

TEST_P(CommunicatorConformance, AbortWakesThoseWhoWaitAndSaysWhy) {
  const Communicators members = make(3);
  const auto errors = run_tasks(members, [&](Communicator& member) {
    if (member.rank() == 2) {
      return member.abort(std::make_exception_ptr(ResourceExhaustedError("its disk is full")));
    }
    member.barrier({.name = "wait"});
  });
  EXPECT_EQ(errors[2], nullptr);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(message_of<ResourceExhaustedError>(errors[static_cast<size_t>(rank)]),
                HasSubstr(members[0]->task_name(2) + " has given up: its disk is full"));
  }
  EXPECT_THAT(message_of<ResourceExhaustedError>(run_tasks(
                  members, [](Communicator& member) { member.barrier({.name = "later"}); })[1]),
              HasSubstr("its disk is full"));
}

TEST_P(CommunicatorConformance, OtherCallsAreRefusedOnAllTasksAndTheGroupGoesOn) {
  if (!GetParam().is_checked) return;  // what CheckedCommunicator is for
  const Communicators members = make(2);
  std::vector<float> floats[2] = {{1, 2}, {1, 2}};
  std::vector<double> doubles{1, 2};
  const auto expect_refused = [&](const std::function<void(Communicator&)>& fn, const char* first,
                                  const char* second) {
    const auto errors = run_tasks(members, fn);
    for (const auto& error : errors) {
      EXPECT_THAT(message_of<FailedPreconditionError>(error), HasSubstr(first));
      EXPECT_THAT(message_of<FailedPreconditionError>(error), HasSubstr(second));
    }
  };
  expect_refused(
      [&](Communicator& member) {
        all_reduce(member, buffer_over(floats[member.rank()], float32),
                   {.name = member.rank() == 0 ? "losses" : "accuracy"});
      },
      "'losses'", "'accuracy'");
  expect_refused(
      [&](Communicator& member) {
        if (member.rank() == 0) return member.barrier({.name = "x"});
        all_reduce(member, buffer_over(floats[1], float32), {.name = "x"});
      },
      "barrier 'x'", "all_reduce 'x' of 2 float32");
  expect_refused(
      [&](Communicator& member) {
        if (member.rank() == 0) {
          return all_reduce(member, buffer_over(doubles, float64), {.name = "x"});
        }
        all_reduce(member, buffer_over(floats[1], float32), {.name = "x"});
      },
      "2 float64", "2 float32");
  expect_refused(
      [&](Communicator& member) {
        all_reduce(member, buffer_over(floats[member.rank()], float32),
                   {.name = "x", .signature = member.rank() == 0 ? "[1, 2]" : "[2, 1]"});
      },
      "[1, 2]", "[2, 1]");
  EXPECT_THAT(floats[0], ElementsAre(1, 2));  // nothing has moved
  expect_none(run_tasks(members, [&](Communicator& member) {
    all_reduce(member, buffer_over(floats[member.rank()], float32), {.name = "x"});
  }));
  EXPECT_THAT(floats[1], ElementsAre(2, 4));
}

TEST_P(CommunicatorConformance, AnotherGenerationIsRefused) {
  if (!GetParam().is_checked) return;
  class Later final : public Communicator {  // a task that missed the forming of the group
   public:
    explicit Later(std::shared_ptr<Communicator> backend) : backend_(std::move(backend)) {}
    int rank() const override { return backend_->rank(); }
    int size() const override { return backend_->size(); }
    int64_t generation() const override { return backend_->generation() + 1; }
    bool compares_fingerprints() const override { return backend_->compares_fingerprints(); }
    Buffer buffer(int64_t bytes) override { return backend_->buffer(bytes); }
    std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                     const CallOptions& options) override {
      return backend_->all_reduce(buffers, options);
    }
    std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                         std::span<const int64_t> counts,
                                         const CallOptions& options) override {
      return backend_->reduce_scatter(buffers, counts, options);
    }
    std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers,
                                     std::span<const int64_t> counts,
                                     const CallOptions& options) override {
      return backend_->all_gather(buffers, counts, options);
    }
    std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                    const CallOptions& options) override {
      return backend_->broadcast(buffers, root, options);
    }
    void barrier(const CallOptions& options) override { backend_->barrier(options); }
    void abort(const std::exception_ptr& reason) noexcept override { backend_->abort(reason); }

   private:
    std::shared_ptr<Communicator> backend_;
  };
  Communicators members = make_in_process_communicators(2, 4);
  members[1] = std::make_shared<Later>(members[1]);
  for (const auto& error : run_tasks(checked_all(members),
                                     [](Communicator& member) { member.barrier({.name = "x"}); })) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error),
                HasSubstr("task 0 is in generation 4 of the group, task 1 in 5"));
  }
}

TEST_P(CommunicatorConformance, GroupsKnowAllReplicas) {
  expect_none(run_tasks(make(2), [](Communicator& member) {
    // The group does not own the test's member.
    const std::shared_ptr<Communicator> borrowed(&member, [](Communicator*) {});
    SyncGroup group(member.rank() == 0 ? 2 : 1, std::chrono::nanoseconds(0), borrowed);
    const GroupView& view = *group.view();
    EXPECT_EQ(view.num_replicas(), 3);
    EXPECT_EQ(view.first_replica(), member.rank() == 0 ? 0 : 2);

    std::vector<Tensor> mine;
    for (int i = 0; i < view.num_local_replicas(); ++i) {
      mine.push_back(at::full({view.first_replica() + i + 1}, view.first_replica() + i, int64));
    }
    const std::vector<Tensor> all = all_replicas_values(group, mine, "rows");
    ASSERT_EQ(all.size(), 3u);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(all[static_cast<size_t>(i)].numel(), i + 1);
      EXPECT_EQ(all[static_cast<size_t>(i)][0].item<int64_t>(), i);
    }
    const Tensor from_first = at::full({2}, member.rank() + 5.0);
    take_from_first_task(group, from_first, "weights");
    EXPECT_EQ(from_first[1].item<double>(), 5.0);
    EXPECT_THAT(all_tasks_values(group, member.rank() * 10, "status"), ElementsAre(0, 10));
  }));
}

// ---- Values of every dtype and size.

// What task `rank` brings at `index`: small, so that integers do not overflow, and with fractions.
double value_of(DType dtype, int rank, int64_t index) {
  const auto whole = static_cast<double>((index * 7 + rank * 3) % 11);
  return c10::isFloatingType(dtype) ? whole - 5 + 0.37 * (rank + 1) : whole;
}

template <class T>
void expect_sums(Communicator& member, DType dtype, const Buffer& buffer) {
  auto* values = static_cast<T*>(buffer.data);
  for (int64_t i = 0; i < buffer.count; ++i) {
    values[i] = static_cast<T>(value_of(dtype, member.rank(), i));
  }
  all_reduce(member, buffer, {.name = "sums"});
  // Rounded once: what a short float loses, it loses at the end.
  const double rounding =
      c10::isFloatingType(dtype) ? static_cast<double>(std::numeric_limits<T>::epsilon()) / 2 : 0;
  int64_t num_wrong = 0;
  for (int64_t i = 0; i < buffer.count; ++i) {
    double sum = 0, magnitude = 0;
    for (int rank = 0; rank < member.size(); ++rank) {
      const auto brought = static_cast<double>(static_cast<T>(value_of(dtype, rank, i)));
      sum += brought;
      magnitude += std::abs(brought);
    }
    // Sums of floats are rounded at each step, those of short floats in float32.
    const double in_between = magnitude * member.size() *
                              (dtype == float64             ? 1.2e-16
                               : c10::isFloatingType(dtype) ? 6e-8
                                                            : 0);
    const double difference = std::abs(static_cast<double>(values[i]) - sum);
    if (difference > std::abs(sum) * rounding + in_between) ++num_wrong;
  }
  EXPECT_EQ(num_wrong, 0) << buffer.count << ' ' << internal::dtype_name(dtype);
}

void expect_sums_of(Communicator& member, DType dtype, const Buffer& buffer) {
  switch (dtype) {
    case DType::Byte:
      return expect_sums<uint8_t>(member, dtype, buffer);
    case DType::Char:
      return expect_sums<int8_t>(member, dtype, buffer);
    case DType::Short:
      return expect_sums<int16_t>(member, dtype, buffer);
    case DType::Int:
      return expect_sums<int32_t>(member, dtype, buffer);
    case DType::Long:
      return expect_sums<int64_t>(member, dtype, buffer);
    case DType::Half:
      return expect_sums<at::Half>(member, dtype, buffer);
    case DType::BFloat16:
      return expect_sums<at::BFloat16>(member, dtype, buffer);
    case DType::Float:
      return expect_sums<float>(member, dtype, buffer);
    default:
      return expect_sums<double>(member, dtype, buffer);
  }
}

constexpr DType kSummable[] = {DType::Byte,     DType::Char,  DType::Short,
                               DType::Int,      DType::Long,  DType::Half,
                               DType::BFloat16, DType::Float, DType::Double};

TEST_P(CommunicatorConformance, SumsOfEveryDtypeAndSizeInOwnAndOtherMemory) {
  constexpr int64_t kMost = 40'000;
  for (const int size : {2, 3, 8}) {
    expect_none(run_tasks(make(size), [&](Communicator& member) {
      const Buffer own = member.buffer(kMost * 8);
      std::vector<int64_t> other(kMost);
      int calls = 0;
      for (const DType dtype : kSummable) {
        for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{5000}, kMost}) {
          // In turn none of the tasks uses own memory, all do, some do.
          if (size > 3 && count == kMost) continue;
          const bool in_own = calls % 3 == 0 ? false : calls % 3 == 1 || member.rank() % 2 == 0;
          expect_sums_of(member, dtype, {in_own ? own.data : other.data(), count, dtype});
          ++calls;
        }
      }
    }));
  }
}

TEST_P(CommunicatorConformance, Sums64Megabytes) {
  if (GetParam().is_checked) return;  // the check does not see the values
  constexpr int64_t kCount = 16 << 20;
  expect_none(run_tasks(make(2), [&](Communicator& member) {
    for (const bool in_own : {true, false}) {
      Tensor memory = in_own ? Tensor() : at::zeros({kCount});
      Buffer buffer =
          in_own ? member.buffer(kCount * 4) : Buffer{memory.data_ptr(), kCount * 4, uint8};
      buffer = {buffer.data, kCount, float32};
      auto* values = static_cast<float*>(buffer.data);
      const auto mine = static_cast<float>(member.rank() + 1);
      for (int64_t i = 0; i < kCount; i += 4099) values[i] = mine * static_cast<float>(i % 977);
      values[kCount - 1] = mine;
      all_reduce(member, buffer, {.name = "large"});
      int64_t num_wrong = values[kCount - 1] == 3 ? 0 : 1;
      for (int64_t i = 0; i < kCount; i += 4099) {
        if (values[i] != 3 * static_cast<float>(i % 977)) ++num_wrong;
      }
      EXPECT_EQ(num_wrong, 0);
    }
  }));
}

TEST_P(CommunicatorConformance, PartsOfManyPiecesAndNone) {
  for (const int size : {2, 4, 8}) {
    std::vector<int64_t> counts(static_cast<size_t>(size), 70'001);
    counts[1] = 0;
    counts.back() = 200'000;
    const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    for (const bool in_own : {true, false}) {
      expect_none(run_tasks(make(size), [&](Communicator& member) {
        std::vector<float> other(static_cast<size_t>(total));
        float* values = in_own ? static_cast<float*>(member.buffer(total * 4).data) : other.data();
        for (int64_t i = 0; i < total; ++i)
          values[i] = static_cast<float>(i % 1013 + member.rank());
        const Buffer buffer{values, total, float32};
        member.reduce_scatter({&buffer, 1}, counts, {.name = "rs"})->wait(Deadline::max());
        all_gather(member, buffer, counts, {.name = "ag"});
        int64_t num_wrong = 0;
        for (int64_t i = 0; i < total; ++i) {
          const int64_t sum = size * (i % 1013) + size * (size - 1) / 2;
          if (values[i] != static_cast<float>(sum)) ++num_wrong;
        }
        EXPECT_EQ(num_wrong, 0);
        if (member.rank() == size - 1) std::iota(values, values + total, 0.0f);
        broadcast(member, buffer, size - 1, {.name = "bc"});
        EXPECT_EQ(values[total / 2], static_cast<float>(total / 2));
        EXPECT_EQ(values[total - 1], static_cast<float>(total - 1));
      }));
    }
  }
}

TEST_P(CommunicatorConformance, FastAndSlowTasksWithSeveralCallsInFlight) {
  constexpr int kTasks = 4, kRounds = 40;
  const int64_t sizes[] = {1, 3000, 90'000};
  expect_none(run_tasks(make(kTasks), [&](Communicator& member) {
    for (int round = 0; round < kRounds; ++round) {
      // Each is behind in turn.
      for (int i = 0; round % kTasks == member.rank() && i < 1000; ++i) std::this_thread::yield();
      std::vector<std::vector<int32_t>> values;
      std::vector<std::unique_ptr<Work>> works;
      for (const int64_t count : sizes) {
        const int32_t mine = round * 10 + member.rank();
        const Buffer buffer =
            buffer_over(values.emplace_back(static_cast<size_t>(count + round), mine), int32);
        works.push_back(member.all_reduce({&buffer, 1}, {.name = "in flight"}));
      }
      for (const auto& work : works) work->wait(Deadline::max());
      for (const auto& sums : values) {
        const int32_t expected = kTasks * round * 10 + kTasks * (kTasks - 1) / 2;
        EXPECT_EQ(std::count(sums.begin(), sums.end(), expected),
                  static_cast<int64_t>(sums.size()));
      }
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorConformance, ::testing::ValuesIn(kBackends),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cohort::collective
