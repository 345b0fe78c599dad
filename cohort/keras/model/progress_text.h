// Keras' way to write numbers and times of training.
#pragma once

#include <cstdint>
#include <string>

namespace cohort::internal {

// "0.4423"; "4.4230e-04" for what is small.
std::string log_number(double value);
// "4s".
std::string whole_seconds(double seconds);
// " 28ms/step", " 2s/epoch", " 512us/step".
std::string time_per(double seconds, const char* unit);
// "3s", "1:02", "1:01:05".
std::string time_left(double seconds);
// " 5/20": as wide as the last will be; "5/Unknown" if target is below 0.
std::string count_of(int64_t current, int64_t target);
// "[=====>........]"; full at the end.
std::string bar_of(int64_t current, int64_t target);

}  // namespace cohort::internal
