// How the programs that work on command measure a turn.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

namespace bench {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Seconds that step(0), step(1), ... take each: of as many as fill `seconds`, one at least, after
// some that fill a tenth of it for warming up.
inline double time_steps(double seconds, const std::function<void(int64_t)>& step) {
  const auto start = std::chrono::steady_clock::now();
  int64_t index = 0;
  while (index == 0 || seconds_since(start) < seconds / 10) step(index++);
  const double warm = seconds_since(start);
  const int64_t count =
      std::max<int64_t>(1, static_cast<int64_t>(seconds / warm * static_cast<double>(index)));
  for (int64_t i = 0; i < count; ++i) step(index++);
  return (seconds_since(start) - warm) / static_cast<double>(count);
}

// Seconds that a step takes, of what runs many at a time: run(n) says how long n steps took. As
// many as fill `seconds`, after some that fill a tenth of it. `multiple`: of how many steps run(n)
// takes.
inline double time_runs(double seconds, int64_t multiple,
                        const std::function<double(int64_t)>& run) {
  double step = run(multiple) / static_cast<double>(multiple);
  for (const double share : {0.1, 1.0}) {
    const auto runs = static_cast<int64_t>(share * seconds / step) / multiple;
    const int64_t count = std::max<int64_t>(1, runs) * multiple;
    step = run(count) / static_cast<double>(count);
  }
  return step;
}

}  // namespace bench
