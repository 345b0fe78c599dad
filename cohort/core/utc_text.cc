#include "cohort/core/utc_text.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::seconds;

// Up to the seconds.
std::string start_of(std::chrono::sys_seconds time) {
  const std::chrono::sys_days day = floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const auto two = [](auto number) { return with_zeros(static_cast<int64_t>(number), 2); };
  return str(with_zeros(static_cast<int>(date.year()), 4), '-',
             two(static_cast<unsigned>(date.month())), '-', two(static_cast<unsigned>(date.day())),
             'T', two(clock.hours().count()), ':', two(clock.minutes().count()), ':',
             two(clock.seconds().count()));
}

}  // namespace

std::string utc_text(std::chrono::sys_seconds time) { return start_of(time) + 'Z'; }

std::string utc_text(std::chrono::sys_time<std::chrono::milliseconds> time) {
  const std::chrono::sys_seconds whole = floor<seconds>(time);
  return str(start_of(whole), '.', with_zeros((time - whole).count(), 3), 'Z');
}

}  // namespace cohort::internal
