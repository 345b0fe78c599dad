// Rows 39 and 40 of the fault matrix: damaged, hostile and vanished files of records, as datasets
// read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <limits>

#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/deflate.h"
#include "cohort/core/observe/logging.h"
#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::data {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr int64_t kMostExtraBytes = int64_t{64} << 20;

int64_t peak_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

struct Outcome {
  std::vector<std::string> records;
  std::vector<std::string> errors;
};

Outcome read_all(const Dataset& dataset) {
  Outcome outcome;
  auto iterator = dataset.iterator();
  while (true) {
    try {
      const auto element = iterator.next();
      if (!element) return outcome;
      outcome.records.emplace_back(element->strings().item());
    } catch (const DataLossError& error) {
      outcome.errors.emplace_back(error.what());
    }
  }
}

struct DamagedRecordFiles : FilesTest {
  DamagedRecordFiles() {
    logging::set_level(logging::Level::kError);
    good = write_records("good", {"g0", "g1"});
  }
  ~DamagedRecordFiles() override { logging::set_level(logging::Level::kInfo); }

  // Of a file of `records`, then the good one: the records before the damage, one error that names
  // the file and the byte, all of the good file; with ignore_errors the same without the error.
  void expect_damage(const std::string& file, const std::vector<std::string>& before,
                     const std::string& compression = "") {
    const TFRecordDataset strict({file, second(compression)}, {.compression_type = compression});
    const Outcome outcome = read_all(strict);
    std::vector<std::string> expected = before;
    expected.insert(expected.end(), {"g0", "g1"});
    EXPECT_EQ(outcome.records, expected);
    ASSERT_EQ(outcome.errors.size(), 1u);
    EXPECT_THAT(outcome.errors[0], HasSubstr("'" + file + "', byte "));
    const TFRecordDataset lenient({file, second(compression)},
                                  {.compression_type = compression, .ignore_errors = true});
    const Outcome left = read_all(lenient);
    EXPECT_EQ(left.records, expected);
    EXPECT_TRUE(left.errors.empty());
    EXPECT_EQ(lenient.num_skipped_files(), 1);
  }
  std::string second(const std::string& compression) {
    return compression.empty() ? good
                               : write_records("good" + compression, {"g0", "g1"}, compression);
  }

  std::string good;
};

TEST_F(DamagedRecordFiles, EveryFlippedBit) {
  const auto file = write_records("a", {"first", "second", ""});
  const std::string bytes = read("a");
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    write("a", damaged);
    std::vector<std::string> before;
    if (bit / 8 >= 21) before.emplace_back("first");
    if (bit / 8 >= 43) before.emplace_back("second");
    expect_damage(file, before);
  }
}

TEST_F(DamagedRecordFiles, EveryTruncation) {
  const auto file = write_records("a", {"first", "second"});
  const std::string bytes = read("a");
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (size == 21) continue;  // a whole file of one record
    write("a", bytes.substr(0, size));
    expect_damage(file, size < 21 ? std::vector<std::string>() : std::vector<std::string>{"first"});
  }
  for (const std::string compression : {"GZIP", "ZLIB"}) {
    write_records("a", {"first"}, compression);
    const std::string packed = read("a");
    for (size_t size = 0; size < packed.size(); ++size) {
      write("a", packed.substr(0, size));
      const Outcome outcome =
          read_all(TFRecordDataset({file, second(compression)}, {.compression_type = compression}));
      EXPECT_EQ(outcome.errors.size(), 1u) << size;
    }
  }
}

TEST_F(DamagedRecordFiles, OtherFiles) {
  expect_damage(write("text", "No records at all, just a line of text.\n"), {});
  expect_damage(write_records("gzip", {"one"}, "GZIP"), {});
  expect_damage(write("short", "x"), {});
  const TFRecordDataset strict({directory, good});
  const Outcome outcome = read_all(strict);
  EXPECT_EQ(outcome.records, (std::vector<std::string>{"g0", "g1"}));
  ASSERT_EQ(outcome.errors.size(), 1u);
  EXPECT_THAT(outcome.errors[0],
              HasSubstr("'" + directory + "' cannot be read: it is a directory"));
  const TFRecordDataset lenient({directory, good}, {.ignore_errors = true});
  EXPECT_EQ(read_all(lenient).records, outcome.records);
  EXPECT_EQ(lenient.num_skipped_files(), 1);
}

// Writers that get no record leave such files, TFRecordWriter among them.
TEST_F(DamagedRecordFiles, AnEmptyFileHasNoRecordsWhichIsSaidOnce) {
  const auto empty = write("empty", "");
  logging::set_level(logging::Level::kWarning);
  testing::internal::CaptureStderr();
  const Outcome outcome = read_all(TFRecordDataset({empty, good, empty}).repeat(2));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(outcome.records, (std::vector<std::string>{"g0", "g1", "g0", "g1"}));
  EXPECT_TRUE(outcome.errors.empty());
  EXPECT_THAT(log, HasSubstr("'" + empty + "' has no bytes"));
  EXPECT_EQ(log.find("has no bytes"), log.rfind("has no bytes"));
}

std::string header_of_length(uint64_t length) {
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  const uint32_t crc = internal::mask_crc(internal::crc32c(bytes));
  return bytes.append(reinterpret_cast<const char*>(&crc), sizeof crc);
}

TEST_F(DamagedRecordFiles, HostileLengthsTakeNoMemory) {
  const int64_t before = peak_bytes();
  for (const uint64_t length :
       {uint64_t{1} << 32, uint64_t{1} << 40, uint64_t{1} << 63,
        std::numeric_limits<uint64_t>::max() - 15, std::numeric_limits<uint64_t>::max()}) {
    const std::string bytes = header_of_length(length) + std::string(100, 'x');
    expect_damage(write("a", bytes), {});
    std::string packed;
    internal::Deflater deflater(internal::Compression::kGzip);
    deflater.deflate(bytes, packed);
    deflater.finish(packed);
    expect_damage(write("a", packed), {}, "GZIP");
  }
  EXPECT_LT(peak_bytes() - before, kMostExtraBytes);
}

// 512 MiB of zeros out of half a MiB, in one record.
TEST_F(DamagedRecordFiles, BombsTakeLittleMemory) {
  const int64_t before = peak_bytes();
  std::string packed;
  internal::Deflater deflater(internal::Compression::kGzip);
  deflater.deflate(header_of_length(uint64_t{300} << 20), packed);
  const std::string zeros(1 << 20, '\0');
  for (int i = 0; i < 512; ++i) deflater.deflate(zeros, packed);
  deflater.finish(packed);
  expect_damage(write("a", packed), {}, "GZIP");
  EXPECT_LT(peak_bytes() - before, kMostExtraBytes);
}

struct VanishedRecordFiles : DamagedRecordFiles {};

TEST_F(VanishedRecordFiles, AreNotFoundByName) {
  const auto file = write_records("a", {"one"});
  for (const bool ignore : {false, true}) {
    const TFRecordDataset dataset({path("none"), file}, {.ignore_errors = ignore});
    auto iterator = dataset.iterator();
    EXPECT_THAT(thrown<NotFoundError>([&] { iterator.next(); }), HasSubstr(path("none")));
    EXPECT_EQ(iterator.get_next().strings().item(), "one");
    EXPECT_EQ(dataset.num_skipped_files(), 0);
  }
}

// What is open stays open; a state in it finds nothing.
TEST_F(VanishedRecordFiles, WhileTheyAreRead) {
  const auto file = write_records("a", std::vector<std::string>(1000, "record"));
  const TFRecordDataset dataset({file, good}, {.buffer_size = 100});
  auto iterator = dataset.iterator();
  iterator.next();
  const IteratorState state = iterator.state();
  std::filesystem::remove(file);
  for (int i = 1; i < 1000; ++i) ASSERT_EQ(iterator.get_next().strings().item(), "record");
  EXPECT_EQ(iterator.get_next().strings().item(), "g0");
  auto restored = dataset.iterator();
  EXPECT_THAT(thrown<NotFoundError>([&] { restored.restore(state); }), HasSubstr(file));
}

TEST_F(VanishedRecordFiles, OrAreCutWhileTheyAreRead) {
  const auto file = write_records("a", std::vector<std::string>(1000, "record"));
  const TFRecordDataset dataset({file, good}, {.buffer_size = 100});
  auto iterator = dataset.iterator();
  iterator.next();
  std::filesystem::resize_file(file, 110);
  std::string text;
  while (text.empty()) {
    try {
      iterator.next();
    } catch (const DataLossError& error) {
      text = error.what();
    }
  }
  EXPECT_THAT(text, HasSubstr("'" + file + "'"));
  EXPECT_EQ(iterator.get_next().strings().item(), "g0");
}

}  // namespace
}  // namespace cohort::data
