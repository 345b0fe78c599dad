// The session in which threads record their phases; there is one at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "cohort/core/profiler/profile.h"

namespace cohort::internal {

enum class SessionKind {
  kProgram,     // begun by the program
  kBackground,  // by the library itself: gives way to a program's
};

// The number of the session that begins now; nothing if one runs that does not give way.
// Thread safety of both: as profiler::start.
std::optional<uint64_t> begin_session(const profiler::ProfilerOptions& options, SessionKind kind);
// What was measured; nothing if no session of this kind runs, or another one than `number`.
std::optional<profiler::Profile> end_session(SessionKind kind,
                                             std::optional<uint64_t> number = std::nullopt);

}  // namespace cohort::internal
