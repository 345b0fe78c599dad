// What only this backend promises; what all promise is in testing_conformance.h.
#include "cohort/collective/shared_memory/shared_memory_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/collective/shared_memory/connection.h"
#include "cohort/collective/shared_memory/local_socket.h"
#include "cohort/collective/testing_group.h"
#include "cohort/collective/testing_members.h"

namespace cohort::collective {
namespace {

using shared_memory::Hello;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Communicators = std::vector<std::shared_ptr<Communicator>>;

Communicators make_members(int size) {
  return make_group(size, 0, make_shared_memory_communicator);
}

// Calls fn on a thread for each; what each threw.
template <class Members, class Fn>
std::vector<std::exception_ptr> on_threads(Members& members, const Fn& fn) {
  std::vector<std::exception_ptr> errors(members.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        fn(members[rank]);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

GroupMember member_of(int size, int rank, std::shared_ptr<GroupStore> store,
                      milliseconds patience) {
  GroupMember member{.rank = rank,
                     .store = std::move(store),
                     .deadline = std::chrono::steady_clock::now() + patience};
  for (int i = 0; i < size; ++i) member.tasks.push_back({"worker", i});
  return member;
}

std::exception_ptr error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

TEST(SharedMemoryCommunicator, ATaskThatLeavesIsLostToThoseWhoWait) {
  Communicators members = make_members(3);
  const auto errors = on_threads(members, [](std::shared_ptr<Communicator>& member) {
    if (member->rank() == 1) return member.reset();
    member->barrier({.name = "step 7"});
  });
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    EXPECT_THAT(message_of<UnavailableError>(errors[rank]),
                AllOf(HasSubstr("/job:worker/task:1 has left the group"), HasSubstr("'step 7'")));
    EXPECT_EQ(internal::rpc::detail_of(errors[rank]).peer, "/job:worker/task:1");
  }
}

TEST(SharedMemoryCommunicator, OtherSizesAreRefusedOnAllTasksAndTheGroupGoesOn) {
  Communicators members = make_members(3);
  std::vector<std::vector<float>> values(3, std::vector<float>(50'000, 1));
  // One call is small enough to need a single barrier, the other is not.
  const auto errors = on_threads(members, [&](std::shared_ptr<Communicator>& member) {
    const int64_t count = member->rank() == 2 ? 100 : 50'000;
    const Buffer buffer{values[static_cast<size_t>(member->rank())].data(), count, float32};
    all_reduce(*member, buffer, {.name = "x"});
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<InvalidArgumentError>(error),
                AllOf(HasSubstr("task:0 calls all_reduce of 50000 float32"),
                      HasSubstr("task:2 all_reduce of 100 float32")));
  }
  for (const auto& error : on_threads(members, [&](std::shared_ptr<Communicator>& member) {
         auto& mine = values[static_cast<size_t>(member->rank())];
         all_reduce(*member, {mine.data(), 50'000, float32}, {.name = "x"});
         EXPECT_EQ(std::count(mine.begin(), mine.end(), 3.0f), 50'000);
       })) {
    EXPECT_EQ(message_of<Error>(error), "no error");
  }
}

TEST(SharedMemoryCommunicator, WhoDoesNotComeIsNamedToThoseWhoCame) {
  const auto store = make_memory_store();
  std::vector<int> ranks{0, 2};
  const auto errors = on_threads(ranks, [&](int rank) {
    make_shared_memory_communicator(member_of(4, rank, store, milliseconds(300)));
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<DeadlineExceededError>(error),
                HasSubstr("/job:worker/task:1, /job:worker/task:3 did not come"));
  }
}

TEST(SharedMemoryCommunicator, Task0IsNamedWhereItDoesNotCome) {
  EXPECT_THAT(
      message_of<DeadlineExceededError>(error_of([] {
        make_shared_memory_communicator(member_of(2, 1, make_memory_store(), milliseconds(50)));
      })),
      HasSubstr("/job:worker/task:0 did not come"));
}

TEST(SharedMemoryCommunicator, WhatADeadTask0HasLeftLeadsToTheNext) {
  const auto store = make_memory_store();
  const GroupMember first = member_of(2, 0, store, seconds(20));
  store->set(first.key("shared_memory", 0), "cohort-gone " + std::string(64, '0'));
  std::vector<int> ranks{1, 0};
  for (const auto& error : on_threads(ranks, [&](int rank) {
         make_shared_memory_communicator(member_of(2, rank, store, seconds(20)));
       })) {
    EXPECT_EQ(message_of<Error>(error), "no error");
  }
}

// Connects to the group's socket and says this.
internal::UniqueFd intrude(GroupStore& store, const GroupMember& member, const Hello& hello,
                           size_t bytes) {
  const std::string invitation = store.get(member.key("shared_memory", 0), member.deadline);
  auto fd = shared_memory::connect_to(invitation.substr(0, invitation.find(' ')));
  EXPECT_TRUE(fd.has_value());
  FormingWait wait(member);
  shared_memory::send_all(fd->get(), {reinterpret_cast<const char*>(&hello), bytes}, {}, wait);
  return std::move(*fd);
}

TEST(SharedMemoryCommunicator, StrangersAreDroppedAndDoNoHarm) {
  const auto store = make_memory_store();
  std::vector<std::exception_ptr> errors;
  std::thread group([&] {
    std::vector<int> ranks{0, 1};
    errors = on_threads(ranks, [&](int rank) {
      const GroupMember member = member_of(2, rank, store, seconds(20));
      if (rank == 1) store->get("strangers came", member.deadline);
      const auto communicator = make_shared_memory_communicator(member);
      communicator->barrier({.name = "formed"});
    });
  });
  const GroupMember member = member_of(2, 1, store, seconds(20));
  std::vector<internal::UniqueFd> strangers;
  Hello wrong{.rank = 1};
  strangers.push_back(intrude(*store, member, wrong, sizeof wrong));  // another secret
  strangers.push_back(intrude(*store, member, wrong, 3));             // breaks off
  strangers.push_back(intrude(*store, member, wrong, 0));             // says nothing
  intrude(*store, member, wrong, 0);                                  // goes at once
  // The one with the wrong secret is shown out.
  std::vector<internal::UniqueFd> none;
  char answer = 0;
  FormingWait wait(member);
  EXPECT_EQ(shared_memory::receive_all(strangers[0].get(), {&answer, 1}, none, wait),
            shared_memory::Received::kClosed);
  store->set("strangers came", "");
  group.join();
  for (const auto& error : errors) EXPECT_EQ(message_of<Error>(error), "no error");
}

TEST(SharedMemoryCommunicator, ABufferThatCannotBeIsRefused) {
  Communicators members = make_members(2);
  EXPECT_THAT(message_of<InvalidArgumentError>(error_of([&] { members[0]->buffer(-1); })),
              HasSubstr("-1 bytes"));
  EXPECT_THAT(
      message_of<ResourceExhaustedError>(error_of([&] { members[0]->buffer(int64_t{1} << 50); })),
      HasSubstr("1125899906842624 more were asked for"));
}

size_t count_lines(const char* path, const char* word) {
  std::ifstream file(path);
  std::string line;
  size_t count = 0;
  while (std::getline(file, line)) count += line.find(word) != std::string::npos;
  return count;
}

size_t count_descriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(descriptors), end(descriptors)));
}

TEST(SharedMemoryCommunicator, FiftyGroupsLeaveNoDescriptorAndNoMemory) {
  const size_t descriptors = count_descriptors();
  for (int i = 0; i < 50; ++i) {
    Communicators members = make_members(3);
    const auto errors = on_threads(members, [&](std::shared_ptr<Communicator>& member) {
      Buffer own = member->buffer(100'000);
      all_reduce(*member, {own.data, 25'000, float32}, {.name = "own"});
      if (i % 3 == 1 && member->rank() == 0) throw AbortedError("leaves");
      if (i % 3 == 2) member->abort(std::make_exception_ptr(AbortedError("gives up")));
    });
    EXPECT_EQ(errors[1], nullptr);
  }
  const auto store = make_memory_store();
  EXPECT_NE(
      error_of([&] { make_shared_memory_communicator(member_of(2, 0, store, milliseconds(1))); }),
      nullptr);
  EXPECT_EQ(count_descriptors(), descriptors);
  EXPECT_EQ(count_lines("/proc/self/maps", "memfd:cohort"), 0u);
}

}  // namespace
}  // namespace cohort::collective
