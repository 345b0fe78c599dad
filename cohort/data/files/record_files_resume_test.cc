// Reading record files goes on where it stopped: at a state, and after a device that did not
// answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "cohort/data/files/record_files.h"
#include "cohort/data/files/testing_record_files.h"
#include "cohort/data/files/text_line_dataset.h"
#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/records/text_framing.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_device.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(RecordFiles, AMissedDeadlineTakesNoRecords) {
  const auto files = write_files({1, 4});
  std::atomic<int> timeouts = 1;
  const auto names = slow_device(2, 0, &timeouts).map([files](int64_t i) { return files[i]; });
  auto iterator = TFRecordDataset(names).batch(3).iterator();
  EXPECT_THROW(iterator.next(), DeadlineExceededError);
  EXPECT_EQ(iterator.get_next().strings().numel(), 3);
  EXPECT_THAT(iterator.get_next().strings().to_vector(), ElementsAre("12", "13"));
}

// Lines of files that do not open in time as often as `timeouts` says.
class SlowLines final : public internal::RecordFormat {
 public:
  explicit SlowLines(int* timeouts) : timeouts_(timeouts) {}
  std::string name() const override { return "SlowLines"; }
  std::shared_ptr<const internal::Framing> framing() const override {
    if (*timeouts_ == 0) return internal::make_line_framing();
    --*timeouts_;
    throw DeadlineExceededError("the file does not open");
  }

 private:
  int* timeouts_;
};

TEST_F(RecordFiles, AFileThatDoesNotOpenInTimeIsOpenedLater) {
  const std::vector<std::string> files = {write("a", "0\n1\n"), write("b", "2\n3\n"),
                                          write("c", "4\n5\n")};
  int timeouts = 0;
  for (const int64_t reads : {1, 2}) {
    const Dataset dataset(internal::make_record_files(internal::file_names(files),
                                                      std::make_shared<SlowLines>(&timeouts),
                                                      {.num_parallel_reads = reads}));
    const std::vector<std::string> all = strings(dataset);
    for (size_t position = 0; position < all.size(); ++position) {
      auto iterator = dataset.iterator();
      std::vector<std::string> found;
      while (found.size() < position) found.emplace_back(iterator.get_next().strings().item());
      timeouts = 1;
      while (found.size() < all.size()) {
        try {
          found.emplace_back(iterator.get_next().strings().item());
        } catch (const internal::InputDeadlineExceeded&) {
          auto restored = dataset.iterator();
          restored.restore(IteratorState::parse(iterator.state().serialize()));
          EXPECT_EQ(strings(restored), std::vector(all.begin() + std::ssize(found), all.end()));
        }
      }
      EXPECT_EQ(found, all);
      timeouts = 0;
    }

    auto iterator = dataset.iterator();
    for (int i = 0; i < 3; ++i) iterator.get_next();
    const IteratorState state = iterator.state();
    timeouts = 1;
    EXPECT_THROW(iterator.restore(state), internal::InputDeadlineExceeded);
    EXPECT_NO_THROW(iterator.restore(state));
    EXPECT_EQ(iterator.get_next().strings().item(), all[3]);
  }
}

void expect_records_resume(const std::function<Dataset()>& make) {
  const auto all = texts(make());
  auto iterator = make().iterator();
  for (size_t position = 0; position <= all.size(); ++position) {
    const std::string bytes = iterator.state().serialize();
    auto restored = make().iterator();
    restored.restore(IteratorState::parse(bytes));
    ASSERT_EQ(texts(restored), std::vector<std::string>(all.begin() + position, all.end()))
        << position << " of " << make().explain();
    iterator.next();
  }
}

TEST_F(RecordFiles, ResumeAtEveryPosition) {
  const auto plain = write_files({5, 0, 1, 3});
  for (const int64_t reads : {1, 3}) {
    for (const int64_t buffer : {1, 40, 1000}) {
      const RecordDatasetOptions options = {.buffer_size = buffer, .num_parallel_reads = reads};
      expect_records_resume([&] { return TFRecordDataset(plain, options); });
      expect_records_resume([&] { return TextLineDataset(plain, options).batch(2); });
      expect_records_resume(
          [&] { return TFRecordDataset(plain, options).repeat(2).batch(3).prefetch(2); });
      expect_records_resume([&] {
        const auto names = Dataset::from_tensor_slices(StringTensor(plain));
        return TFRecordDataset(names.shuffle(4, {.seed = 1}), options)
            .shuffle(3, {.seed = 2})
            .batch(2);
      });
      expect_records_resume([&] {
        return TFRecordDataset(plain, options).filter([](std::string_view record) {
          return record != "02";
        });
      });
    }
  }
  const auto packed = write_files({5, 0, 1, 3}, "GZIP");
  for (const int64_t reads : {1, 2}) {
    expect_records_resume([&] {
      return TFRecordDataset(packed, {.compression_type = "GZIP", .num_parallel_reads = reads});
    });
  }
}

// What comes before the place is not even looked at.
TEST_F(RecordFiles, ResumingDoesNotReadTheBeginningAgain) {
  const auto file = write_records("a", std::vector<std::string>(10'000, std::string(20, 'x')));
  const TFRecordDataset dataset(file, {.buffer_size = 1000});
  auto iterator = dataset.iterator();
  for (int i = 0; i < 9000; ++i) iterator.next();
  const std::string state = iterator.state().serialize();
  EXPECT_LT(state.size(), 400u);
  std::string bytes = read("a");
  std::fill(bytes.begin(), bytes.begin() + 8900 * 36, '?');
  write("a", bytes);
  auto restored = dataset.iterator();
  restored.restore(IteratorState::parse(state));
  EXPECT_EQ(strings(restored).size(), 1000u);
}

TEST_F(RecordFiles, AStateOfAFileThatHasChanged) {
  const auto file = write_records("a", {"one", "two"});
  const TFRecordDataset dataset(file);
  auto iterator = dataset.iterator();
  iterator.next();
  const IteratorState state = iterator.state();
  write("a", "");
  auto restored = dataset.iterator();
  EXPECT_THAT(thrown<DataLossError>([&] { restored.restore(state); }), HasSubstr(file));
}

}  // namespace
}  // namespace cohort::data
