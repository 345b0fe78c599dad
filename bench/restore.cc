// What it takes to go on in the middle of a pipeline: restoring a state at position 900,000 of
// 1,000,000, and its bytes.
//
//   bench_restore      a line a pipeline; the median of 9 restores into new iterators
#include <cohort/cohort.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace tf = cohort;

namespace {

using tf::data::Dataset;

constexpr int64_t kSize = 1'000'000, kPosition = 900'000;
constexpr int kTimes = 9;

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void measure(const std::string& name, const Dataset& dataset) {
  auto iterator = dataset.iterator();
  for (int64_t i = 0; i < kPosition; ++i) iterator.get_next();
  const std::string state = iterator.state().serialize();
  const std::string expected = tf::internal::str(iterator.get_next());
  std::vector<double> times;
  for (int i = 0; i < kTimes; ++i) {
    auto restored = dataset.iterator();
    const auto start = std::chrono::steady_clock::now();
    restored.restore(tf::data::IteratorState::parse(state));
    times.push_back(milliseconds_since(start));
    if (tf::internal::str(restored.get_next()) != expected) {
      std::fprintf(stderr, "%s: another element follows\n", name.c_str());
      std::exit(1);
    }
  }
  const double first = times.front();
  std::sort(times.begin(), times.end());
  std::printf("%-58s %9.3f %9.3f %9zu\n", name.c_str(), times[kTimes / 2], first, state.size());
  std::fflush(stdout);
}

}  // namespace

int main() {
  tf::logging::set_level(tf::logging::Level::kWarning);
  tf::random::set_seed(1);
  const Dataset range = Dataset::range(kSize);
  const auto twice = [](int64_t x) { return 2 * x; };
  const auto keep = [](int64_t) { return true; };
  const auto random = [](tf::random::RandomGenerator& generator, int64_t x) {
    return tf::Structure(static_cast<int64_t>(generator.next_u64() % 1000) + x);
  };
  const Dataset files = Dataset::range(100).interleave(
      [](int64_t file) { return Dataset::range(file * kSize / 100, (file + 1) * kSize / 100); },
      {.cycle_length = 8, .block_length = 16});
  std::printf("%-58s %9s %9s %9s\n", "pipeline", "ms", "first", "bytes");
  measure("range.map", range.map(twice));
  measure("range.shuffle(1,000,000)", range.shuffle(kSize));
  measure("range.shuffle(500,000)", range.shuffle(500'000));
  measure("range.map.shuffle(10,000)", range.map(twice).shuffle(10'000));
  measure("range.filter.shuffle(10,000)", range.filter(keep).shuffle(10'000));
  measure("range.filter.map.shuffle(10,000)", range.filter(keep).map(twice).shuffle(10'000));
  measure("interleave of 100, shuffle(1,000), map with random numbers",
          files.shuffle(1'000).map(random));
  return 0;
}
