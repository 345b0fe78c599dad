// What a task tells its runner through the pipe that it inherits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/error.h"

namespace cohort::internal {

// How the runner calls a task: program kTaskFlag FUNCTION ARGUMENT...
inline constexpr std::string_view kTaskFlag = "--cohort_run_task";
// The descriptor of the pipe in the task.
inline constexpr int kReportFd = 3;

// A function's result (code kOk, text is what it returned) or its exception.
struct TaskReport {
  Code code = Code::kOk;
  std::string text;
};

// Format: code (1 byte), length of the text (8 bytes, the machine's order), text.
std::string encode(const TaskReport& report);
// nullopt: the task ended before it had written all of it.
std::optional<TaskReport> decode_report(std::string_view bytes);

}  // namespace cohort::internal
