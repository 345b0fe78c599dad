// How large the parts of a message may be, and what may be a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::internal::membership {

inline constexpr size_t kMostTasks = 16384;
inline constexpr size_t kMostSections = 32;
inline constexpr size_t kMostSectionBytes = 64 << 10;
inline constexpr size_t kMostSpecBytes = 1 << 20;
inline constexpr size_t kMostFigures = 128;
inline constexpr size_t kMostNameBytes = 256;
inline constexpr size_t kMostEvents = 256;
inline constexpr size_t kMostKeyBytes = 1 << 10;
inline constexpr size_t kMostValueBytes = 1 << 20;
inline constexpr size_t kMostListed = 1024;
// Changes of one kind that a task may have under way.
inline constexpr size_t kMostAnswered = 10'000;

// Errors: InvalidArgument (empty, longer than `most` bytes, not UTF-8); the text begins with `what`.
void check_name(std::string_view what, std::string_view name, size_t most);

// "9f3a61...": as texts and tables show incarnations.
std::string hex(uint64_t incarnation);

}  // namespace cohort::internal::membership
