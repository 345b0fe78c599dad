#include "cohort/train/saving/background_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(BackgroundSaver, ItsEndWaitsForTheSave) {
  std::promise<void> may_end;
  bool has_saved = false;
  auto saver = std::make_unique<BackgroundSaver>();
  saver->start("dir/ckpt-1", [&, allowed = may_end.get_future().share()] {
    allowed.wait();
    has_saved = true;
  });
  auto end = std::async(std::launch::async, [own = std::move(saver)]() mutable { own.reset(); });
  may_end.set_value();
  end.get();
  EXPECT_TRUE(has_saved);
}

// What a job on a stuck disk holds stays until it has ended.
TEST(BackgroundSaver, ItsEndDoesNotWaitForAStuckDiskForEver) {
  std::promise<void> freed;
  const auto gone = std::make_shared<std::promise<void>>();
  std::shared_ptr<int> held(new int(7), [gone](const int* value) {
    delete value;
    gone->set_value();
  });
  const std::weak_ptr<int> job_holds = held;
  ::testing::internal::CaptureStderr();
  {
    BackgroundSaver saver(20ms);
    saver.start("dir/ckpt-1", [own = std::move(held), is_free = freed.get_future().share()] {
      is_free.wait();
      throw UnavailableError(str("no device ", *own));
    });
  }
  EXPECT_FALSE(job_holds.expired());
  freed.set_value();
  EXPECT_EQ(gone->get_future().wait_for(20s), std::future_status::ready);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("checkpoint 'dir/ckpt-1' is still being written after "),
                    HasSubstr("Nobody waits for it any more."),
                    HasSubstr("checkpoint 'dir/ckpt-1' was not saved: no device 7")));
}

}  // namespace
}  // namespace cohort::internal
