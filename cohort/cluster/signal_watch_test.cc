#include "cohort/cluster/signal_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_fork.h"
#include "cohort/core/threads/thread_sanitizer.h"

namespace cohort::internal {
namespace {

bool is_readable(int descriptor) {
  pollfd watched{descriptor, POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

TEST(SignalWatch, NotesTheFirstSignal) {
  const SignalWatch watch;
  EXPECT_EQ(watch.signal(), 0);
  EXPECT_FALSE(is_readable(watch.descriptor()));
  ::raise(SIGTERM);
  ::raise(SIGINT);
  EXPECT_EQ(watch.signal(), SIGTERM);
  EXPECT_TRUE(is_readable(watch.descriptor()));
}

#ifndef COHORT_THREAD_SANITIZER  // which calls no handlers in children of processes with threads
// A helper process that is ended by SIGTERM, say.
TEST(SignalWatch, AChildOfForkDoesWhatItDidBeforeAndItsParentSeesNothing) {
  const SignalWatch watch;
  const TerminationWatch termination;
  for (const int number : {SIGTERM, SIGINT}) {
    EXPECT_EQ(in_forked_child([&] {
                ::raise(number);
                return std::string("lives");
              }),
              str("killed by signal ", number));
  }
  EXPECT_EQ(watch.signal(), 0);
  EXPECT_FALSE(is_readable(watch.descriptor()));
  EXPECT_FALSE(termination.has_come());
  EXPECT_FALSE(is_readable(termination.descriptor()));
}
#endif

TEST(SignalWatch, AChildOfForkMayMakeItsOwn) {
  const SignalWatch watch;
  EXPECT_EQ(in_forked_child([] {
              const SignalWatch own;
              ::raise(SIGINT);
              return str(own.signal(), is_readable(own.descriptor()) ? " readable" : "");
            }),
            str(SIGINT, " readable"));
  EXPECT_EQ(watch.signal(), 0);
  EXPECT_FALSE(is_readable(watch.descriptor()));
}

TEST(TerminationWatch, HasSigtermToItself) {
  const SignalWatch any;
  {
    TerminationWatch own;
    const TerminationWatch another;
    ::raise(SIGTERM);
    ::raise(SIGTERM);
    EXPECT_TRUE(own.has_come());
    EXPECT_TRUE(another.has_come());
    EXPECT_TRUE(is_readable(own.descriptor()));
    EXPECT_EQ(any.signal(), 0);
    EXPECT_FALSE(is_readable(any.descriptor()));
    ::raise(SIGINT);
    EXPECT_EQ(any.signal(), SIGINT);
    own.answer();
  }
  EXPECT_FALSE(TerminationWatch().has_come());
}

TEST(TerminationWatch, KeepsWhatNobodyHasAnsweredForTheNext) {
  {
    const TerminationWatch own;
    ::raise(SIGTERM);
  }
  TerminationWatch next;
  EXPECT_TRUE(next.has_come());
  EXPECT_TRUE(is_readable(next.descriptor()));
  next.answer();
}

TEST(TerminationWatch, AnswersNothingInAdvance) {
  TerminationWatch().answer();
  {
    const TerminationWatch own;
    ::raise(SIGTERM);
  }
  TerminationWatch next;
  EXPECT_TRUE(next.has_come());
  next.answer();
}

TEST(TerminationWatch, LeavesSigtermToOthersAtItsEnd) {
  const SignalWatch any;
  { const TerminationWatch own; }
  ::raise(SIGTERM);
  EXPECT_EQ(any.signal(), SIGTERM);
}

}  // namespace
}  // namespace cohort::internal
