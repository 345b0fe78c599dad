// A profile in the file that TensorBoard's page of profiles reads: an XSpace, as
// tsl/profiler/protobuf/xplane.proto has it, in HOST.xplane.pb.
//
//   XSpace         plane = 1, hostname = 4
//   XPlane         id = 1, name = 2, line = 3, event_metadata = 4 {key = 1, value = 2}
//   XLine          id = 1, name = 2, timestamp_ns = 3, event = 4
//   XEvent         metadata_id = 1, offset_ps = 2, duration_ps = 3
//   XEventMetadata id = 1, name = 2
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "cohort/core/profiler/profile.h"

namespace cohort::internal {

// The profile was traced. A thread is a line; its phases and their parts are events. begin: when
// the profile began.
std::string encode_xspace(const profiler::Profile& profile, std::string_view host,
                          std::chrono::sys_time<std::chrono::nanoseconds> begin);

// Writes it to `path`, of this host. now: the wall clock's seconds since 1970, at which the profile
// ended. Errors: as FileSystem.
void write_xspace(const profiler::Profile& profile, const std::string& path, double now);

}  // namespace cohort::internal
