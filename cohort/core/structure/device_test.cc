#include "cohort/core/structure/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/program/task.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using internal::torch_device;

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override { internal::reset_devices_for_testing(); }
  void TearDown() override { internal::reset_devices_for_testing(); }
};

TEST_F(DeviceTest, CanonicalNamesOfALocalProgram) {
  EXPECT_EQ(canonicalize("/cpu:0"), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(canonicalize(""), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(canonicalize("GPU:3"), "/job:localhost/replica:0/task:0/device:GPU:3");
  EXPECT_EQ(canonicalize("/job:worker/cpu:0"), "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(canonicalize("/job:worker/task:1/cpu:0"), "/job:worker/replica:0/task:1/device:CPU:0");
}

TEST_F(DeviceTest, CanonicalNamesInACluster) {
  const internal::ScopedTask as_worker(internal::Task::named("worker", 2));
  EXPECT_EQ(canonicalize("/cpu:0"), "/job:worker/replica:0/task:2/device:CPU:0");
  EXPECT_EQ(canonicalize("/job:ps/task:1"), "/job:ps/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(config::list_logical_devices().front().name,
            "/job:worker/replica:0/task:2/device:CPU:0");
}

TEST_F(DeviceTest, ExplicitPartsBeatDefaultsBeatBuiltIns) {
  EXPECT_EQ(canonicalize("/task:1", "/job:worker/task:5/gpu:2"),
            "/job:worker/replica:0/task:1/device:GPU:2");
  EXPECT_THAT([&] { (void)(canonicalize("cpu:0", "/jb:worker")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'jb:worker'")));
}

TEST_F(DeviceTest, NamesWithoutJobAndTaskHoldOnEveryTask) {
  EXPECT_EQ(canonicalize_without_job_and_task("/job:worker/task:1/gpu:2"), "/device:GPU:2");
  EXPECT_EQ(canonicalize_without_job_and_task(""), "/device:CPU:0");
}

TEST_F(DeviceTest, TheMachineHasOneCpu) {
  const auto devices = config::list_physical_devices("CPU");
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "/physical_device:CPU:0");
  EXPECT_EQ(devices[0].device_type, "CPU");
  EXPECT_TRUE(config::list_physical_devices("TPU").empty());
}

TEST_F(DeviceTest, EachPhysicalDeviceIsOneLogicalDeviceByDefault) {
  const auto logical = config::list_logical_devices();
  const auto physical = config::list_physical_devices();
  ASSERT_EQ(logical.size(), physical.size());
  EXPECT_EQ(logical[0].name, "/job:localhost/replica:0/task:0/device:CPU:0");
  for (size_t i = 0; i < logical.size(); ++i) {
    EXPECT_EQ(logical[i].device_type, physical[i].device_type);
  }
}

TEST_F(DeviceTest, DevicesPrintThemselvesAsInTheGuide) {
  EXPECT_EQ(internal::str(config::list_physical_devices("CPU")[0]),
            "PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')");
  EXPECT_EQ(internal::str(config::list_logical_devices("CPU")[0]),
            "LogicalDevice(name='/device:CPU:0', device_type='CPU')");
  const internal::ScopedTask as_worker(internal::Task::named("worker", 2));
  EXPECT_EQ(internal::str(config::list_logical_devices("CPU")[0]),
            "LogicalDevice(name='/job:worker/replica:0/task:2/device:CPU:0', device_type='CPU')");
}

TEST_F(DeviceTest, TheCpuCanBeSplit) {
  config::set_logical_device_configuration("cpu", 3);
  const auto devices = config::list_logical_devices("CPU");
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[2].name, "/job:localhost/replica:0/task:0/device:CPU:2");
  EXPECT_EQ(torch_device("cpu:2"), c10::Device(c10::kCPU));
  EXPECT_EQ(config::list_physical_devices("CPU").size(), 1u);
}

TEST_F(DeviceTest, AConfigurationInUseCannotBeChanged) {
  config::set_logical_device_configuration("CPU", 2);
  torch_device("CPU:1");
  EXPECT_THAT([&] { (void)(config::set_logical_device_configuration("CPU", 4)); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("before the first strategy")));
  EXPECT_EQ(config::list_logical_devices("CPU").size(), 2u);
  config::set_logical_device_configuration("CPU", 2);  // what already is
}

TEST_F(DeviceTest, NamingDevicesDoesNotFixTheConfiguration) {
  canonicalize("CPU:5");
  config::list_physical_devices();
  config::set_logical_device_configuration("CPU", 2);
  EXPECT_EQ(config::list_logical_devices("CPU").size(), 2u);
}

TEST_F(DeviceTest, RefusesWrongConfigurations) {
  EXPECT_THAT([&] { (void)(config::set_logical_device_configuration("CPU", 0)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("0")));
  EXPECT_THAT([&] { (void)(config::set_logical_device_configuration("TPU", 2)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'TPU'")));
}

TEST_F(DeviceTest, RefusesDevicesThatDoNotExist) {
  config::set_logical_device_configuration("CPU", 2);
  EXPECT_THAT([&] { (void)(torch_device("CPU:2")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("/task:0/device:CPU:2")));
  EXPECT_THAT([&] { (void)(torch_device("CPU:2")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("/task:0/device:CPU:1")));
  EXPECT_THAT([&] { (void)(torch_device("GPU:1000")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("device:GPU:1000")));
  EXPECT_THAT([&] { (void)(torch_device("/device:TPU:0")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("device:TPU:0")));
  EXPECT_THAT([&] { (void)(torch_device("/replica:1")); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("/replica:1")));
}

TEST_F(DeviceTest, SaysWhatCanBeDoneAboutAMissingDevice) {
  const auto advice = [](const char* name) {
    try {
      torch_device(name);
    } catch (const InvalidArgumentError& error) {
      return std::string(error.what());
    }
    return std::string("found");
  };
  EXPECT_THAT(advice("CPU:9"), HasSubstr("set_logical_device_configuration(\"CPU\", n), called"));
  EXPECT_THAT(advice("TPU:0"), HasSubstr("it is none of job, replica, task, device, cpu, gpu"));
  EXPECT_THAT(advice("/device:TPU:0"), HasSubstr("devices are of type CPU or GPU"));
  EXPECT_THAT(advice("cuda:1"), HasSubstr("libtorch's cuda devices are called GPU here: 'GPU:1'"));
  EXPECT_THAT(advice("cuda"), HasSubstr("are called GPU here: 'GPU'"));
  if (!config::list_physical_devices("GPU").empty()) return;
  for (const char* name : {"GPU:0", "/gpu:0", "/device:GPU:1", "gpu"}) {
    EXPECT_THAT(advice(name), AllOf(HasSubstr("libtorch sees no GPU on this machine"),
                                    Not(HasSubstr("set_logical_device_configuration"))));
  }
  EXPECT_THAT([&] { config::set_logical_device_configuration("GPU", 2); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("libtorch sees no GPU")));
}

TEST_F(DeviceTest, RefusesDevicesOfAnotherTask) {
  const internal::ScopedTask as_worker(internal::Task::named("worker", 1));
  EXPECT_EQ(torch_device("/job:worker/task:1/cpu:0"), c10::Device(c10::kCPU));
  EXPECT_THAT([&] { (void)(torch_device("/job:worker/task:0/cpu:0")); },
              ThrowsMessage<UnimplementedError>(HasSubstr("/task:0")));
  EXPECT_THAT([&] { (void)(torch_device("/job:ps/cpu:0")); },
              ThrowsMessage<UnimplementedError>(HasSubstr("/job:ps")));
}

// On a machine without GPUs this loop is over nothing; with them it holds the split to account.
TEST_F(DeviceTest, GpusAreSplitInOrder) {
  const auto physical = config::list_physical_devices("GPU");
  if (!physical.empty()) config::set_logical_device_configuration("GPU", 2);
  const auto logical = config::list_logical_devices("GPU");
  ASSERT_EQ(logical.size(), 2 * physical.size());
  for (size_t i = 0; i < logical.size(); ++i) {
    EXPECT_EQ(torch_device(logical[i].name),
              c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(i / 2)));
  }
}

}  // namespace
}  // namespace cohort
