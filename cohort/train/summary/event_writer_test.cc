#include "cohort/train/summary/event_writer.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <mutex>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_fork.h"
#include "cohort/train/summary/event_encoding.h"
#include "cohort/train/summary/testing_events.h"

namespace cohort::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kNever = std::chrono::hours(24);

std::string event(const std::string& tag) { return encode_summary({.tag = tag}); }

// Counts the syncs of event files, and waits for them.
class Syncs {
 public:
  explicit Syncs(SimulatedFileSystem& files) {
    files.set_hook([this](const std::string& call) {
      if (call.find("syncing") == std::string::npos) return;
      std::lock_guard lock(mutex_);
      ++count_;
      changed_.notify_all();
    });
  }
  int count() {
    std::lock_guard lock(mutex_);
    return count_;
  }
  bool wait_for(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

TEST(EventWriterTest, ATimeoutMayBeAsLongAsItGoes) {
  SimulatedFileSystem files;
  constexpr std::chrono::milliseconds kForEver = std::chrono::milliseconds::max();
  EventWriter writer(files, "logs", {.flush_interval = kForEver, .timeout = kForEver});
  writer.add(event("a"));
  EXPECT_NO_THROW(writer.flush());
  EXPECT_NO_THROW(writer.close());
}

TEST(EventWriterTest, TheFileHasItsNameAndVersionAtOnce) {
  SimulatedFileSystem files;
  const EventWriter writer(files, "logs/train", {});
  EXPECT_THAT(writer.path(), testing::MatchesRegex("logs/train/events\\.out\\.tfevents\\."
                                                   "[0-9]{10}\\..+\\." +
                                                   std::to_string(getpid()) + "\\.[0-9]+\\.v2"));
  const auto later = files.after_power_cut();
  EXPECT_THAT(read_events(*later, writer.path()), IsEmpty());
}

TEST(EventWriterTest, TwoWritersHaveTwoFiles) {
  SimulatedFileSystem files;
  const EventWriter a(files, "logs", {});
  const EventWriter b(files, "logs", {.filename_suffix = ""});
  EXPECT_NE(a.path(), b.path());
  EXPECT_THAT(b.path(), testing::Not(testing::EndsWith(".v2")));
}

TEST(EventWriterTest, WhatWasFlushedOutlivesAPowerCut) {
  SimulatedFileSystem files;
  EventWriter writer(files, "logs", {.flush_interval = kNever});
  writer.add(event("a"));
  writer.add(event("b"));
  writer.flush();
  EXPECT_THAT(tags_of(read_events(*files.after_power_cut(), writer.path())), ElementsAre("a", "b"));
  writer.flush();
}

TEST(EventWriterTest, AFullQueueIsWrittenByTheThread) {
  SimulatedFileSystem files;
  Syncs syncs(files);
  EventWriter writer(files, "logs", {.max_queue = 2, .flush_interval = kNever});
  const int before = syncs.count();
  writer.add(event("a"));
  writer.add(event("b"));
  EXPECT_EQ(syncs.count(), before);
  writer.add(event("c"));
  EXPECT_TRUE(syncs.wait_for(before + 1));
}

TEST(EventWriterTest, AnIntervalEndsInAWrite) {
  SimulatedFileSystem files;
  Syncs syncs(files);
  EventWriter writer(files, "logs",
                     {.max_queue = 1000, .flush_interval = std::chrono::milliseconds(1)});
  const int before = syncs.count();
  writer.add(event("a"));
  EXPECT_TRUE(syncs.wait_for(before + 1));
}

TEST(EventWriterTest, TheDestructorWritesWhatWaits) {
  SimulatedFileSystem files;
  std::string path;
  {
    EventWriter writer(files, "logs", {.flush_interval = kNever});
    path = writer.path();
    writer.add(event("a"));
  }
  EXPECT_THAT(tags_of(read_events(files, path)), ElementsAre("a"));
}

TEST(EventWriterTest, AfterCloseNothingIsAdded) {
  SimulatedFileSystem files;
  EventWriter writer(files, "logs", {});
  EXPECT_FALSE(writer.is_closed());
  writer.add(event("a"));
  writer.close();
  writer.close();
  writer.flush();
  EXPECT_TRUE(writer.is_closed());
  expect_error<FailedPreconditionError>([&] { writer.add(event("b")); }, "is already closed");
  EXPECT_THAT(tags_of(read_events(files, writer.path())), ElementsAre("a"));
}

TEST(EventWriterTest, AFullDiskIsSaidByEveryCallAfterIt) {
  SimulatedFileSystem files;
  EventWriter writer(files, "logs", {.flush_interval = kNever});
  writer.add(event("a"));
  writer.flush();
  files.set_faults({.fail_at = files.calls() + 1, .error_number = ENOSPC, .stays_broken = true});
  writer.add(event("b"));
  expect_error<ResourceExhaustedError>([&] { writer.flush(); }, "events.out.tfevents");
  expect_error<ResourceExhaustedError>([&] { writer.add(event("c")); }, "events.out.tfevents");
  expect_error<ResourceExhaustedError>([&] { writer.close(); }, "events.out.tfevents");
  files.set_faults({});
  EXPECT_THAT(tags_of(read_events(*files.after_power_cut(), writer.path())), ElementsAre("a"));
}

TEST(EventWriterTest, AFailureAtAnyCallLosesNothingThatWasFlushed) {
  for (int64_t call = 1;; ++call) {
    SimulatedFileSystem files;
    files.set_faults({.fail_at = call, .error_number = EIO});
    std::vector<std::string> flushed;
    std::string path;
    try {
      EventWriter writer(files, "logs", {.flush_interval = kNever});
      path = writer.path();
      for (const char* tag : {"a", "b"}) {
        writer.add(event(tag));
        writer.flush();
        flushed.emplace_back(tag);
      }
      writer.close();
    } catch (const Error&) {
    }
    const bool failed = files.calls() >= call;
    files.set_faults({});
    if (!flushed.empty()) {
      const auto found = tags_of(read_events(*files.after_power_cut(), path));
      ASSERT_GE(found.size(), flushed.size()) << "call " << call;
    }
    if (!failed) break;
    ASSERT_LT(call, 100);
  }
}

TEST(EventWriterTest, AStuckDiskIsADeadline) {
  SimulatedFileSystem files;
  std::mutex mutex;
  std::condition_variable freed;
  bool stuck = false;
  files.set_hook([&](const std::string& call) {
    std::unique_lock lock(mutex);
    if (call.find("syncing") != std::string::npos) freed.wait(lock, [&] { return !stuck; });
  });
  EventWriter writer(files, "logs",
                     {.flush_interval = kNever, .timeout = std::chrono::milliseconds(20)});
  {
    std::lock_guard lock(mutex);
    stuck = true;
  }
  writer.add(event("a"));
  expect_error<DeadlineExceededError>([&] { writer.flush(); }, "is the disk stuck?");
  expect_error<DeadlineExceededError>([&] { writer.close(); }, "is the disk stuck?");
  {
    std::lock_guard lock(mutex);
    stuck = false;
  }
  freed.notify_all();
  // The destructor may find it stuck still, and must not depend on that.
  while (true) {
    try {
      writer.close();
      break;
    } catch (const DeadlineExceededError&) {
    }
  }
  EXPECT_THAT(tags_of(read_events(files, writer.path())), ElementsAre("a"));
}

TEST(EventWriterTest, ADirectoryThatCannotBeIsSaidAtOnce) {
  SimulatedFileSystem files;
  files.create("file")->close();
  EXPECT_THROW(EventWriter(files, "file/logs", {}), Error);
  expect_error<InvalidArgumentError>([&] { EventWriter(files, "", {}); }, "logdir is empty");
  expect_error<InvalidArgumentError>([&] { EventWriter(files, "logs", {.max_queue = -1}); },
                                     "max_queue is -1");
  expect_error<InvalidArgumentError>([&] { EventWriter(files, "logs", {.filename_suffix = "/x"}); },
                                     "filename_suffix is '/x'");
}

// Its thread may hold the lock at the time of the fork, for ever in the child: nothing may wait
// there.
TEST(EventWriterTest, AChildProcessMakesItsOwn) {
  SimulatedFileSystem files;
  EventWriter writer(files, "logs", {});
  const auto in_child = [&](const std::function<void()>& call) {
    return in_forked_child([&]() -> std::string {
      call();
      return "no error";
    });
  };
  const auto refused = testing::AllOf(HasSubstr("threw the writer of 'logs/events.out.tfevents"),
                                      HasSubstr("was made before this process was forked"));
  EXPECT_THAT(in_child([&] { writer.add(event("a")); }), refused);
  EXPECT_THAT(in_child([&] { writer.flush(); }), refused);
  EXPECT_THAT(in_child([&] { writer.close(); }), refused);
  EXPECT_THAT(in_child([&] { writer.is_closed(); }), refused);
  EXPECT_FALSE(writer.is_closed());
}

}  // namespace
}  // namespace cohort::internal
