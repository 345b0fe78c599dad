// What `cohort cluster status` says of a training with parameter servers, one of whose workers is
// killed.
#include <regex>

#include "parameter_server_faults.h"
#include "testing_status.h"

namespace cohort::parameter_server_faults {
namespace {

// Steps of an optimizer, until there is a file "end".
std::string train(const Arguments& arguments) {
  const std::string& directory = arguments[0];
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  auto scope = strategy.scope();
  const Variable table(zeros({1000}), {.name = "table"});
  const Variable bias(zeros({10}), {.name = "bias"});
  const keras::optimizers::SGD optimizer({.learning_rate = 0.1});
  optimizer.build({table, bias});
  scope.close();
  const int task = resolver.task_id().value_or(0);
  const auto step = strategy.function("step", [&] {
    strategy.run([&] {
      hold(directory + "/hold_worker_" + std::to_string(task), "holds a closure");
      GradientTape tape;
      const Tensor loss = reduce_sum(table.value()) + reduce_sum(bias.value());
      optimizer.minimize(loss, {table, bias}, tape);
    });
  });
  if (resolver.task_type() != "chief") {
    return std::to_string(Server(resolver, quick()).join());
  }
  const ClusterCoordinator coordinator(strategy, {.worker_pause = 100ms});
  std::printf("trains\n");
  std::fflush(stdout);
  while (!std::filesystem::exists(directory + "/end")) {
    for (int i = 0; i < 50; ++i) coordinator.schedule(step);
    coordinator.join(60s);
  }
  return "trained";
}

class ParameterServerStatus : public ParameterServerFaults {
 protected:
  // What is said of the task, once all of the expressions are found in it.
  static std::string shown(MultiProcessRunner& runner, const std::string& task,
                           const std::vector<std::string>& expressions) {
    const double until = now_ms() + 60'000;
    std::string status, line;
    do {
      status = status_of(runner.address(kTheChief));
      line = line_of(status, task);
      const bool has_all =
          std::all_of(expressions.begin(), expressions.end(),
                      [&](const auto& one) { return std::regex_search(line, std::regex(one)); });
      if (has_all) return line;
      std::this_thread::sleep_for(20ms);
    } while (now_ms() < until);
    ADD_FAILURE() << task << " lacks one of " << ::testing::PrintToString(expressions) << " in\n"
                  << status;
    return line;
  }
};

const std::string kSome = " [1-9]\\S*(,|$)";  // a number that is not 0
const std::string kNumber = " [0-9]\\S*(,|$)";

TEST_F(ParameterServerStatus, ShowsWhatEachTaskDoes) {
  MultiProcessOptions options = cluster(2, 0);
  options.function = "train";
  MultiProcessRunner runner(options);
  runner.start();
  chief_line(runner, "trains");
  shown(runner, "/job:chief/task:0",
        {"closures queued" + kNumber, "closures in flight" + kNumber, "closures done" + kSome,
         "closures retried 0,", "closures/s" + kSome, "worker 0 done" + kSome,
         "worker 1 done" + kSome, "worker 1 in flight" + kNumber, "worker 0 retried 0,"});
  for (const char* worker : {"/job:worker/task:0", "/job:worker/task:1"}) {
    shown(runner, worker, {"closures run" + kSome, "closures/s" + kSome, "busy seconds" + kSome});
  }
  // One variable each, with what the optimizer keeps beside it.
  shown(runner, "/job:ps/task:0",
        {"bytes of table 4000,", "bytes received" + kSome, "bytes sent" + kSome,
         "mean staleness" + kNumber, "operations applied" + kSome, "pushes repeated 0,",
         "stale calls refused 0,", "variable bytes" + kSome, "variable shards" + kSome});
  shown(runner, "/job:ps/task:1", {"bytes of bias 40,", "operations applied" + kSome});

  touch("hold_worker_1");
  runner.wait_for_line({"worker", 1}, "holds a closure", kPatience);
  runner.kill({"worker", 1});
  remove("hold_worker_1");
  shown(runner, "/job:chief/task:0",
        {"closures retried" + kSome, "worker 0 retried 0,", "worker 1 retried" + kSome});
  runner.restart({"worker", 1});
  shown(runner, "/job:worker/task:1", {"alive", "closures run" + kSome});
  touch("end");
  EXPECT_EQ(runner.join().at(kTheChief), "trained");
}

}  // namespace
}  // namespace cohort::parameter_server_faults

int main(int argc, char** argv) {
  using namespace cohort::parameter_server_faults;
  return run_main(argc, argv, {{"train", train}});
}
