// For tests: a suite that runs over every backend. Its tests lie in
// communicator_conformance_test.cc (what calls do), communicator_values_test.cc (dtypes, sizes,
// several calls at once, memory) and communicator_checks_test.cc (tasks that do not agree).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "cohort/collective/testing_backends.h"
#include "cohort/collective/testing_members.h"

namespace cohort::collective {

// Calls fn on a thread for each task; what each threw.
inline std::vector<std::exception_ptr> run_tasks(const Communicators& members,
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

inline void expect_none(const std::vector<std::exception_ptr>& errors) {
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

}  // namespace cohort::collective
