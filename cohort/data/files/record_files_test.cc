#include "cohort/data/files/record_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "cohort/core/logging.h"
#include "cohort/core/text.h"
#include "cohort/data/auto_shard.h"
#include "cohort/data/fixed_length_record_dataset.h"
#include "cohort/data/records/text_framing.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_device.h"
#include "cohort/data/testing_files.h"
#include "cohort/data/text_line_dataset.h"
#include "cohort/data/tfrecord_dataset.h"

namespace cohort::data {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

std::vector<std::string> strings(DatasetIterator& iterator) {
  std::vector<std::string> all;
  while (auto element = iterator.next()) {
    for (std::string& value : element->strings().to_vector()) all.push_back(std::move(value));
  }
  return all;
}
std::vector<std::string> strings(const Dataset& dataset) {
  auto iterator = dataset.iterator();
  return strings(iterator);
}

struct RecordFiles : FilesTest {
  // "00", "01", ... in the first file, "10", ... in the second.
  std::vector<std::string> write_files(const std::vector<int>& sizes,
                                       const std::string& compression = "") {
    std::vector<std::string> files;
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::vector<std::string> records;
      for (int k = 0; k < sizes[i]; ++k) records.push_back(internal::str(i, k));
      files.push_back(write_records(internal::str("f", i), records, compression));
    }
    return files;
  }
  void flip(const std::string& name, size_t byte) {
    std::string bytes = read(name);
    bytes.at(byte) ^= 1;
    write(name, bytes);
  }
};

// Each element, or the text of its error.
std::vector<std::string> record_outcomes(const Dataset& dataset) {
  auto iterator = dataset.iterator();
  std::vector<std::string> all;
  while (true) {
    try {
      const auto element = iterator.next();
      if (!element) return all;
      all.push_back(internal::str(*element));
    } catch (const Error& error) {
      all.push_back(internal::str(code_name(error.code()), ": ", error.what()));
    }
  }
}

TEST_F(RecordFiles, OneAfterAnother) {
  const auto files = write_files({2, 0, 3});
  EXPECT_THAT(strings(TFRecordDataset(files)), ElementsAre("00", "01", "20", "21", "22"));
  EXPECT_THAT(strings(TFRecordDataset(files[2])), ElementsAre("20", "21", "22"));
  EXPECT_THAT(strings(TFRecordDataset({files[2], files[0]})),
              ElementsAre("20", "21", "22", "00", "01"));
  EXPECT_THAT(strings(TFRecordDataset(StringTensor(files)).take(1)), ElementsAre("00"));
  const auto names = Dataset::from_tensor_slices(StringTensor(files)).skip(2).repeat(2);
  EXPECT_THAT(strings(TFRecordDataset(names)), ElementsAre("20", "21", "22", "20", "21", "22"));
  EXPECT_THAT(strings(TFRecordDataset(std::vector<std::string>())), IsEmpty());
}

TEST_F(RecordFiles, Compressed) {
  for (const std::string compression : {"GZIP", "ZLIB"}) {
    const auto files = write_files({2, 0, 3}, compression);
    EXPECT_THAT(strings(TFRecordDataset(files, {.compression_type = compression})),
                ElementsAre("00", "01", "20", "21", "22"));
  }
  EXPECT_THROW(TFRecordDataset("a", {.compression_type = "gzip"}), InvalidArgumentError);
}

// The orders are those of tf.data 2.15.
TEST_F(RecordFiles, SeveralInTurn) {
  const auto in_turn = [&](const std::vector<int>& sizes, int64_t reads) {
    return strings(TFRecordDataset(write_files(sizes), {.num_parallel_reads = reads}));
  };
  EXPECT_THAT(in_turn({1, 3, 0, 4}, 2),
              ElementsAre("00", "10", "11", "12", "30", "31", "32", "33"));
  EXPECT_THAT(in_turn({4, 0, 1, 1}, 2), ElementsAre("00", "01", "20", "02", "03", "30"));
  EXPECT_THAT(in_turn({2, 0, 4, 4}, 3),
              ElementsAre("00", "20", "01", "30", "21", "31", "22", "32", "23", "33"));
  EXPECT_EQ(in_turn({4, 3, 4, 1, 2, 2}, AUTOTUNE), in_turn({4, 3, 4, 1, 2, 2}, 10));
  EXPECT_THROW(TFRecordDataset("a", {.num_parallel_reads = 0}), InvalidArgumentError);
  EXPECT_THROW(TFRecordDataset("a", {.buffer_size = 0}), InvalidArgumentError);
}

TEST_F(RecordFiles, BatchesGoAcrossFiles) {
  const auto files = write_files({5, 1, 3});
  for (const int64_t buffer : {1, 100, 1 << 20}) {
    EXPECT_THAT(texts(TFRecordDataset(files, {.buffer_size = buffer}).batch(4)),
                ElementsAre("[\"00\", \"01\", \"02\", \"03\"]", "[\"04\", \"10\", \"20\", \"21\"]",
                            "[\"22\"]"));
  }
}

TEST_F(RecordFiles, LargeRecordsAreNotCopied) {
  const std::string large(100'000, 'x');
  const TFRecordDataset dataset(write_records("a", {large, large, large}),
                                {.buffer_size = 1 << 20});
  auto iterator = dataset.iterator();
  const char* first = iterator.get_next().strings().item().data();
  EXPECT_EQ(iterator.get_next().strings().item().data(), first + large.size() + 16);
  const Structure batch = dataset.batch(3).iterator().get_next();
  EXPECT_EQ(batch.strings()[2].data(), batch.strings()[0].data() + 2 * (large.size() + 16));
}

TEST_F(RecordFiles, Lines) {
  const auto file = write("a", "one\r\n\ntwo");
  EXPECT_THAT(strings(TextLineDataset(file)), ElementsAre("one", "", "two"));
  EXPECT_THAT(strings(TextLineDataset({file, file}, {.num_parallel_reads = 2})),
              ElementsAre("one", "one", "", "", "two", "two"));
  EXPECT_THAT(strings(TextLineDataset(Dataset::from_tensors(StringTensor::scalar(file)))),
              ElementsAre("one", "", "two"));
}

TEST_F(RecordFiles, RecordsOfOneLength) {
  const auto file = write("a", "HHabcdefF");
  EXPECT_THAT(strings(FixedLengthRecordDataset(file, 3, {.header_bytes = 2, .footer_bytes = 1})),
              ElementsAre("abc", "def"));
  EXPECT_THAT(
      record_outcomes(FixedLengthRecordDataset({file}, 5)),
      ElementsAre("\"HHabc\"", AllOf(HasSubstr("DATA_LOSS"), HasSubstr("byte 5: after 1"))));
  EXPECT_THROW(FixedLengthRecordDataset("a", 0), InvalidArgumentError);
  EXPECT_THROW(FixedLengthRecordDataset("a", 1, {.header_bytes = -1}), InvalidArgumentError);
}

TEST_F(RecordFiles, TheFooterMayBeReachedSeveralTimes) {
  const auto file = write("a", "HHabcdefghiF");
  const FixedLengthRecordDataset dataset({file, file}, 3, {.header_bytes = 2, .footer_bytes = 1});
  EXPECT_THAT(record_outcomes(dataset.batch(2)),
              ElementsAre("[\"abc\", \"def\"]", "[\"ghi\", \"abc\"]", "[\"def\", \"ghi\"]"));
  EXPECT_THAT(record_outcomes(dataset.batch(4)),
              ElementsAre("[\"abc\", \"def\", \"ghi\", \"abc\"]", "[\"def\", \"ghi\"]"));
  auto iterator = dataset.iterator();
  EXPECT_EQ(strings(iterator).size(), 6u);
  EXPECT_FALSE(iterator.next());
}

TEST_F(RecordFiles, SaysWhatItIs) {
  const TFRecordDataset dataset(
      "a", {.compression_type = "GZIP", .num_parallel_reads = 2, .ignore_errors = true});
  EXPECT_EQ(dataset.element_spec(), TensorSpec::strings(std::vector<int64_t>{}));
  EXPECT_EQ(dataset.cardinality(), kUnknownCardinality);
  EXPECT_THAT(dataset.explain(),
              HasSubstr("TFRecordDataset(compression_type=GZIP, num_parallel_reads=2, "
                        "ignore_errors=true)"));
  EXPECT_EQ(dataset.node()->source(), internal::SourceKind::kFiles);
  EXPECT_THAT(FixedLengthRecordDataset("a", 7, {.header_bytes = 2}).explain(),
              HasSubstr("FixedLengthRecordDataset(record_bytes=7, header_bytes=2)"));
}

TEST_F(RecordFiles, DamageEndsItsFileOnly) {
  const auto files = write_files({3, 3});
  flip("f0", 18 + 12);  // the data of the second record
  const auto damaged = AllOf(HasSubstr("DATA_LOSS"), HasSubstr(files[0] + "', byte 18: record 1"));
  EXPECT_THAT(record_outcomes(TFRecordDataset(files)),
              ElementsAre("\"00\"", damaged, "\"10\"", "\"11\"", "\"12\""));
  EXPECT_THAT(record_outcomes(TFRecordDataset(files, {.num_parallel_reads = 2})),
              ElementsAre("\"00\"", "\"10\"", damaged, "\"11\"", "\"12\""));
  // It takes its batch with it, and no other.
  EXPECT_THAT(record_outcomes(TFRecordDataset(files).batch(2)),
              ElementsAre(damaged, "[\"10\", \"11\"]", "[\"12\"]"));
  EXPECT_THAT(record_outcomes(TFRecordDataset(files, {.num_parallel_reads = 2}).batch(2)),
              ElementsAre("[\"00\", \"10\"]", damaged, "[\"12\"]"));
}

TEST_F(RecordFiles, DamageCanBeLeftOut) {
  auto files = write_files({3, 3});
  flip("f0", 18 + 12);
  files.push_back(write("no_records", "This is something else altogether."));
  files.push_back(directory);
  const TFRecordDataset dataset(files, {.ignore_errors = true});
  testing::internal::CaptureStderr();
  EXPECT_THAT(strings(dataset), ElementsAre("00", "10", "11", "12"));
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr(files[0] + "', byte 18"), HasSubstr("the rest of the file is left out")));
  EXPECT_EQ(dataset.num_skipped_files(), 3);
  strings(dataset.batch(2));
  EXPECT_EQ(dataset.num_skipped_files(), 6);
}

TEST_F(RecordFiles, MissingFilesAreErrors) {
  auto files = write_files({1, 1});
  files.insert(files.begin() + 1, path("none"));
  const auto missing = AllOf(HasSubstr("NOT_FOUND"), HasSubstr(path("none")));
  for (const bool ignore : {false, true}) {
    EXPECT_THAT(record_outcomes(TFRecordDataset(files, {.ignore_errors = ignore})),
                ElementsAre("\"00\"", missing, "\"10\""));
  }
  EXPECT_THAT(record_outcomes(TFRecordDataset(directory)),
              ElementsAre(AllOf(HasSubstr("DATA_LOSS"), HasSubstr("a directory"))));
  EXPECT_THAT(record_outcomes(TFRecordDataset(Dataset::range(1))),
              ElementsAre(HasSubstr("file names must be string scalars")));
}

// Errors of the names are none of a file, and none of a file's records.
TEST_F(RecordFiles, ErrorsOfTheNamesAreNotLeftOut) {
  const auto files = write_files({1, 1});
  const auto names = Dataset::from_tensor_slices(StringTensor(files))
                         .map([first = files[0]](const StringTensor& name) {
                           if (name.item() == first) throw DataLossError("no name");
                           return name;
                         });
  const TFRecordDataset dataset(names, {.ignore_errors = true});
  EXPECT_THAT(record_outcomes(dataset), ElementsAre(HasSubstr("no name"), "\"10\""));
  const TFRecordDataset numbers(Dataset::range(1), {.ignore_errors = true});
  EXPECT_THAT(record_outcomes(numbers),
              ElementsAre(HasSubstr("file names must be string scalars")));
  EXPECT_EQ(dataset.num_skipped_files() + numbers.num_skipped_files(), 0);
}

// Each is far less than the block that was read, whose memory is used again while all are held.
TEST_F(RecordFiles, SmallBatchesKeepTheirRecords) {
  std::vector<std::string> files, expected;
  for (const int length : {0, 1, 40, 300}) {
    std::vector<std::string> records;
    for (int i = 0; i < 500; ++i) {
      records.emplace_back(static_cast<size_t>(length + i % 3), static_cast<char>('a' + i % 26));
    }
    expected.insert(expected.end(), records.begin(), records.end());
    files.push_back(write_records(internal::str("of ", length), records));
  }
  std::vector<StringTensor> held;
  for (const Structure& batch : TFRecordDataset(files, {.buffer_size = 4096}).batch(3)) {
    held.push_back(batch.strings());
  }
  std::vector<std::string> found;
  for (const StringTensor& batch : held) {
    for (int64_t i = 0; i < batch.numel(); ++i) found.emplace_back(batch[i]);
  }
  EXPECT_EQ(found, expected);
}

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
  EXPECT_THAT(error_text<DataLossError>([&] { restored.restore(state); }), HasSubstr(file));
}

TEST_F(RecordFiles, AreDividedBetweenWorkers) {
  const auto files = write_files(std::vector<int>(10, 2));
  const auto part = [](const Dataset& dataset) {
    return strings(auto_shard(dataset.batch(2).unbatch(), {.num_workers = 5, .index = 3}));
  };
  EXPECT_THAT(part(TFRecordDataset(files)), ElementsAre("30", "31", "80", "81"));
  EXPECT_THAT(part(TFRecordDataset(files, {.num_parallel_reads = 2})),
              ElementsAre("30", "80", "31", "81"));
  // Names are shuffled after they are divided.
  EXPECT_THAT(part(TFRecordDataset(Dataset::list_files(path("f*")))),
              UnorderedElementsAre("30", "31", "80", "81"));
  EXPECT_THROW(part(TFRecordDataset(files[0])), InvalidArgumentError);
}

// The guides' pipelines: names of files, a reader for each.
TEST_F(RecordFiles, OfDatasetsInTurnAreDividedBetweenWorkers) {
  const auto files = write_files(std::vector<int>(4, 2));
  const auto part = [](const Dataset& dataset, AutoShardPolicy policy) {
    Options options;
    options.experimental_distribute.auto_shard_policy = policy;
    return strings(auto_shard(dataset.with_options(options), {.num_workers = 2, .index = 1}));
  };
  const Dataset names = Dataset::from_tensor_slices(StringTensor(files));
  const auto read = [](const StringTensor& name) {
    return TFRecordDataset(std::string(name.item()));
  };
  for (const AutoShardPolicy policy : {AutoShardPolicy::FILE, AutoShardPolicy::AUTO}) {
    EXPECT_THAT(part(names.flat_map(read), policy), ElementsAre("10", "11", "30", "31"));
    EXPECT_THAT(part(names.interleave(read, {.cycle_length = 2}), policy),
                ElementsAre("10", "30", "11", "31"));
    EXPECT_THAT(part(names.shuffle(4).interleave(read).batch(2).prefetch(1), policy),
                UnorderedElementsAre("10", "11", "30", "31"));
    // A reader below a function that reads no files.
    EXPECT_THAT(part(TFRecordDataset(files).flat_map(
                         [](const StringTensor& record) { return Dataset::from_tensors(record); }),
                     policy),
                ElementsAre("10", "11", "30", "31"));
  }
  const auto from_nowhere =
      names.flat_map([](const StringTensor& name) { return Dataset::from_tensors(name); });
  EXPECT_THROW(part(from_nowhere, AutoShardPolicy::FILE), NotFoundError);
}

// One file for all would hold whichever worker's elements came last.
TEST_F(RecordFiles, OfEachWorkerAreCachedInAFileOfItsOwn) {
  const auto files = write_files({2, 2});
  const auto part = [&](int64_t index) {
    return strings(auto_shard(TFRecordDataset(files).cache(path("cache")).batch(1),
                              {.num_workers = 2, .index = index}));
  };
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(part(0), ElementsAre("00", "01"));
    EXPECT_THAT(part(1), ElementsAre("10", "11"));
  }
  EXPECT_TRUE(std::filesystem::exists(path("cache-worker-1-of-2")));
}

TEST_F(RecordFiles, AreNamedByErrorsOfMapsAboveThem) {
  const auto files = write_files({2, 2});
  const auto fail = [](const StringTensor& record) -> StringTensor {
    if (record.item() == "10") throw NotFoundError("no such thing");
    return record;
  };
  const auto fail_batch = [](const StringTensor& records) -> StringTensor {
    for (int64_t i = 0; i < records.numel(); ++i) {
      if (records[i] == "10") throw NotFoundError("no such thing");
    }
    return records;
  };
  const auto read = [](const StringTensor& name) {
    return TFRecordDataset(std::string(name.item()));
  };
  const Dataset names = Dataset::from_tensor_slices(StringTensor(files));
  const TFRecordDataset direct(files);
  const std::string file = internal::quoted(files[1]);
  for (const Dataset& dataset :
       {direct.map(fail), direct.map(fail, {.num_parallel_calls = 2}), direct.prefetch(2).map(fail),
        direct.repeat(1).skip(1).take(3).map(fail), direct.ignore_errors().map(fail),
        direct.concatenate(direct).map(fail), names.interleave(read).map(fail),
        names.flat_map(read).shard(2, 0).map(fail),
        names.interleave(read, {.cycle_length = 2, .num_parallel_calls = 2}).map(fail),
        direct.filter([](const StringTensor&) { return true; }).map(fail)}) {
    EXPECT_THAT(record_outcomes(dataset),
                testing::Contains(AllOf(HasSubstr("file " + file), HasSubstr("no such thing"),
                                        Not(HasSubstr("batch")))))
        << dataset.explain();
  }
  EXPECT_THAT(record_outcomes(direct.batch(3).map(fail_batch)),
              testing::Contains(AllOf(HasSubstr("a batch that ends in file " + file),
                                      HasSubstr("no such thing"))));
}

TEST_F(RecordFiles, SkippingLeavesFilesOut) {
  const auto files = write_files({5, 2, 3});
  for (const int64_t reads : {1, 2}) {
    const TFRecordDataset dataset(files, {.num_parallel_reads = reads});
    const auto all = strings(dataset);
    for (int64_t n = 0; n <= 11; ++n) {
      EXPECT_EQ(strings(dataset.skip(n)),
                std::vector<std::string>(all.begin() + std::min<int64_t>(n, 10), all.end()));
    }
  }
}

}  // namespace
}  // namespace cohort::data
