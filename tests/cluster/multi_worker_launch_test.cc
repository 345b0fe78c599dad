// MultiWorkerMirroredStrategy under `cohort launch`: restarts, and faults that would come again.
#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>

#include "cohort/cluster/launch/free_ports.h"
#include "cohort/cluster/launch/launcher.h"
#include "tests/cluster/multi_worker_training.h"

namespace cohort::multi_worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// This program again, as train_under_launcher.
struct Launched {
  int exit_code;
  std::string output;
  std::vector<int> restarts;
};

Launched launch_training(const std::string& directory, const std::string& fault, int restarts) {
  internal::JobPlan plan =
      internal::make_plan({.program = std::filesystem::read_symlink("/proc/self/exe"),
                           .arguments = {"--train", directory, fault},
                           .num_workers = 2},
                          internal::usable_cores());
  const internal::FreePorts ports = internal::pick_free_ports(2);
  internal::set_addresses(plan, {ports[0], ports[1]});
  std::FILE* const lines = std::tmpfile();
  const internal::LaunchResult result = internal::launch(plan, {.restarts = restarts,
                                                                .restart_delay = 1ms,
                                                                .out = {::fileno(lines)},
                                                                .err = {::fileno(lines)}});
  Launched launched{.exit_code = result.exit_code, .output = {}, .restarts = {}};
  for (const auto& task : result.tasks) launched.restarts.push_back(task.restarts);
  std::rewind(lines);
  for (int c = std::fgetc(lines); c != EOF; c = std::fgetc(lines)) {
    launched.output += static_cast<char>(c);
  }
  std::fclose(lines);
  return launched;
}

std::string digest_in(const Launched& launched, int worker) {
  const std::string before = "[worker:" + std::to_string(worker) + "] digest: ";
  const size_t at = launched.output.rfind(before);
  EXPECT_NE(at, std::string::npos) << launched.output;
  return at == std::string::npos ? "" : launched.output.substr(at + before.size(), 16);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

int train_under_launcher(const std::string& directory, const std::string& fault) {
  return run_program([&] {
    random::set_seed(8);
    const MultiWorkerMirroredStrategy strategy = make_strategy();
    Training training(strategy, {.directory = directory});
    training.run_to(kSteps, [&](int step) {
      const std::string marker = directory + "/struck";
      if (step != 13 || strategy.worker_id() != 1 || std::filesystem::exists(marker)) return;
      if (fault == "none") return;
      std::ofstream(marker) << "once";
      if (fault == "throw") {
        strategy.run([] { throw InvalidArgumentError("a fault of worker 1's own"); });
      }
      if (fault == "throw between steps") throw InvalidArgumentError("a fault of worker 1's own");
      ::raise(SIGKILL);
    });
    std::printf("digest: %s\n", training.result().substr(0, 16).c_str());
  });
}

TEST_F(MultiWorker, AKilledJobEndsWithTheBitsOfOneThatWasNot) {
  const Launched calm = launch_training(directory + "/calm", "none", 0);
  EXPECT_EQ(calm.exit_code, 0) << calm.output;
  EXPECT_EQ(digest_in(calm, 0), digest_in(calm, 1));
  // Who they are, that all have come, how they exchange values: once.
  EXPECT_LE(count_of(calm.output, " cohort info: "), 3) << calm.output;
  const Launched killed = launch_training(directory + "/killed", "kill", 1);
  EXPECT_EQ(killed.exit_code, 0) << killed.output;
  EXPECT_EQ(killed.restarts, (std::vector<int>{1, 1}));
  EXPECT_THAT(killed.output, AllOf(HasSubstr("[worker:0] multi_worker_la"),
                                   HasSubstr(": UNAVAILABLE: lost /job:worker/task:1 (")));
  for (int worker = 0; worker < 2; ++worker) {
    EXPECT_EQ(digest_in(killed, worker), digest_in(calm, 0)) << worker;
  }
}

TEST_F(MultiWorker, AFaultThatWouldComeAgainEndsTheJob) {
  for (const std::string fault : {"throw", "throw between steps"}) {
    const Launched thrown = launch_training(directory + "/" + fault, fault, 3);
    EXPECT_EQ(thrown.exit_code, 64) << thrown.output;
    EXPECT_THAT(thrown.output,
                AllOf(HasSubstr("[worker:0]"), HasSubstr("a fault of worker 1's own"),
                      Not(HasSubstr("restart 1"))));
  }
}

}  // namespace
}  // namespace cohort::multi_worker

int main(int argc, char** argv) {
  using namespace cohort::multi_worker;
  if (argc == 4 && std::string(argv[1]) == "--train") return train_under_launcher(argv[2], argv[3]);
  return run_main(argc, argv, {});
}
