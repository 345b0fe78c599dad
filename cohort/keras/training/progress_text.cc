#include "cohort/keras/training/progress_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace cohort::internal {
namespace {

template <class... Values>
std::string formatted(const char* pattern, Values... values) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, values...);
  return text;
}

}  // namespace

std::string log_number(double value) {
  return std::abs(value) > 1e-3 ? formatted("%.4f", value) : formatted("%.4e", value);
}

std::string time_per(double seconds, const char* unit) {
  if (seconds >= 1 || seconds == 0) return formatted(" %.0fs/%s", seconds, unit);
  if (seconds >= 1e-3) return formatted(" %.0fms/%s", seconds * 1e3, unit);
  return formatted(" %.0fus/%s", seconds * 1e6, unit);
}

std::string time_left(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(seconds));
  if (whole > 3600) {
    return formatted("%lld:%02lld:%02lld", whole / 3600, whole % 3600 / 60, whole % 60);
  }
  if (whole > 60) return formatted("%lld:%02lld", whole / 60, whole % 60);
  return formatted("%llds", whole);
}

std::string count_of(int64_t current, int64_t target) {
  if (target < 0) return formatted("%lld/Unknown", static_cast<long long>(current));
  const std::string last = std::to_string(target);
  return formatted("%*lld/%s", static_cast<int>(last.size()), static_cast<long long>(current),
                   last.c_str());
}

std::string bar_of(int64_t current, int64_t target) {
  constexpr int64_t kWidth = 30;
  if (target <= 0) return "";
  const int64_t done = std::min(kWidth, kWidth * current / target);
  std::string bar(static_cast<size_t>(kWidth), '.');
  std::fill_n(bar.begin(), done, '=');
  if (done < kWidth && done > 0) bar[static_cast<size_t>(done - 1)] = '>';
  return "[" + bar + "]";
}

}  // namespace cohort::internal
