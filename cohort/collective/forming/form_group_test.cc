#include "cohort/collective/forming/form_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <numeric>
#include <ostream>
#include <random>

#include "cohort/collective/network/rpc_envelope.h"
#include "cohort/collective/network/testing_servers.h"
#include "cohort/collective/testing_store_with_hook.h"
#include "cohort/core/error.h"
#include "cohort/core/host/cores.h"
#include "cohort/core/testing_errors.h"
#include "cohort/testing/device/device_memory.h"
#include "cohort/testing/device/fake_nccl.h"

namespace cohort::collective {
namespace {

using distribute::experimental::CommunicationOptions;
using internal::expect_error;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

GroupMember member_of(int rank, int size, const std::shared_ptr<GroupStore>& store,
                      int64_t generation = 0) {
  GroupMember member{.generation = generation,
                     .rank = rank,
                     .store = store,
                     .deadline = std::chrono::steady_clock::now() + seconds(20)};
  for (int i = 0; i < size; ++i) member.tasks.push_back({"worker", i});
  return member;
}

// Two tasks that form groups, each as if it were on a host of its own.
struct TwoTasks {
  TestingServers servers{2};
  std::vector<std::string> hosts{"here", "there"};
  std::vector<int> cores{0, 0};  // of each, in the latest group
  std::shared_ptr<GroupStore> store = make_memory_store();

  std::future<std::shared_ptr<Communicator>> start(GroupMember member,
                                                   const CommunicationOptions& options = {}) {
    return std::async(std::launch::async, [this, member, options] {
      const std::string host = hosts[static_cast<size_t>(member.rank)];
      FormedGroup formed = form_group_at(host, member, servers.core(member.rank), options);
      cores[static_cast<size_t>(member.rank)] = formed.cores;
      return formed.communicator;
    });
  }
  std::vector<std::shared_ptr<Communicator>> form(int64_t generation,
                                                  const std::string& group = "workers") {
    std::vector<std::future<std::shared_ptr<Communicator>>> forming;
    for (int rank = 0; rank < 2; ++rank) {
      GroupMember member = member_of(rank, 2, store, generation);
      member.group = group;
      forming.push_back(start(member));
    }
    std::vector<std::shared_ptr<Communicator>> members;
    for (auto& future : forming) members.push_back(future.get());
    return members;
  }
};

// One all_reduce of each task; its sum.
float sum_of(const std::vector<std::shared_ptr<Communicator>>& members, float first, float second) {
  auto other = std::async(std::launch::async, [&] {
    all_reduce(*members[1], {&second, 1, float32}, {.name = "sum", .timeout = seconds(20)});
  });
  all_reduce(*members[0], {&first, 1, float32}, {.name = "sum", .timeout = seconds(20)});
  other.get();
  EXPECT_EQ(first, second);
  return first;
}

TEST(FormGroup, ATaskThatIsAloneNeedsNobody) {
  TestingServers servers(1);
  const auto alone =
      form_group(member_of(0, 1, make_memory_store(), 3), servers.core(0), {}).communicator;
  EXPECT_EQ(alone->size(), 1);
  EXPECT_EQ(alone->generation(), 3);
  alone->barrier({.name = "alone"});
}

TEST(FormGroup, ServersHoldSeveralGroupsAndGenerations) {
  TwoTasks tasks;
  const auto first = tasks.form(0);
  const auto others = tasks.form(0, "others");
  EXPECT_EQ(sum_of(others, 1, 2), 3);
  EXPECT_EQ(sum_of(first, 10, 20), 30);
  first[0]->abort(std::make_exception_ptr(AbortedError("a task is new")));
  const auto second = tasks.form(1);
  EXPECT_EQ(second[1]->generation(), 1);
  EXPECT_EQ(second[1]->task_name(0), "/job:worker/task:0");
  EXPECT_EQ(sum_of(second, 3, 4), 7);
  EXPECT_EQ(sum_of(others, 5, 6), 11);
  expect_error<AbortedError>([&] { sum_of(first, 1, 1); }, "task:0 has given up: a task is new");
}

TEST(FormGroup, TheSameGenerationFormsOnce) {
  TwoTasks tasks;
  const auto members = tasks.form(4);
  expect_error<AlreadyExistsError>([&] { tasks.start(member_of(0, 2, tasks.store, 4)).get(); },
                                   "already in generation 4 of group 'workers'");
  EXPECT_EQ(sum_of(members, 1, 2), 3);
}

TEST(FormGroup, TasksThatDifferInTheirOptionsAreRefused) {
  TwoTasks tasks;
  auto first = tasks.start(member_of(0, 2, tasks.store), {.bytes_per_pack = 1024});
  auto second = tasks.start(member_of(1, 2, tasks.store), {});
  for (auto* future : {&first, &second}) {
    expect_error<FailedPreconditionError>(
        [&] { future->get(); },
        "/job:worker/task:0 has bytes_per_pack 1024, timeout 0 ms, implementation AUTO; "
        "/job:worker/task:1 has bytes_per_pack 0");
  }
  expect_error<InvalidArgumentError>(
      [&] {
        form_group(member_of(0, 2, tasks.store), tasks.servers.core(0), {.bytes_per_pack = -1});
      },
      "bytes_per_pack is -1");
}

TEST(FormGroup, WhoDoesNotComeIsNamed) {
  TestingServers servers(2);
  GroupMember member = member_of(0, 2, make_memory_store());
  member.deadline = std::chrono::steady_clock::now() + milliseconds(50);
  expect_error<DeadlineExceededError>([&] { form_group(member, servers.core(0), {}); },
                                      "/job:worker/task:1 did not come in time to form");
}

// Where the forming of a group can break off, and the groups in which it does.
struct Break {
  const char* name;
  std::vector<std::string> hosts;  // of each task
  int rank;                        // of the task that fails,
  const char* key;                 // as it reads or writes this in the store
};
void PrintTo(const Break& where, std::ostream* out) { *out << where.name; }

class FormGroupBreaks : public ::testing::TestWithParam<Break> {
 protected:
  // All tasks begin to form a group that has long to do so. `at_break` is called where the test
  // says.
  void start(
      const std::function<void()>& at_break, const std::function<void()>& check = [] {}) {
    const Break& where = GetParam();
    const auto size = static_cast<int>(where.hosts.size());
    const auto at_key = [=](const std::string& key) {
      if (key.find(where.key) != std::string::npos) at_break();
    };
    for (int rank = 0; rank < size; ++rank) {
      GroupMember member = member_of(rank, size, store_);
      member.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(10);
      member.check = check;
      if (rank == where.rank) {
        member.store = std::make_shared<StoreWithHook>(store_, at_key);
        member.check = [] {};
      }
      tasks_.push_back(std::async(std::launch::async, [this, member, &where] {
        return form_group_at(where.hosts[static_cast<size_t>(member.rank)], member,
                             servers_.core(member.rank), {})
            .communicator;
      }));
    }
  }
  template <class E>
  void expect_others_get(const char* text) {
    for (size_t rank = 0; rank < tasks_.size(); ++rank) {
      if (static_cast<int>(rank) == GetParam().rank) continue;
      ASSERT_EQ(tasks_[rank].wait_for(seconds(10)), std::future_status::ready) << "task " << rank;
      // Whose host is there may have its communicator already.
      expect_error<E>(
          [&] { tasks_[rank].get()->barrier({.name = "first", .timeout = seconds(10)}); }, text);
    }
  }

  TestingServers servers_{static_cast<int>(GetParam().hosts.size())};
  const std::shared_ptr<GroupStore> store_ = make_memory_store();
  std::vector<std::future<std::shared_ptr<Communicator>>> tasks_;
};

TEST_P(FormGroupBreaks, ATaskThatFailsTellsTheOthersWhy) {
  start([] { throw ResourceExhaustedError("no more descriptors"); });
  expect_others_get<ResourceExhaustedError>("has given up: no more descriptors");
}

TEST_P(FormGroupBreaks, WhoIsLostIsNotWaitedFor) {
  std::promise<void> stands_still, goes_on;
  const std::shared_future<void> woken = goes_on.get_future().share();
  std::atomic<bool> is_lost = false;
  start(
      [&, woken] {
        is_lost = true;
        woken.wait();
        throw AbortedError("it was taken for lost");
      },
      [&] {
        if (is_lost) throw UnavailableError("lost the one that stands still");
      });
  expect_others_get<UnavailableError>("lost the one that stands still");
  goes_on.set_value();
}

INSTANTIATE_TEST_SUITE_P(
    All, FormGroupBreaks,
    ::testing::Values(
        Break{"BeforeItsIntroduction", {"here", "there"}, 1, "/introduction/1"},
        Break{"BeforeItsSession", {"here", "there"}, 1, "/rpc/1"},
        Break{"BeforeItInvitesToShareMemory", {"here", "here", "here"}, 0, "/shared_memory/0"},
        Break{"BeforeItJoinsThem", {"here", "here", "here"}, 2, "/shared_memory/0"},
        Break{"OnItsHost", {"here", "here", "there", "there"}, 0, "host 0/0/shared_memory"},
        Break{"AmongLeaders", {"here", "here", "there"}, 2, "hosts/0/rpc/1"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(FormGroup, WhoComesToAGroupThatHasFailedLearnsWhy) {
  TwoTasks tasks;
  GroupMember first = member_of(0, 2, tasks.store);
  first.deadline = std::chrono::steady_clock::now() + milliseconds(50);
  expect_error<DeadlineExceededError>([&] { tasks.start(first).get(); }, "task:1 did not come");
  auto second = tasks.start(member_of(1, 2, tasks.store));
  expect_error<DeadlineExceededError>(
      [&] { second.get(); }, "/job:worker/task:0 has given up: /job:worker/task:1 did not");
}

TEST(FormGroup, TheOptionsTimeoutLimitsEveryCall) {
  TwoTasks tasks;
  const CommunicationOptions options{.timeout = milliseconds(40)};
  auto first = tasks.start(member_of(0, 2, tasks.store), options);
  auto second = tasks.start(member_of(1, 2, tasks.store), options);
  const auto member = first.get();
  const auto other = second.get();
  expect_error<DeadlineExceededError>([&] { member->barrier({.name = "alone"}); },
                                      "barrier 'alone' waited 0.04 s for /job:worker/task:1");
}

TEST(FormGroup, ATaskWhoseServerEndsIsLostToThoseWhoWait) {
  TwoTasks tasks;
  const auto members = tasks.form(0);
  auto waits = std::async(std::launch::async, [&] { members[0]->barrier({.name = "wait"}); });
  tasks.servers.end(1);
  ASSERT_EQ(waits.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_ANY_THROW(waits.get());
}

TEST(FormGroup, ATaskThatLeavesInGoodOrderIsNamedByWhoNeedsIt) {
  TwoTasks tasks;
  auto members = tasks.form(0);
  EXPECT_EQ(sum_of(members, 1, 2), 3);
  members[1].reset();
  expect_error<UnavailableError>([&] { members[0]->barrier({.name = "more"}); },
                                 "/job:worker/task:1 has left group 'workers'");
}

TEST(FormGroup, ATrustedNetworkIsDeclaredByAllOrNone) {
  TwoTasks tasks;
  const CommunicationOptions trusted{.trusted_network = true};
  auto first = tasks.start(member_of(0, 2, tasks.store), trusted);
  auto second = tasks.start(member_of(1, 2, tasks.store), trusted);
  EXPECT_EQ(sum_of({first.get(), second.get()}, 1, 2), 3);
  first = tasks.start(member_of(0, 2, tasks.store, 1), trusted);
  second = tasks.start(member_of(1, 2, tasks.store, 1), {});
  for (auto* future : {&first, &second}) {
    expect_error<FailedPreconditionError>([&] { future->get(); },
                                          "implementation AUTO, trusted network; /job:worker");
  }
}

TEST(FormGroup, NcclWithoutGpusWarnsAndWorks) {
  TwoTasks tasks;
  const CommunicationOptions options{
      .implementation = distribute::experimental::CommunicationImplementation::NCCL};
  ::testing::internal::CaptureStderr();
  auto first = tasks.start(member_of(0, 2, tasks.store), options);
  auto second = tasks.start(member_of(1, 2, tasks.store), options);
  const auto group = {first.get(), second.get()};
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("NCCL needs GPUs, and this task has none: RING is used"));
  EXPECT_EQ(sum_of(group, 1, 2), 3);
}

TEST(FormGroup, NcclServesGpusBesideTheHostsMemory) {
  cohort::testing::use_fake_nccl();
  TwoTasks tasks;
  const CommunicationOptions options{
      .implementation = distribute::experimental::CommunicationImplementation::NCCL};
  const auto member = [&](int rank) {
    GroupMember one = member_of(rank, 2, tasks.store);
    one.gpu = c10::Device(cohort::testing::kSimulated, static_cast<c10::DeviceIndex>(rank));
    return one;
  };
  auto first = tasks.start(member(0), options);
  auto second = tasks.start(member(1), options);
  const auto group = {first.get(), second.get()};
  for (const auto& communicator : group) {
    EXPECT_TRUE(communicator->works_on({cohort::testing::kSimulated, 0}));
  }
  EXPECT_EQ(sum_of(group, 1, 2), 3);
}

TEST(FormGroup, TasksOfOneHostShareMemory) {
  TwoTasks tasks;
  tasks.hosts = {"here", "here"};
  ::testing::internal::CaptureStderr();
  const auto members = tasks.form(0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("all on one host; values are exchanged in shared memory"));
  EXPECT_EQ(sum_of(members, 1, 2), 3);
}

TEST(FormGroup, TasksOfOneHostDivideItsCores) {
  const cpu_set_t usable = internal::own_cores();
  const int all = CPU_COUNT(&usable);
  TwoTasks tasks;
  tasks.form(0);
  EXPECT_THAT(tasks.cores, ::testing::ElementsAre(all, all));
  tasks.hosts = {"here", "here"};
  tasks.form(1);
  EXPECT_THAT(tasks.cores, ::testing::Each(std::max(1, all / 2)));
}

// Four tasks on two hosts, whose ranks do not follow each other: every call.
TEST(FormGroup, SeveralTasksOnEachOfSeveralHosts) {
  TestingServers servers(4);
  const auto store = make_memory_store();
  const std::vector<int64_t> counts{1, 2, 0, 3};
  const auto work = [&](int rank) {
    const auto group = form_group_at(rank % 2 == 0 ? "even" : "odd", member_of(rank, 4, store),
                                     servers.core(rank), {})
                           .communicator;
    // Host by host: (1e8 - 1e8) + (1 + 1).
    std::vector<float> values(100'000, std::vector<float>{1e8f, 1, -1e8f, 1}[rank]);
    const Buffer buffer{values.data(), static_cast<int64_t>(values.size()), float32};
    all_reduce(*group, buffer, {.name = "sum"});
    EXPECT_EQ(std::count(values.begin(), values.end(), 2.0f), 100'000);

    std::vector<int32_t> parts(6, -1);
    const auto begin = std::accumulate(counts.begin(), counts.begin() + rank, int64_t{0});
    std::fill_n(parts.begin() + begin, counts[static_cast<size_t>(rank)], rank);
    all_gather(*group, {parts.data(), 6, int32}, counts, {.name = "parts"});
    EXPECT_THAT(parts, ::testing::ElementsAre(0, 1, 1, 3, 3, 3));
    for (int root = 0; root < 4; ++root) {
      std::vector<int32_t> value{rank * 10};
      broadcast(*group, {value.data(), 1, int32}, root, {.name = "hand out"});
      EXPECT_EQ(value[0], root * 10);
    }
    const auto end = [&] {  // the error may overtake the end of the first barrier
      group->barrier({.name = "end"});
      if (rank == 3) group->abort(std::make_exception_ptr(DataLossError("its file is damaged")));
      group->barrier({.name = "more"});
    };
    expect_error<DataLossError>(end, "its file is damaged");
  };
  std::vector<std::future<void>> tasks;
  for (int rank = 0; rank < 4; ++rank) {
    tasks.push_back(std::async(std::launch::async, work, rank));
  }
  for (auto& task : tasks) task.get();
}

// What another task may try at a group's server.
class Stranger : public ::testing::Test {
 protected:
  void expect_refused(const std::string& method, const std::string& control, const char* text) {
    try {
      channel()->call(method, {.control = control}, {.timeout = seconds(20)});
      FAIL() << "was not refused";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }
  std::shared_ptr<internal::rpc::Channel> channel() {
    return tasks_.servers.core(1).channel({"worker", 0});
  }

  TwoTasks tasks_;
  std::vector<std::shared_ptr<Communicator>> members_ = tasks_.form(7);
};

TEST_F(Stranger, OtherGroupsGenerationsSessionsAndRanksAreRefused) {
  for (const char* method : {"collective/put", "collective/watch"}) {
    const auto control = [](const RpcEnvelope& envelope) { return envelope.encode(); };
    expect_refused(method, control({.group = "workers", .generation = 6, .rank = 1}),
                   "not in generation 6 of group 'workers'; it is in 7");
    expect_refused(method, control({.group = "nobody", .generation = 7, .rank = 1}),
                   "not in generation 7 of group 'nobody'");
    expect_refused(method, control({.group = "workers", .generation = 7, .rank = 0}),
                   "/job:worker/task:1 cannot speak for rank 0");
    expect_refused(method, control({.group = "workers", .generation = 7, .rank = 9}),
                   "cannot speak for rank 9");
    expect_refused(method, control({.group = "workers", .generation = 7, .rank = 1}),
                   "another session");
  }
  EXPECT_EQ(sum_of(members_, 1, 2), 3);  // nothing of this has reached the group
}

TEST_F(Stranger, RandomBytesAreRefused) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    expect_refused(i % 2 == 0 ? "collective/put" : "collective/watch", bytes, "");
  }
  EXPECT_EQ(sum_of(members_, 1, 2), 3);
}

TEST_F(Stranger, OnlyTasksThatTrainMaySend) {
  internal::ChannelPool pool(std::make_shared<internal::rpc::Identity>(TaskId{"evaluator", 0}, 1),
                             internal::security::Security::load({}, std::nullopt),
                             internal::rpc::quick_settings());
  const auto evaluator = pool.channel({"worker", 0}, tasks_.servers[0].address());
  expect_error<PermissionDeniedError>(
      [&] { evaluator->call("collective/put", {.control = ""}, {.timeout = seconds(20)}); },
      "its role is evaluator");
}

}  // namespace
}  // namespace cohort::collective
