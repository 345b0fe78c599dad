// MultiWorkerMirroredStrategy in real processes, of which one is lost or fails; docs/faults.md.
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_time_limit.h"
#include "tests/cluster/multi_worker_training.h"

namespace cohort::multi_worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;
using testing::TaskOutcome;

// Worker 1 throws in its third step.
std::string throw_on_one(const Arguments&) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  for (int i = 0; i < 10; ++i) {
    strategy.run([&](ReplicaContext& context) {
      if (i == 2 && strategy.worker_id() == 1) throw DataLossError("record 7 is damaged");
      return context.all_reduce(ReduceOp::SUM, at::full({3}, 1.0));
    });
  }
  return "done";
}

// In its third step worker 1 needs more memory than it may have.
std::string run_out_of_memory(const Arguments&) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  const auto step = [&](int i) {
    strategy.run([&](ReplicaContext& context) {
      const bool is_greedy = i == 2 && strategy.worker_id() == 1;
      const Tensor value = at::full({is_greedy ? int64_t{1} << 32 : 1000}, 1.0);
      return context.all_reduce(ReduceOp::SUM, value.slice(0, 0, 1000));
    });
  };
  for (int i = 0; i < 2; ++i) step(i);
  rlimit limit;
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = rlim_t{16} << 30;
  ::setrlimit(RLIMIT_AS, &limit);
  for (int i = 2; i < 10; ++i) step(i);
  return "done";
}

// Worker 1 throws where `place` says, outside of every step. Arguments: the place; a directory.
std::string throw_outside(const Arguments& arguments) {
  const std::string& place = arguments.at(0);
  random::set_seed(8);
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  const bool throws = strategy.worker_id() == 1;
  const DataLossError fault("record 7 is damaged");
  if (place == "scope") {
    auto scope = strategy.scope();
    const distribute::Variable first(at::full({2}, 1.0));
    if (throws) throw fault;
    const distribute::Variable second(at::full({2}, 1.0));
  }
  if (place == "dataset") {
    const auto read = [&](const Tensor& number) -> Tensor {
      if (throws && number.item<int64_t>() > 7) throw fault;
      return number;
    };
    const auto numbers = data::Dataset::range(20).map(read).batch(2);
    for (const auto& batch : strategy.experimental_distribute_dataset(numbers)) {
      strategy.reduce(ReduceOp::SUM, strategy.run([](const Tensor& x) { return x; }, batch), 0);
    }
  }
  if (place == "caught") {
    try {
      const MultiWorkerMirroredStrategy second = make_strategy();
      if (throws) throw fault;
      second.reduce(ReduceOp::SUM, at::full({}, 1.0));
    } catch (const DataLossError&) {
      return "caught";
    }
  }
  Training training(strategy, {.directory = arguments.at(1)});
  training.run_to(4);
  if (place == "checkpoint" && throws) throw fault;  // the others save after their next step
  training.run_to(kSteps, [&](int step) {
    if (place == "between" && throws && step == 7) throw fault;
  });
  return "trained";
}

// Worker 1 leaves out the call of its third step. Every other one makes the same call.
std::string leave_a_call_out(const Arguments&) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  for (int i = 0; i < 10; ++i) {
    strategy.run([&](ReplicaContext& context) {
      const Tensor loss = at::full({3}, 1.0);
      return i == 2 && strategy.worker_id() == 1 ? loss : context.all_reduce(ReduceOp::SUM, loss);
    });
  }
  return "done";
}

// Worker 1 ends its program after the third step, worker 0 after the tenth.
std::string end_early(const Arguments&) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  for (int i = 0; i < (strategy.worker_id() == 1 ? 3 : 10); ++i) {
    strategy.run([&](ReplicaContext& context) {
      return context.all_reduce(ReduceOp::SUM, at::full({3}, 1.0));
    });
  }
  return "done";
}

// Worker 1 calls exit() in a step, or between two. Arguments: "in" or "between".
std::string exit_early(const Arguments& arguments) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  for (int i = 0; i < 10; ++i) {
    const bool exits = i == 2 && strategy.worker_id() == 1;
    if (exits && arguments.at(0) == "between") std::exit(0);
    strategy.run([&](ReplicaContext& context) {
      if (exits) std::exit(0);
      return context.all_reduce(ReduceOp::SUM, at::full({3}, 1.0));
    });
  }
  return "done";
}

// Worker 1 knows a third worker.
std::string disagree(const Arguments&) {
  namespace resolvers = distribute::cluster_resolver;
  const resolvers::TFConfigClusterResolver told;
  train::ClusterSpec::Jobs jobs = told.cluster_spec().as_dict();
  if (*told.task_id() == 1) jobs["worker"][2] = "127.0.0.1:1";
  distribute::ServerOptions options = quick();
  options.start_timeout = 3s;
  const MultiWorkerMirroredStrategy strategy(
      {.cluster_resolver = std::make_shared<resolvers::SimpleClusterResolver>(
           train::ClusterSpec(jobs),
           resolvers::SimpleClusterResolverOptions{.task_type = told.task_type(),
                                                   .task_id = told.task_id()}),
       .server_options = options});
  return "";
}

// Worker 1 computes with another number of threads. Arguments: "strict" or not.
std::string compute_differently(const Arguments& arguments) {
  const distribute::cluster_resolver::TFConfigClusterResolver told;
  at::set_num_threads(1 + *told.task_id());
  const MultiWorkerMirroredStrategy strategy(
      {.server_options = quick(), .strict_bitwise = arguments.at(0) == "strict"});
  strategy.reduce(ReduceOp::SUM, at::full({}, 1.0));
  return "reduced";
}

// Worker 1 asks for another number of replicas.
std::string host_differently(const Arguments&) {
  const distribute::cluster_resolver::TFConfigClusterResolver told;
  distribute::MultiWorkerMirroredStrategyOptions options;
  options.server_options = quick();
  options.elastic.replicas = 4 + *told.task_id();
  const MultiWorkerMirroredStrategy strategy(options);
  return "formed";
}

// Worker 1 is killed while the group forms: it has introduced itself, and shares no memory yet.
std::string lose_while_forming(const Arguments&) {
  const distribute::cluster_resolver::TFConfigClusterResolver told;
  if (*told.task_id() == 0) {
    make_strategy();
    return "formed";
  }
  distribute::Server server(told, quick());
  distribute::Coordination& cluster = server.coordination();
  const std::string group =
      internal::str("collective/workers/", cluster.wait_for_start().generation);
  const std::string introduction = cluster.get(group + "/introduction/0", kPatience);
  cluster.set(group + "/introduction/1", introduction);
  cluster.get(group + "/shared_memory/0", kPatience);
  ::raise(SIGKILL);
  return "";
}

// Goes on after the loss of a worker without a restart of its own: the group forms again, at once.
// Arguments: the directory of checkpoints; which worker is to be lost, or -1.
std::string train_and_survive(const Arguments& arguments) {
  for (int attempt = 0;; ++attempt) {
    try {
      random::set_seed(8);
      keras::backend::clear_session();  // layers are named as in a process that begins
      const MultiWorkerMirroredStrategy strategy = make_strategy();
      Training training(strategy, {.directory = arguments.at(0)});
      training.run_to(kSteps, [&](int step) {
        std::printf("step %d\n", step);
        std::fflush(stdout);
        if (step == 12 && strategy.worker_id() == std::stoi(arguments.at(1))) {
          const std::string marker = arguments.at(0) + "/killed";
          if (std::filesystem::exists(marker)) return;
          std::ofstream(marker) << "once";
          ::raise(SIGKILL);
        }
      });
      return training.result().substr(0, 16);
    } catch (const UnavailableError& error) {
      std::printf("attempt %d: %s\n", attempt, error.what());
      std::fflush(stdout);
      if (attempt == 3) throw;
    }
  }
}

// In run_program, which has something to pass on to the others for a moment after the loss.
std::string survive(const Arguments& arguments) {
  std::string result;
  const int code = run_program([&] { result = train_and_survive(arguments); });
  return code == 0 ? result : "exit code " + std::to_string(code);
}

// Signals worker 1, and returns how long worker 0 took to name it, in ms.
double detection_time(int signal) {
  MultiProcessRunner runner(workers(2, "step_for_ever"));
  runner.start();
  for (int task = 0; task < 2; ++task) runner.wait_for_line({"worker", task}, "started", kPatience);
  const double sent = now_ms();
  runner.kill({"worker", 1}, signal);
  const std::string line = runner.wait_for_line({"worker", 0}, "ended at", kPatience);
  EXPECT_THAT(line, AllOf(HasSubstr("UNAVAILABLE: lost /job:worker/task:1 ("),
                          HasSubstr(runner.address({"worker", 1}))));
  return detection::time_in(line) - sent;
}

TEST_F(MultiWorker, AKilledWorkerIsNamedWithinASecond) {
  std::vector<double> times;
  for (int i = detection::repetitions(2); i > 0; --i) times.push_back(detection_time(SIGKILL));
  std::printf("kill -9 to a typed error: %s\n", detection::summary(times).c_str());
  EXPECT_THAT(times, ::testing::Each(Lt(internal::time_limit(1000))));
}

TEST_F(MultiWorker, AStoppedWorkerIsNamedByItsSilence) {
  const double time = detection_time(SIGSTOP);
  std::printf("SIGSTOP to a typed error: %.0f ms\n", time);
  EXPECT_THAT(time, AllOf(Lt(internal::time_limit(4500)), ::testing::Gt(500)));
}

TEST_F(MultiWorker, AWorkerThatIsKilledWhileTheGroupFormsIsNamed) {
  MultiProcessRunner runner(workers(2, "lose_while_forming"));
  runner.start();
  const auto outcomes = runner.wait_all();
  EXPECT_EQ(outcomes[0].code, Code::kUnavailable) << outcomes[0].error;  // not a deadline's error
  EXPECT_THAT(outcomes[0].error, HasSubstr("lost /job:worker/task:1"));
}

TEST_F(MultiWorker, AnErrorOfOneIsThatOfAll) {
  MultiProcessRunner runner(workers(2, "throw_on_one"));
  runner.start();
  for (const TaskOutcome& outcome : runner.wait_all()) {
    EXPECT_EQ(outcome.code, Code::kDataLoss) << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr("record 7 is damaged"));
  }
}

// Both processes live on to say so.
TEST_F(MultiWorker, MemoryThatCannotBeHadIsAnErrorOfAll) {
  MultiProcessRunner runner(workers(2, "run_out_of_memory"));
  runner.start();
  for (const TaskOutcome& outcome : runner.wait_all()) {
    EXPECT_EQ(outcome.code, Code::kResourceExhausted) << outcome.error;
  }
}

// An error between steps has the same end as one within.
TEST_F(MultiWorker, AnErrorOutsideOfStepsIsThatOfAll) {
  for (const std::string place : {"scope", "dataset", "between", "checkpoint"}) {
    MultiProcessRunner runner(workers(2, "throw_outside", {place, directory + "/" + place}));
    runner.start();
    const auto outcomes = runner.wait_all();
    for (const TaskOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.code, Code::kDataLoss) << place << ": " << outcome.error;
      EXPECT_THAT(outcome.error, HasSubstr("record 7 is damaged")) << place;
    }
    EXPECT_THAT(outcomes[0].error,
                HasSubstr(place == "dataset" ? "the input of worker 1 failed: map"
                                             : "/job:worker/task:1 has given up"))
        << place;
  }
}

// Of an error that the program catches itself the others learn that there was one.
TEST_F(MultiWorker, WhoCatchesAnErrorOutsideOfItsStrategyHasLeftTheGroup) {
  MultiProcessRunner runner(workers(2, "throw_outside", {"caught", directory}));
  runner.start();
  const auto outcomes = runner.wait_all();
  EXPECT_EQ(outcomes[0].code, Code::kAborted) << outcomes[0].error;
  EXPECT_THAT(outcomes[0].error, HasSubstr("/job:worker/task:1 has given up: an exception"));
}

TEST_F(MultiWorker, ACallThatOneLeavesOutDoesNotMeetThatOfTheNextStep) {
  MultiProcessRunner runner(workers(2, "leave_a_call_out"));
  runner.start();
  for (const TaskOutcome& outcome : runner.wait_all()) {
    EXPECT_EQ(outcome.code, Code::kFailedPrecondition) << outcome.error;
    EXPECT_THAT(
        outcome.error,
        HasSubstr("/job:worker/task:1 has made fewer calls than /job:worker/task:0 in step 3"));
  }
}

TEST_F(MultiWorker, AWorkerThatEndsEarlyIsNamed) {
  MultiProcessRunner runner(workers(2, "end_early"));
  runner.start();
  const auto outcomes = runner.wait_all();
  EXPECT_EQ(outcomes[0].code, Code::kFailedPrecondition) << outcomes[0].error;
  EXPECT_THAT(outcomes[0].error, AllOf(HasSubstr("task"), HasSubstr("the end of the strategy")));
  EXPECT_EQ(outcomes[1].value, "done") << outcomes[1].error;
}

TEST_F(MultiWorker, AWorkerThatExitsIsNamed) {
  for (const char* place : {"in", "between"}) {
    MultiProcessRunner runner(workers(2, "exit_early", {place}));
    runner.start();
    const auto outcomes = runner.wait_all();
    EXPECT_EQ(outcomes[0].code, Code::kUnavailable) << outcomes[0].error;
    EXPECT_THAT(outcomes[0].error,
                AllOf(HasSubstr("/job:worker/task:1 has ended before its strategy"),
                      Not(HasSubstr("/job:worker/task:0 has given up"))));
  }
}

TEST_F(MultiWorker, OtherClusterSpecsAreRefused) {
  MultiProcessRunner runner(workers(2, "disagree"));
  runner.start();
  bool named = false;
  for (const TaskOutcome& outcome : runner.wait_all()) {
    EXPECT_NE(outcome.code, Code::kOk);
    named = named || (outcome.code == Code::kFailedPrecondition &&
                      outcome.error.find("127.0.0.1:1'") != std::string::npos);
  }
  EXPECT_TRUE(named);
}

TEST_F(MultiWorker, WorkersThatRoundDifferentlyAreToldOrRefused) {
  MultiProcessRunner lenient(workers(2, "compute_differently", {"lenient"}));
  lenient.start();
  for (const auto& [task, value] : lenient.join()) EXPECT_EQ(value, "reduced") << task;
  const std::string difference = "line 6 is 'threads of an operation: ";
  EXPECT_THAT(lenient.log({"worker", 0}) + lenient.log({"worker", 1}), HasSubstr(difference));

  MultiProcessRunner strict(workers(2, "compute_differently", {"strict"}));
  strict.start();
  std::string refused;
  for (const TaskOutcome& outcome : strict.wait_all()) {
    EXPECT_NE(outcome.code, Code::kOk);
    if (outcome.code == Code::kFailedPrecondition) refused += outcome.error;
  }
  EXPECT_THAT(refused, AllOf(HasSubstr("'numeric environment'"), HasSubstr(difference)));
}

TEST_F(MultiWorker, WorkersThatHostOtherReplicasAreRefused) {
  MultiProcessRunner runner(workers(2, "host_differently"));
  runner.start();
  std::string refused;
  for (const TaskOutcome& outcome : runner.wait_all()) {
    // The other goes on without the one that is refused.
    if (outcome.code == Code::kFailedPrecondition) refused += outcome.error;
  }
  EXPECT_THAT(refused, AllOf(HasSubstr("elastic replicas of "), HasSubstr("4 with 1 threads"),
                             HasSubstr("5 with 1 threads")));
}

TEST(MultiWorkerAlone, NumbersOfHostedReplicasAreChecked) {
  const auto refused = [](int replicas, int threads) {
    distribute::MultiWorkerMirroredStrategyOptions options;
    options.elastic = {.replicas = replicas, .threads_per_replica = threads};
    return thrown<InvalidArgumentError>([&] { MultiWorkerMirroredStrategy strategy(options); });
  };
  EXPECT_THAT(refused(-1, 1), HasSubstr("replicas is -1"));
  EXPECT_THAT(refused(1025, 1), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(refused(2, 0), HasSubstr("threads_per_replica is 0"));
  EXPECT_THAT(refused(2, 100'000), HasSubstr("threads_per_replica is 100000"));
}

TEST_F(MultiWorker, TheGroupFormsAgainWithoutARestartOfTheSurvivor) {
  const std::string calm = values_of(workers(2, "survive", {directory + "/calm", "-1"}))[0];
  for (const int lost : {0, 1}) {  // the cluster's membership ends with worker 0, and begins anew
    const std::string own = directory + "/lost-" + std::to_string(lost);
    std::filesystem::create_directory(own);
    MultiProcessRunner runner(workers(2, "survive", {own, std::to_string(lost)}));
    runner.start();
    const testing::TaskId survivor{"worker", 1 - lost};
    runner.wait_for_line(survivor, "attempt 0: lost ", kPatience);
    runner.restart({"worker", lost});
    for (const auto& [task, value] : runner.join()) EXPECT_EQ(value, calm) << task;
    EXPECT_EQ(runner.log(survivor).find("attempt 1:"), std::string::npos) << runner.log(survivor);
  }
}

}  // namespace
}  // namespace cohort::multi_worker

int main(int argc, char** argv) {
  using namespace cohort::multi_worker;
  return run_main(argc, argv,
                  {{"step_for_ever", step_for_ever},
                   {"throw_on_one", throw_on_one},
                   {"run_out_of_memory", run_out_of_memory},
                   {"throw_outside", throw_outside},
                   {"leave_a_call_out", leave_a_call_out},
                   {"end_early", end_early},
                   {"exit_early", exit_early},
                   {"disagree", disagree},
                   {"compute_differently", compute_differently},
                   {"host_differently", host_differently},
                   {"lose_while_forming", lose_while_forming},
                   {"survive", survive}});
}
