// How large the parts of a message may be, and what may be a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/cluster/membership/settings.h"
#include "cohort/core/bytes/fields.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::membership {

inline constexpr size_t kMostTasks = 16384;
inline constexpr size_t kMostSections = 32;
inline constexpr size_t kMostSectionBytes = 64 << 10;
inline constexpr size_t kMostSpecBytes = 1 << 20;
inline constexpr size_t kMostFigures = 128;
inline constexpr size_t kMostNameBytes = 256;
inline constexpr size_t kMostEvents = 256;
inline constexpr size_t kMostBases = 64;
inline constexpr size_t kMostKeyBytes = 1 << 10;
inline constexpr size_t kMostValueBytes = 1 << 20;
inline constexpr size_t kMostRecordBytes = 8 << 20;
inline constexpr size_t kMostErrorBytes = 8 << 10;
inline constexpr size_t kMostListed = 1024;
// Changes of one kind that a task may have under way.
inline constexpr size_t kMostAnswered = 10'000;

// Errors: InvalidArgument (empty, longer than `most` bytes, not UTF-8); the text begins with
// `what`.
void check_name(std::string_view what, std::string_view name, size_t most);

// Checks of fields (core/bytes/fields.h). Errors: InvalidArgument (longer than `most`, not UTF-8).
struct AtMostText {
  std::string_view what;
  size_t most;
  void operator()(std::string_view text) const;
};
// Errors: ResourceExhausted (longer).
struct AtMostBytes {
  std::string_view what;
  size_t most;
  void operator()(std::string_view bytes) const;
};
// Errors: InvalidArgument (`most` elements are there already).
struct AtMost {
  std::string_view what;
  size_t most;
  void operator()(const RepeatedField auto& container) const { check(container.size()); }

 private:
  void check(size_t size) const;
};
inline constexpr AtMost kFigures{"figures", kMostFigures};
inline constexpr AtMostText kFigureName{"a figure's name", kMostNameBytes};

// A wait that a message asks for: at least 0, at most a year.
Duration bounded(Duration wait);

// Errors: InvalidArgument (a negative index).
void check_index(int index);

// "9f3a61...": as texts and tables show incarnations.
std::string hex(uint64_t incarnation);

}  // namespace cohort::internal::membership

namespace cohort::internal {

void fields(auto& f, TaskId& task) {
  f(1, task.job, membership::AtMostText{"a job's name", membership::kMostNameBytes});
  f(2, task.index, membership::check_index);
}

}  // namespace cohort::internal
