// Functions of a pipeline act for the task that reads it, on whatever thread they run.
#include "cohort/core/program/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "cohort/core/structure/device.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

// The device that each call of a map names, one after another.
std::vector<std::string> devices_named(const Dataset& dataset) {
  std::vector<std::string> names;
  DatasetIterator it = dataset.iterator();
  while (const auto element = it.next()) names.emplace_back(element->strings().item());
  return names;
}

TEST(PipelineTask, TwoTasksOfOneProcessNameTheirOwnDevices) {
  const auto name = [](int64_t) { return StringTensor::scalar(canonicalize("CPU:0")); };
  const Dataset pipelines[] = {
      Dataset::range(20).map(name).prefetch(2),
      Dataset::range(20).map(name, {.num_parallel_calls = 3}).prefetch(2),
      Dataset::range(4).interleave([&](int64_t) { return Dataset::range(5).map(name); },
                                   {.cycle_length = 2, .num_parallel_calls = 2}),
  };
  for (const Dataset& pipeline : pipelines) {
    std::vector<std::string> names[2];
    const auto read_as = [&](int index) {
      const internal::ScopedTask as_worker(internal::Task::named("worker", index));
      names[index] = devices_named(pipeline);
    };
    std::thread other([&] { read_as(1); });
    read_as(0);
    other.join();
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(names[i], SizeIs(20));
      EXPECT_THAT(names[i],
                  Each("/job:worker/replica:0/task:" + std::to_string(i) + "/device:CPU:0"));
    }
  }
}

}  // namespace
}  // namespace cohort::data
