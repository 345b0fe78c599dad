#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(DeviceSpecTest, ReadsAFullName) {
  const DeviceSpec spec = DeviceSpec::parse("/job:worker/replica:2/task:13/device:GPU:1");
  EXPECT_EQ(spec,
            (DeviceSpec{.job = "worker", .replica = 2, .task = 13, .type = "GPU", .index = 1}));
}

TEST(DeviceSpecTest, ReadsShortForms) {
  const DeviceSpec cpu0{.type = "CPU", .index = 0};
  EXPECT_EQ(DeviceSpec::parse("cpu:0"), cpu0);
  EXPECT_EQ(DeviceSpec::parse("/cpu:0"), cpu0);
  EXPECT_EQ(DeviceSpec::parse("/device:cpu:0"), cpu0);
  EXPECT_EQ(DeviceSpec::parse("device:CPU:0"), cpu0);
  EXPECT_EQ(DeviceSpec::parse("GPU"), (DeviceSpec{.type = "GPU"}));
  EXPECT_EQ(DeviceSpec::parse("/job:worker/cpu:0"),
            (DeviceSpec{.job = "worker", .type = "CPU", .index = 0}));
  EXPECT_EQ(DeviceSpec::parse(""), DeviceSpec{});
}

TEST(DeviceSpecTest, AStarLeavesAPartOpen) {
  EXPECT_EQ(DeviceSpec::parse("/task:*/device:GPU:*"), (DeviceSpec{.type = "GPU"}));
}

TEST(DeviceSpecTest, WritesWhatItReads) {
  for (const char* name :
       {"/job:ps/replica:0/task:1/device:CPU:0", "/job:ps", "/task:3", "/device:GPU:*", ""}) {
    EXPECT_EQ(DeviceSpec::parse(name).to_string(), name);
  }
}

TEST(DeviceSpecTest, MergesPartByPart) {
  const DeviceSpec spec = DeviceSpec::parse("/task:1/gpu:*");
  const DeviceSpec merged = spec.merged_over(DeviceSpec::parse("/job:ps/task:5/cpu:2"));
  EXPECT_EQ(merged.to_string(), "/job:ps/task:1/device:GPU:2");
}

TEST(DeviceSpecTest, NamesThePartThatCannotBeRead) {
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/job:worker/tsk:1")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'tsk:1'")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/device:CPU:x")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'x'")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/device:CPU:")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'device:CPU:'")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/cpu:-1")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'-1'")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/cpu:1x")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'1x'")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/cpu:99999999999")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'99999999999'")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/device:")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'device:'")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/job:")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'job:'")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/job:a b")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'job:a b'")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/job:a/job:b")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("twice")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/cpu:0/gpu:0")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("twice")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'/'")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/job:a//cpu:0")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("''")));
  EXPECT_THAT([&] { (void)(DeviceSpec::parse("/job:a/")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'/job:a/'")));
}

}  // namespace
}  // namespace cohort
