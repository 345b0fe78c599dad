// For tests of missed read deadlines.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/data/iteration/input_deadline.h"
#include "cohort/data/testing_device.h"

namespace cohort::data {

// What the calls of next() come to, but for missed deadlines, after which perhaps another iterator
// goes on.
enum class After { kNextCall, kRestart };
inline std::vector<std::string> outcomes_across(const Dataset& dataset, After after) {
  auto iterator = dataset.iterator();
  std::vector<std::string> all;
  for (int missed = 0; missed < 10;) {
    try {
      const auto element = iterator.next();
      if (!element) break;
      all.push_back(internal::str(*element));
    } catch (const internal::InputDeadlineExceeded&) {
      ++missed;
      if (after == After::kNextCall) continue;
      const std::string state = iterator.state().serialize();
      iterator = dataset.iterator();
      iterator.restore(IteratorState::parse(state));
    } catch (const Error& error) {
      all.emplace_back(error.what());
    }
  }
  return all;
}

struct SlowDeviceTest : testing::Test {
  // How often the device will not answer in time.
  std::atomic<int> timeouts_ = 0;
  // Gives 0 to 9.
  const Dataset device_ = slow_device(10, 6, &timeouts_);
};

}  // namespace cohort::data
