#include "cohort/keras/model/progress_text.h"

#include <algorithm>
#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

std::string two_digits(int64_t value) { return with_zeros(value, 2); }

}  // namespace

std::string log_number(double value) {
  return std::abs(value) > 1e-3 ? fixed_digits(value, 4) : scientific_digits(value, 4);
}

std::string whole_seconds(double seconds) { return fixed_digits(seconds, 0) + 's'; }

std::string time_per(double seconds, const char* unit) {
  if (seconds >= 1 || seconds == 0) return str(' ', whole_seconds(seconds), '/', unit);
  if (seconds >= 1e-3) return str(' ', fixed_digits(seconds * 1e3, 0), "ms/", unit);
  return str(' ', fixed_digits(seconds * 1e6, 0), "us/", unit);
}

std::string time_left(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole > 3600) {
    return str(whole / 3600, ':', two_digits(whole % 3600 / 60), ':', two_digits(whole % 60));
  }
  if (whole > 60) return str(whole / 60, ':', two_digits(whole % 60));
  return str(whole, 's');
}

std::string count_of(int64_t current, int64_t target) {
  if (target < 0) return str(current, "/Unknown");
  const std::string last = decimal_digits(target);
  std::string now = decimal_digits(current);
  if (now.size() < last.size()) now.insert(0, last.size() - now.size(), ' ');
  return str(now, '/', last);
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
