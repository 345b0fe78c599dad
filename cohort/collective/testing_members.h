// For tests: calls a function on one thread for each member of a group.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "cohort/collective/thread_group.h"

namespace cohort::collective {

inline constexpr std::chrono::nanoseconds kNoSpin{0};

// Runs one round. Returns what each member threw, null for those that returned.
inline std::vector<std::exception_ptr> run_members(ThreadGroup& group, const RoundOptions& options,
                                                   const std::function<void(int)>& fn) {
  group.begin(options);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(group.size()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        group.enter(rank);
        fn(rank);
        group.leave(rank);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
        group.fail(rank);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Rethrows the first error of the members.
inline void run_all(ThreadGroup& group, const std::function<void(int)>& fn) {
  for (const std::exception_ptr& error : run_members(group, {}, fn)) {
    if (error) std::rethrow_exception(error);
  }
}

template <class Exception>
std::string message_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const Exception& exception) {
    return exception.what();
  } catch (const std::exception& exception) {
    return std::string("another class of error: ") + exception.what();
  }
  return "no error";
}

}  // namespace cohort::collective
