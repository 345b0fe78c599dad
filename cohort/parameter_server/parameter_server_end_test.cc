// How a coordinator's strategy ends, beside the cluster's servers in this process.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/launch/free_ports.h"
#include "cohort/core/error.h"
#include "cohort/distribute/step/step_runner.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/runner/loop_result.h"

namespace cohort::internal {
namespace {

using distribute::Server;
using namespace std::chrono_literals;

// The program fails as compile() does: its error is the first call's result, which goes with the
// coordinator's process.
TEST(ParameterServerLeading, AFailedCoordinatorStaysUntilTheOthersHaveItsError) {
  const FreePorts ports = pick_free_ports(3);
  const auto address = [&](int i) {
    return std::vector<std::string>{"127.0.0.1:" + std::to_string(ports[i])};
  };
  const train::ClusterSpec spec(
      {{"chief", address(0)}, {"worker", address(1)}, {"ps", address(2)}});
  const auto start = [&](const char* job) {
    return std::make_shared<Server>(
        spec,
        distribute::ServerOptions{.job_name = job, .task_index = 0, .stop_on_signals = false});
  };
  const auto chief = start("chief"), worker = start("worker"), ps = start("ps");
  chief->coordination().wait_for_start();

  std::promise<void> end;
  std::future<bool> others;
  try {
    const auto core = ParameterServerCore::make(
        {.cluster = {.spec = spec, .server = chief}, .devices = {"CPU:0"}});
    others =
        std::async(std::launch::async, [&, ended = end.get_future(), weak = std::weak_ptr(core)] {
          while (!weak.expired()) std::this_thread::yield();  // it is about to end
          const bool stays = ended.wait_for(50ms) == std::future_status::timeout;
          for (const auto& one : {worker, ps}) {
            acknowledge(one->coordination(), one->task(), 1);
          }
          return stays;
        });
    core->make_runner()->fail(std::make_exception_ptr(InvalidArgumentError("no such loss")));
    throw InvalidArgumentError("no such loss");
  } catch (const InvalidArgumentError&) {
    end.set_value();
  }
  EXPECT_TRUE(others.get());
  EXPECT_EQ(last_taken(chief->coordination(), ps->task()), 1);
}

}  // namespace
}  // namespace cohort::internal
