// For tests: forms a group of tasks that are threads of one process, through a backend that
// connects processes.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "cohort/collective/communicator.h"
#include "cohort/collective/group_member.h"

namespace cohort::collective {

using MakeMember = std::function<std::shared_ptr<Communicator>(const GroupMember&)>;

// Returns one communicator per task; rethrows the first error of a task.
inline std::vector<std::shared_ptr<Communicator>> make_group(int size, int64_t generation,
                                                             const MakeMember& make) {
  GroupMember any{.generation = generation,
                  .store = make_memory_store(),
                  .deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30)};
  for (int rank = 0; rank < size; ++rank) any.tasks.push_back({"worker", rank});
  std::vector<std::shared_ptr<Communicator>> communicators(any.tasks.size());
  std::vector<std::exception_ptr> errors(any.tasks.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < any.tasks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      GroupMember member = any;
      member.rank = static_cast<int>(rank);
      try {
        communicators[rank] = make(member);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return communicators;
}

}  // namespace cohort::collective
