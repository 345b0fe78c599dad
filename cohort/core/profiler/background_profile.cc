#include "cohort/core/profiler/background_profile.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/profiler/session.h"

namespace cohort::internal {

using profiler::Phase;

std::optional<uint64_t> start_background_profile() {
  return begin_session({}, SessionKind::kBackground);
}

std::optional<profiler::Profile> stop_background_profile(uint64_t session) {
  return end_session(SessionKind::kBackground, session);
}

std::string time_shares(const profiler::Profile& profile) {
  int computing = 0;
  for (const auto& thread : profile.threads) computing += thread.of(Phase::kCompute).count() > 0;
  if (computing == 0 || profile.steps == 0 || profile.wall.count() <= 0) return "";
  std::vector<std::pair<double, const char*>> shares;
  double rest = 1;
  for (size_t p = 0; p < profiler::kNumPhases; ++p) {
    const auto phase = static_cast<Phase>(p);
    double time = 0;
    for (const auto& thread : profile.threads) {
      // Threads that compute wait for threads that read, so input counts on every thread, other
      // phases only on threads that compute.
      if (phase == Phase::kInput || thread.of(Phase::kCompute).count() > 0) {
        time += static_cast<double>(thread.of(phase).count());
      }
    }
    const double share =
        time / static_cast<double>(profile.wall.count()) / (phase == Phase::kInput ? 1 : computing);
    shares.emplace_back(share, phase == Phase::kReduce ? "exchange" : profiler::phase_name(phase));
    rest -= share;
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  shares.emplace_back(std::max(rest, 0.0), "other");
  std::string text;
  for (const auto& [share, name] : shares) {
    text += str(text.empty() ? "" : ", ", std::lround(100 * share), "% ", name);
  }
  return text;
}

}  // namespace cohort::internal
