// What every backend must do; one suite over all of them, bare and checked.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "cohort/collective/checked_communicator.h"
#include "cohort/collective/in_process_communicator.h"
#include "cohort/collective/network/rpc_transport.h"
#include "cohort/collective/network/testing_servers.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/collective/sync_group.h"
#include "cohort/collective/task_collectives.h"
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

Communicators make_rpc_communicators(int size, int64_t generation) {
  return make_server_group(
      size, generation, [](const GroupMember& member, internal::ServerCore& server) {
        return make_transport_communicator(member, make_rpc_transport(member, server));
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
    {"Rpc", make_rpc_communicators, false},
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

INSTANTIATE_TEST_SUITE_P(All, CommunicatorConformance, ::testing::ValuesIn(kBackends),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cohort::collective
