// MultiWorkerMirroredStrategy, of which the kernel kills one worker for lack of memory. Needs root,
// and control groups for memory.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "tests/cluster/multi_worker_training.h"

namespace cohort::multi_worker {
namespace {

using distribute::ReduceOp;
using distribute::ReplicaContext;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A control group whose processes may have so much memory between them.
class MemoryGroup {
 public:
  explicit MemoryGroup(int64_t bytes) {
    const std::filesystem::path root = "/sys/fs/cgroup";
    const bool is_first_version = std::filesystem::is_directory(root / "memory");
    path_ = (is_first_version ? root / "memory" : root) / ("cohort." + std::to_string(::getpid()));
    std::filesystem::create_directory(path_);
    write(is_first_version ? "memory.limit_in_bytes" : "memory.max", std::to_string(bytes));
    if (is_first_version) return;
    write("memory.swap.max", "0");
  }
  ~MemoryGroup() { ::rmdir(path_.c_str()); }  // its processes have ended
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  std::string members_file() const { return path_ / "cgroup.procs"; }

 private:
  void write(const char* file, const std::string& text) {
    std::ofstream out(path_ / file);
    if (!(out << text << std::flush)) throw UnknownError(path_.string() + ": cannot write " + file);
  }

  std::filesystem::path path_;
};

// In its third step worker 1 joins the control group and uses 1 GiB. Arguments: its file of
// members.
std::string use_too_much(const Arguments& arguments) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  for (int i = 0; i < 10; ++i) {
    strategy.run([&](ReplicaContext& context) {
      Tensor mine = at::full({1000}, 1.0);
      if (i == 2 && strategy.worker_id() == 1) {
        std::ofstream(arguments.at(0)) << ::getpid();
        mine = at::full({int64_t{1} << 27}, 1.0);  // written, so that the pages are there
      }
      return context.all_reduce(ReduceOp::SUM, mine.slice(0, 0, 1000));
    });
  }
  return "done";
}

TEST_F(MultiWorker, AWorkerThatTheKernelKillsForMemoryIsNamed) {
  const MemoryGroup group(int64_t{64} << 20);
  MultiProcessRunner runner(workers(2, "use_too_much", {group.members_file()}));
  runner.start();
  const auto outcomes = runner.wait_all();
  EXPECT_THAT(outcomes[1].error, HasSubstr("ended by SIGKILL"));
  EXPECT_EQ(outcomes[0].code, Code::kUnavailable) << outcomes[0].error;
  EXPECT_THAT(outcomes[0].error, AllOf(HasSubstr("lost"), HasSubstr("/job:worker/task:1")));
}

}  // namespace
}  // namespace cohort::multi_worker

int main(int argc, char** argv) {
  using namespace cohort::multi_worker;
  return run_main(argc, argv, {{"use_too_much", use_too_much}});
}
