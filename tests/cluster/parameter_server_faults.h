// Tests of the program of parameter_server_counting.h, whose tasks they start and kill.
#pragma once

#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>

#include "parameter_server_counting.h"

namespace cohort::parameter_server_faults {

using detection::repetitions;
using detection::summary;
using detection::time_in;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MultiProcessOptions;
using testing::MultiProcessRunner;
using ::testing::Not;
using testing::TaskOutcome;

inline const TaskId kTheChief{"chief", 0};

class ParameterServerFaults : public ::testing::Test {
 protected:
  ParameterServerFaults() {
    std::string pattern = ::testing::TempDir() + "parameter_server_faults.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~ParameterServerFaults() override { std::filesystem::remove_all(directory_); }

  MultiProcessOptions cluster(int workers, int64_t total) const {
    return {.jobs = {{"chief", 1}, {"worker", workers}, {"ps", 2}},
            .function = "count",
            .arguments = {directory_, std::to_string(total)},
            .deadline = 120s};
  }
  std::string file(const std::string& name) const { return directory_ + "/" + name; }
  void touch(const std::string& name) const { std::ofstream(file(name)).flush(); }
  void remove(const std::string& name) const { std::filesystem::remove(file(name)); }

  static std::string chief_line(MultiProcessRunner& runner, const std::string& regex) {
    return runner.wait_for_line(kTheChief, regex, kPatience);
  }
  static void expect_exact(const std::map<TaskId, std::string>& values, int64_t total) {
    EXPECT_EQ(values.at(kTheChief), std::to_string(total) + " " + std::to_string(total));
  }

  std::string directory_;
};

// Of each of these programs.
inline int run_main(int argc, char** argv, const testing::TaskFunctions& functions) {
  return testing::multi_process_main(argc, argv, functions, [](int count, char** arguments) {
    ::testing::InitGoogleTest(&count, arguments);
    return RUN_ALL_TESTS();
  });
}

}  // namespace cohort::parameter_server_faults
