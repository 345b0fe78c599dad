#include "cohort/train/summary/summary.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/testing_files.h"
#include "cohort/image/decode.h"
#include "cohort/train/summary/testing_events.h"

namespace cohort::summary {
namespace {

using internal::expect_error;
using internal::ReadEvent;
using internal::tags_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct SummaryTest : data::FilesTest {
  SummaryTest() : writer(create_file_writer(path("logs"))) {}
  std::vector<ReadEvent> events() const {
    writer.flush();
    return internal::read_events(internal::posix_file_system(), writer.path());
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> steps;
    for (const ReadEvent& event : events()) steps.push_back(event.step);
    return steps;
  }

  SummaryWriter writer;
};

TEST_F(SummaryTest, ScalarsAreFloats) {
  auto scope = writer.as_default();
  EXPECT_TRUE(scalar("loss", 0.1, {.step = 3, .description = "mean"}));
  EXPECT_TRUE(scalar("count", at::scalar_tensor(7, int64), {.step = 4}));
  EXPECT_TRUE(scalar("nan", NAN, {.step = 5}));
  const auto found = events();
  ASSERT_THAT(tags_of(found), ElementsAre("loss", "count", "nan"));
  EXPECT_EQ(found[0].plugin, "scalars");
  EXPECT_EQ(found[0].description, "mean");
  EXPECT_EQ(found[0].step, 3);
  EXPECT_THAT(found[0].shape, IsEmpty());
  EXPECT_THAT(found[0].numbers<float>(), ElementsAre(0.1F));
  EXPECT_THAT(found[1].numbers<float>(), ElementsAre(7.0F));
  EXPECT_GT(found[0].wall_time, 1e9);
}

TEST_F(SummaryTest, TensorsThatRecordGradientsAreRead) {
  auto scope = writer.as_default(0);
  const Tensor weight = at::ones({2}).requires_grad_();
  EXPECT_TRUE(scalar("norm", weight.sum()));
  EXPECT_TRUE(histogram("weight", weight));
}

TEST_F(SummaryTest, HistogramsHaveRowsOfEdgesAndCounts) {
  auto scope = writer.as_default(1);
  EXPECT_TRUE(histogram("x", at::arange(4), {.buckets = 2}));
  EXPECT_TRUE(histogram("default", at::arange(4)));
  EXPECT_TRUE(histogram("none", at::arange(4), {.buckets = 0}));
  const auto found = events();
  EXPECT_EQ(found[0].plugin, "histograms");
  EXPECT_THAT(found[0].shape, ElementsAre(2, 3));
  EXPECT_THAT(found[0].numbers<double>(), ElementsAre(0, 1.5, 2, 1.5, 3, 2));
  EXPECT_THAT(found[1].shape, ElementsAre(30, 3));
  EXPECT_THAT(found[2].shape, ElementsAre(0, 3));
}

TEST_F(SummaryTest, TextsOfAnyShape) {
  auto scope = writer.as_default(0);
  EXPECT_TRUE(text("one", "**bold**"));
  EXPECT_TRUE(text("table", StringTensor({"a", "b", "c", "d"}).reshape({2, 2})));
  const auto found = events();
  EXPECT_EQ(found[0].plugin, "text");
  EXPECT_THAT(found[0].shape, IsEmpty());
  EXPECT_THAT(found[0].strings, ElementsAre("**bold**"));
  EXPECT_THAT(found[1].shape, ElementsAre(2, 2));
  EXPECT_THAT(found[1].strings, ElementsAre("a", "b", "c", "d"));
}

TEST_F(SummaryTest, ImagesArePngsAfterTheirSize) {
  auto scope = writer.as_default(0);
  const Tensor greys = at::arange(2 * 3 * 4, float32).reshape({2, 3, 4, 1}) / 12 - 0.5;
  EXPECT_TRUE(image("greys", greys, {.description = "two"}));
  EXPECT_TRUE(image("one", greys.expand({2, 3, 4, 3}), {.max_outputs = 1}));
  const auto found = events();
  ASSERT_THAT(tags_of(found), ElementsAre("greys", "one"));
  EXPECT_EQ(found[0].plugin, "images");
  ASSERT_EQ(found[0].strings.size(), 4u);
  EXPECT_EQ(found[0].strings[0], "4");
  EXPECT_EQ(found[0].strings[1], "3");
  const Tensor first = io::decode_png(found[0].strings[2]);
  EXPECT_TRUE(at::equal(first[0].squeeze(-1), at::zeros({4}, uint8)));  // below 0
  EXPECT_EQ(first[2][3][0].item<int64_t>(), 106);                       // 255.5 * (11 / 12 - 0.5)
  EXPECT_EQ(found[1].strings.size(), 3u);
  expect_error<InvalidArgumentError>([&] { image("flat", greys[0]); }, "1 to 4 channels");
  expect_error<InvalidArgumentError>([&] { image("none", greys, {.max_outputs = -1}); },
                                     "max_outputs is -1");
}

TEST_F(SummaryTest, AGraphIsAnEventOfItsOwnAndNeedsNoStep) {
  EXPECT_FALSE(graph("nodes"));
  auto scope = writer.as_default();
  EXPECT_TRUE(graph("nodes"));
  const auto found = events();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].graph, "nodes");
  EXPECT_EQ(found[0].tag, "");
}

TEST_F(SummaryTest, WithoutAWriterNothingIsRecorded) {
  EXPECT_FALSE(should_record_summaries());
  EXPECT_FALSE(scalar("loss", 1));
  EXPECT_FALSE(text("t", "no step, and nobody minds"));
  flush();
  const SummaryWriter nothing = create_noop_writer();
  auto scope = nothing.as_default(0);
  EXPECT_FALSE(scalar("loss", 1));
  EXPECT_EQ(nothing.path(), "");
  nothing.flush();
  nothing.close();
}

TEST_F(SummaryTest, TheStepIsTheCallsOrTheScopesOrTheThreads) {
  experimental::set_step(10);
  {
    auto scope = writer.as_default();
    scalar("a", 0);
    scalar("a", 0, {.step = 11});
    {
      auto with_step = writer.as_default(20);
      EXPECT_EQ(experimental::get_step(), 20);
      scalar("a", 0);
    }
    int64_t now = 30;
    experimental::set_step([&now] { return now; });
    scalar("a", 0);
    now = 31;
    scalar("a", 0);
    experimental::set_step(40);
  }
  EXPECT_EQ(experimental::get_step(), 40) << "as in TensorFlow it holds beyond as_default()";
  EXPECT_THAT(steps(), ElementsAre(10, 11, 20, 30, 31));
  experimental::set_step(std::nullopt);
  EXPECT_EQ(experimental::get_step(), std::nullopt);
  auto scope = writer.as_default();
  expect_error<InvalidArgumentError>([] { scalar("a", 0); }, "No step set: the summary 'a'");
}

TEST_F(SummaryTest, RecordIfDecides) {
  auto scope = writer.as_default(0);
  bool wanted = false;
  auto when = record_if([&] { return wanted; });
  EXPECT_FALSE(scalar("a", 0));
  wanted = true;
  EXPECT_TRUE(scalar("b", 0));
  {
    auto never = record_if(false);
    EXPECT_FALSE(should_record_summaries());
    EXPECT_FALSE(scalar("c", 0));
  }
  EXPECT_TRUE(should_record_summaries());
  EXPECT_THAT(tags_of(events()), ElementsAre("b"));
}

TEST_F(SummaryTest, TheInnermostWriterIsTheOneThatRecords) {
  const SummaryWriter other = create_file_writer(path("other"));
  auto outer = writer.as_default(0);
  {
    auto inner = other.as_default();
    scalar("inner", 0);
  }
  scalar("outer", 0);
  EXPECT_THAT(tags_of(events()), ElementsAre("outer"));
  EXPECT_THAT(tags_of(internal::read_events(internal::posix_file_system(), other.path())),
              ElementsAre("inner"))
      << "the end of its scope has flushed it";
}

TEST_F(SummaryTest, ScopesEndInOrderOnTheirThread) {
  auto outer = record_if(true);
  {
    auto inner = writer.as_default(0);
    expect_error<FailedPreconditionError>([&] { outer.close(); }, "entered later is open");
    EXPECT_TRUE(scalar("a", 0)) << "it harmed nothing";
    std::thread([&] {
      EXPECT_FALSE(scalar("other thread", 0));
      expect_error<FailedPreconditionError>([&] { inner.close(); }, "on another thread");
    }).join();
  }
  outer.close();
  outer.close();
}

TEST_F(SummaryTest, WrongShapesAreRefused) {
  auto scope = writer.as_default(0);
  expect_error<InvalidArgumentError>([] { scalar("a", at::ones({1})); },
                                     "the summary 'a' is of float32 [1]");
  expect_error<InvalidArgumentError>([] { scalar("a", Tensor()); }, "undefined tensor");
  expect_error<InvalidArgumentError>([] { histogram("a", at::ones({2}, DType::ComplexFloat)); },
                                     "give real numbers");
  expect_error<InvalidArgumentError>([] { text("\xff", "a"); }, "is not UTF-8");
  EXPECT_THAT(events(), IsEmpty());
}

TEST_F(SummaryTest, AClosedWriterSaysSo) {
  auto scope = writer.as_default(0);
  scalar("a", 0);
  writer.close();
  expect_error<FailedPreconditionError>([] { scalar("b", 0); }, "is already closed");
  expect_error<FailedPreconditionError>([&] { auto again = writer.as_default(); },
                                        "is already closed");
}

TEST_F(SummaryTest, ADirectoryThatCannotBeMadeIsAnErrorAtOnce) {
  write("file", "");
  EXPECT_THROW((void)create_file_writer(path("file")), Error);
  EXPECT_THROW((void)create_file_writer(path("file") + "/logs"), Error);
  expect_error<InvalidArgumentError>(
      [&] { (void)create_file_writer(path("logs"), {.flush_millis = -1}); }, "flush_millis -1");
}

TEST_F(SummaryTest, ThreadsShareAWriter) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto scope = writer.as_default(t);
      for (int i = 0; i < 100; ++i) scalar("x", i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> next(4);
  for (const ReadEvent& event : events()) {
    EXPECT_EQ(event.numbers<float>()[0], next[static_cast<size_t>(event.step)]++);
  }
  EXPECT_THAT(next, ElementsAre(100, 100, 100, 100));
}

TEST_F(SummaryTest, TheLastHandleWritesWhatWaits) {
  const std::string file = writer.path();
  {
    auto scope = writer.as_default(0);
    writer = create_noop_writer();
    scalar("a", 0);
  }
  EXPECT_THAT(tags_of(internal::read_events(internal::posix_file_system(), file)),
              ElementsAre("a"));
}

}  // namespace
}  // namespace cohort::summary
