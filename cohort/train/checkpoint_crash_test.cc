// Rows 30 to 34 of the fault matrix, on a simulated file system: a save is stopped at each of its
// calls, by a kill, a power cut or an error, and what the next process finds is the old checkpoint
// or the new one, whole. Real processes and real disks: tests/faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/train/checkpoint_impl.h"
#include "cohort/train/checkpoint_manager.h"
#include "cohort/train/objects/testing_objects.h"
#include "cohort/train/saving/latest_checkpoint.h"

namespace cohort::train {
namespace {

using internal::FaultPlan;
using internal::SimulatedFileSystem;
using internal::SimulatedKill;

// Two values that are always saved equal: a mix of two checkpoints would show.
struct Program {
  explicit Program(SimulatedFileSystem& files, float value = 0)
      : a(numbers({value})), b(numbers({value, value})), checkpoint({{"a", a}, {"b", b}}) {
    use_file_system(checkpoint, files);
  }
  void set(float value) {
    a->values = {value};
    b->values = {value, value};
  }

  std::shared_ptr<Numbers> a;
  std::shared_ptr<Numbers> b;
  Checkpoint checkpoint;
};

// How a program saves for the second time.
using Save = std::function<void(Program&)>;

void save_next(Program& program) { program.checkpoint.save("dir/ckpt"); }
// The same path again.
void overwrite(Program& program) {
  program.checkpoint.impl().save_counter() = {};
  program.checkpoint.save("dir/ckpt");
}
// With the deletion of the first one.
void save_managed(Program& program) {
  CheckpointManager(program.checkpoint, "dir", {.max_to_keep = 1}).save();
}

class CheckpointCrashTest : public testing::TestWithParam<Save> {
 protected:
  // Saves 1, then 2 under `plan`; whether the second save ended with an error or a kill.
  bool stopped(SimulatedFileSystem& files, FaultPlan plan, std::string* error = nullptr) {
    Program program(files, 1);
    program.checkpoint.save("dir/ckpt");
    program.set(2);
    const int64_t before = files.calls();
    if (plan.kill_at > 0) plan.kill_at += before;
    if (plan.fail_at > 0) plan.fail_at += before;
    files.set_faults(plan);
    bool failed = false;
    try {
      GetParam()(program);
    } catch (const SimulatedKill&) {
      failed = true;
    } catch (const Error& thrown) {
      failed = true;
      if (error != nullptr) *error = thrown.what();
    }
    last_call_ = files.calls() - before;
    return failed;
  }

  // The old value or the new one.
  void expect_good(SimulatedFileSystem& files, int64_t call) {
    const auto path = internal::find_latest(files, "dir");
    ASSERT_TRUE(path.has_value()) << "call " << call << ": the latest checkpoint is lost";
    Program program(files);
    ASSERT_NO_THROW(program.checkpoint.restore(path).assert_consumed()) << "call " << call;
    const float value = program.a->values[0];
    EXPECT_TRUE(value == 1 || value == 2) << "call " << call << ": " << value;
    EXPECT_EQ(program.b->values, std::vector<float>(2, value)) << "call " << call << ": a mix";
    program.set(3);
    ASSERT_NO_THROW(program.checkpoint.save("dir/ckpt")) << "call " << call;
    Program next(files);
    next.checkpoint.restore(internal::find_latest(files, "dir")).assert_consumed();
    EXPECT_EQ(next.a->values[0], 3) << "call " << call;
  }

  int64_t last_call_ = 0;
};

TEST_P(CheckpointCrashTest, KilledAtEachCall) {
  int64_t tried = 0;
  for (int64_t call = 1;; ++call, ++tried) {
    SimulatedFileSystem files;
    if (!stopped(files, {.kill_at = call})) break;
    expect_good(*files.after_kill(), call);
  }
  EXPECT_GT(tried, 15) << "a save has more calls than that";
}

TEST_P(CheckpointCrashTest, PowerCutAtEachCall) {
  for (int64_t call = 1;; ++call) {
    SimulatedFileSystem files;
    const bool more = stopped(files, {.kill_at = call});
    for (const auto entries : {internal::Unsynced::kLost, internal::Unsynced::kKept}) {
      for (const auto content : {internal::Unsynced::kLost, internal::Unsynced::kKept}) {
        expect_good(*files.after_power_cut({.content = content, .entries = entries}), call);
      }
    }
    for (uint64_t seed = 0; seed < 8; ++seed) {
      expect_good(*files.after_power_cut({.content = internal::Unsynced::kMixed,
                                          .entries = internal::Unsynced::kMixed,
                                          .seed = seed}),
                  call);
    }
    if (!more) break;
  }
}

TEST_P(CheckpointCrashTest, AnErrorAtEachCall) {
  for (const int number : {EIO, ENOSPC, EDQUOT, EROFS, EFBIG}) {
    for (int64_t call = 1;; ++call) {
      SimulatedFileSystem files;
      std::string error;
      const bool failed = stopped(files, {.fail_at = call, .error_number = number}, &error);
      if (last_call_ < call) break;
      EXPECT_EQ(failed, !error.empty()) << "call " << call;
      files.set_faults({});
      expect_good(*files.after_kill(), call);
    }
  }
}

TEST_P(CheckpointCrashTest, ADiskThatStaysBroken) {
  for (int64_t call = 1;; ++call) {
    SimulatedFileSystem files;
    stopped(files, {.fail_at = call, .error_number = ENOSPC, .stays_broken = true});
    if (last_call_ < call) break;
    files.set_faults({});
    expect_good(*files.after_kill(), call);
  }
}

INSTANTIATE_TEST_SUITE_P(Saves, CheckpointCrashTest,
                         testing::Values(Save(save_next), Save(overwrite), Save(save_managed)));

}  // namespace
}  // namespace cohort::train
