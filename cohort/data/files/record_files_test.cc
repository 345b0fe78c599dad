#include "cohort/data/files/record_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/text.h"
#include "cohort/data/files/fixed_length_record_dataset.h"
#include "cohort/data/files/testing_record_files.h"
#include "cohort/data/files/text_line_dataset.h"
#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(RecordFiles, InterleaveTakesTheTypeOfADataset) {
  const Dataset files = Dataset::list_files(write_files({2, 2}), {.shuffle = false});
  const auto expected = ElementsAre("00", "10", "01", "11");
  EXPECT_THAT(strings(files.interleave<TFRecordDataset>()), expected);
  EXPECT_THAT(strings(files.interleave<TFRecordDataset>({.block_length = 1})), expected);
  EXPECT_THAT(strings(files.interleave([](auto file) { return TFRecordDataset(file); })), expected);
  EXPECT_THAT(strings(files.flat_map<TFRecordDataset>()), ElementsAre("00", "01", "10", "11"));
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
      outcomes(FixedLengthRecordDataset({file}, 5)),
      ElementsAre("\"HHabc\"", AllOf(HasSubstr("DATA_LOSS"), HasSubstr("byte 5: after 1"))));
  EXPECT_THROW(FixedLengthRecordDataset("a", 0), InvalidArgumentError);
  EXPECT_THROW(FixedLengthRecordDataset("a", 1, {.header_bytes = -1}), InvalidArgumentError);
}

TEST_F(RecordFiles, TheFooterMayBeReachedSeveralTimes) {
  const auto file = write("a", "HHabcdefghiF");
  const FixedLengthRecordDataset dataset({file, file}, 3, {.header_bytes = 2, .footer_bytes = 1});
  EXPECT_THAT(outcomes(dataset.batch(2)),
              ElementsAre("[\"abc\", \"def\"]", "[\"ghi\", \"abc\"]", "[\"def\", \"ghi\"]"));
  EXPECT_THAT(outcomes(dataset.batch(4)),
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
  EXPECT_THAT(outcomes(TFRecordDataset(files)),
              ElementsAre("\"00\"", damaged, "\"10\"", "\"11\"", "\"12\""));
  EXPECT_THAT(outcomes(TFRecordDataset(files, {.num_parallel_reads = 2})),
              ElementsAre("\"00\"", "\"10\"", damaged, "\"11\"", "\"12\""));
  // It takes its batch with it, and no other.
  EXPECT_THAT(outcomes(TFRecordDataset(files).batch(2)),
              ElementsAre(damaged, "[\"10\", \"11\"]", "[\"12\"]"));
  EXPECT_THAT(outcomes(TFRecordDataset(files, {.num_parallel_reads = 2}).batch(2)),
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
    EXPECT_THAT(outcomes(TFRecordDataset(files, {.ignore_errors = ignore})),
                ElementsAre("\"00\"", missing, "\"10\""));
  }
  EXPECT_THAT(outcomes(TFRecordDataset(directory)),
              ElementsAre(AllOf(HasSubstr("DATA_LOSS"), HasSubstr("a directory"))));
  EXPECT_THAT(outcomes(TFRecordDataset(Dataset::range(1))),
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
  EXPECT_THAT(outcomes(dataset), ElementsAre(HasSubstr("no name"), "\"10\""));
  const TFRecordDataset numbers(Dataset::range(1), {.ignore_errors = true});
  EXPECT_THAT(outcomes(numbers), ElementsAre(HasSubstr("file names must be string scalars")));
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
    EXPECT_THAT(outcomes(dataset),
                testing::Contains(AllOf(HasSubstr("file " + file), HasSubstr("no such thing"),
                                        Not(HasSubstr("batch")))))
        << dataset.explain();
  }
  EXPECT_THAT(outcomes(direct.batch(3).map(fail_batch)),
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
