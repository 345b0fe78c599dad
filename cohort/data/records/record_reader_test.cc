#include "cohort/data/records/record_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <limits>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/deflate.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/data/records/csv.h"
#include "cohort/data/records/testing_records.h"
#include "cohort/data/records/text_framing.h"
#include "cohort/data/records/tfrecord_framing.h"

namespace cohort::internal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct RecordReaderTest : RecordFilesTest {
  std::unique_ptr<RecordReader> open(const std::string& path, Compression compression = {},
                                     const RecordReaderOptions& options = {}) {
    return open_records(files, path, compression, make_tfrecord_framing(), options);
  }
};

TEST_F(RecordReaderTest, ReadsWhatTheWriterWrote) {
  const auto records = sample_records(200);
  for (const Compression compression :
       {Compression::kNone, Compression::kGzip, Compression::kZlib}) {
    write_records("a", records, compression);
    for (const size_t buffer : {1, 100, 4096, 1 << 20}) {
      const auto reader = open("a", compression, {.buffer_bytes = buffer});
      EXPECT_EQ(read_all(*reader), records);
      EXPECT_THAT(reader->next().records, IsEmpty());
    }
  }
}

TEST_F(RecordReaderTest, RunsSayWhereTheyAre) {
  write_records("a", {"one", "", "three"});
  const auto reader = open("a");
  const RecordRun run = reader->next();
  EXPECT_EQ(run.begin, RecordPosition());
  EXPECT_EQ(run.records[1].data() - run.bytes.data(), 16 + 3 + 12);
  EXPECT_EQ(run.bytes.size(), 3 * 16 + 8u);
  EXPECT_EQ(reader->position(), (RecordPosition{.offset = 56, .index = 3}));
}

TEST_F(RecordReaderTest, GoesOnFromAnyPosition) {
  const auto records = sample_records(50);
  for (const Compression compression : {Compression::kNone, Compression::kGzip}) {
    write_records("a", records, compression);
    const RecordReaderOptions options = {.buffer_bytes = 200};
    const auto reader = open("a", compression, options);
    while (true) {
      const RecordPosition position = reader->position();
      const auto other = open("a", compression, options);
      read_all(*other);
      other->seek(position);
      EXPECT_EQ(read_all(*other),
                std::vector<std::string>(records.begin() + position.index, records.end()));
      if (reader->next().records.empty()) break;
    }
    EXPECT_THROW(reader->seek({.offset = 1 << 20, .index = 0}), DataLossError);
  }
}

TEST_F(RecordReaderTest, MemoryOfRunsIsReusedWhenNobodyHoldsIt) {
  write_records("a", std::vector<std::string>(100, std::string(1000, 'x')));
  const auto reader = open("a", {}, {.buffer_bytes = 5000});
  const RecordRun kept = reader->next();
  std::set<const void*> places;
  for (RecordRun run = reader->next(); !run.records.empty(); run = reader->next()) {
    places.insert(run.memory->bytes.get());
  }
  EXPECT_LE(places.size(), 4u);
  EXPECT_FALSE(places.contains(kept.memory->bytes.get()));
  EXPECT_EQ(kept.records[0], std::string(1000, 'x'));
}

TEST_F(RecordReaderTest, LargeRecordsAreNotCopiedMoreThanOnce) {
  write_records("a", std::vector<std::string>(20, std::string(100'000, 'x')));
  const auto reader = open("a", {}, {.buffer_bytes = 1000});
  size_t runs = 0;
  for (RecordRun run = reader->next(); !run.records.empty(); run = reader->next()) ++runs;
  EXPECT_LE(runs, 10u);  // several records a run, although the buffer would hold none
}

TEST_F(RecordReaderTest, AnEmptyFileHasNoRecords) {
  files.set_content("a", "");
  EXPECT_THAT(read_all(*open("a")), IsEmpty());
  write_records("a", {}, Compression::kGzip);
  EXPECT_THAT(read_all(*open("a", Compression::kGzip)), IsEmpty());
}

TEST_F(RecordReaderTest, EveryFlippedBitIsFoundWhereItIs) {
  const std::vector<std::string> records = {"first", "second record", "third"};
  write_records("a", records);
  std::string bytes = files.content("a");
  const size_t starts[] = {0, 21, 50, 71};
  for (size_t byte = 0; byte < bytes.size(); ++byte) {
    for (const int bit : {0, 7}) {
      bytes[byte] ^= 1 << bit;
      files.set_content("a", bytes);
      const size_t damaged = byte < starts[1] ? 0 : byte < starts[2] ? 1 : 2;
      const auto reader = open("a");
      if (damaged > 0) {
        EXPECT_EQ(reader->next().records.size(), damaged);
      }
      const std::string text = data_loss([&] { reader->next(); });
      EXPECT_THAT(text, AllOf(HasSubstr(str("'a', byte ", starts[damaged], ": record ", damaged)),
                              HasSubstr("checksum")));
      EXPECT_EQ(data_loss([&] { reader->next(); }), text);  // it stays there
      bytes[byte] ^= 1 << bit;
    }
  }
}

// Checksums of short records are taken together: damage takes along none of those before it.
TEST_F(RecordReaderTest, DamageAmongManyRecordsIsFoundWhereItIs) {
  std::vector<std::string> records;
  for (size_t i = 0; i < 60; ++i) records.emplace_back(i % 23 == 22 ? 300 : i % 7, 'x');
  write_records("a", records);
  const std::string whole = files.content("a");
  size_t start = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    for (const size_t byte : {size_t{0}, 12 + records[i].size()}) {  // its length, its checksum
      std::string bytes = whole;
      bytes[start + byte] ^= 1;
      files.set_content("a", bytes);
      const auto reader = open("a");
      if (i > 0) {
        const RecordRun run = reader->next();
        EXPECT_TRUE(std::equal(run.records.begin(), run.records.end(), records.begin(),
                               records.begin() + static_cast<ptrdiff_t>(i)))
            << i;
      }
      EXPECT_THAT(data_loss([&] { reader->next(); }),
                  HasSubstr(str("'a', byte ", start, ": record ", i, " is damaged")));
    }
    start += 16 + records[i].size();
  }
}

TEST_F(RecordReaderTest, EveryTruncationIsFoundWhereItIs) {
  write_records("a", {"first", "second"});
  const std::string bytes = files.content("a");
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (size == 21) continue;  // the file ends with its first record
    files.set_content("a", bytes.substr(0, size));
    const auto reader = open("a");
    if (size > 21) {
      EXPECT_THAT(reader->next().records, ElementsAre("first"));
    }
    EXPECT_THAT(data_loss([&] { reader->next(); }),
                HasSubstr(str("'a', byte ", size > 21 ? 21 : 0, ": record ", size > 21)));
  }
}

TEST_F(RecordReaderTest, EveryTruncationOfACompressedFileIsFound) {
  for (const Compression compression : {Compression::kGzip, Compression::kZlib}) {
    write_records("a", {"first", "second"}, compression);
    const std::string bytes = files.content("a");
    for (size_t size = 0; size < bytes.size(); ++size) {
      files.set_content("a", bytes.substr(0, size));
      const auto reader = open("a", compression);
      EXPECT_THAT(data_loss([&] { read_all(*reader); }), HasSubstr("'a', byte ")) << size;
    }
    files.set_content("a", bytes + "?");
    EXPECT_THAT(data_loss([&] { read_all(*open("a", compression)); }),
                HasSubstr("of the compressed file"));
  }
}

TEST_F(RecordReaderTest, GzipFilesMayBeSeveralPutTogether) {
  write_records("a", {"one"}, Compression::kGzip);
  const std::string first = files.content("a");
  write_records("a", {"two"}, Compression::kGzip);
  files.set_content("a", first + files.content("a"));
  EXPECT_THAT(read_all(*open("a", Compression::kGzip)), ElementsAre("one", "two"));
}

// A length with the right checksum, of which nothing is there.
std::string header_of_length(uint64_t length) {
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  const uint32_t crc = mask_crc(crc32c(bytes));
  return bytes.append(reinterpret_cast<const char*>(&crc), sizeof crc);
}

TEST_F(RecordReaderTest, ALengthIsNotBelieved) {
  for (const uint64_t length :
       {uint64_t{6}, uint64_t{1} << 40, uint64_t{1} << 63,
        std::numeric_limits<uint64_t>::max() - 15, std::numeric_limits<uint64_t>::max()}) {
    files.set_content("a", header_of_length(length) + "12345" + "crc.");
    EXPECT_THAT(data_loss([&] { read_all(*open("a")); }),
                HasSubstr(str("'a', byte 0: record 0 is cut short: it has ", length, " bytes")));
  }
}

TEST_F(RecordReaderTest, ABombIsRefusedBeforeItTakesMemory) {
  std::string packed;
  Deflater deflater(Compression::kGzip);
  deflater.deflate(header_of_length(100 << 20), packed);
  const std::string zeros(1 << 20, '\0');
  for (int i = 0; i < 100; ++i) deflater.deflate(zeros, packed);
  deflater.finish(packed);
  files.set_content("a", packed);
  const RecordReaderOptions options = {.max_record_bytes = 1 << 20};
  EXPECT_THAT(data_loss([&] { read_all(*open("a", Compression::kGzip, options)); }),
              HasSubstr("record 0 has 104857616 bytes; a record of a compressed file may have"));
  // Without a length, by what comes.
  const auto lines = open_records(files, "a", Compression::kGzip, make_line_framing(), options);
  EXPECT_THAT(data_loss([&] { read_all(*lines); }), HasSubstr("has more than 1048576 bytes"));
}

TEST_F(RecordReaderTest, ARecordWithoutAnEndIsRefusedBeforeItTakesMemory) {
  const RecordReaderOptions options = {.buffer_bytes = 100, .max_record_bytes = 1000};
  const auto read = [&](const std::string& content, std::shared_ptr<const Framing> framing) {
    files.set_content("a", content);
    return read_all(*open_records(files, "a", Compression::kNone, std::move(framing), options));
  };
  const std::string row(50, 'x');
  std::string rows = row + "\n\"" + row + "\n";
  for (int i = 0; i < 100; ++i) rows += row + "\n";
  EXPECT_THAT(data_loss([&] { read(rows, make_csv_framing({})); }),
              HasSubstr("'a', byte 51: record 1 has more than 1000 bytes; is a quotation mark not "
                        "closed"));
  EXPECT_THAT(data_loss([&] { read(std::string(2000, 'x'), make_line_framing()); }),
              HasSubstr("record 0 has more than 1000 bytes"));
  // What says how long it is, and is there, is read.
  const std::string large(2000, 'x');
  EXPECT_THAT(read(large + large, make_fixed_length_framing({.record_bytes = 2000})),
              ElementsAre(large, large));
  write_records("b", {large});
  EXPECT_THAT(read(files.content("b"), make_tfrecord_framing()), ElementsAre(large));
}

TEST_F(RecordReaderTest, OtherFilesAreSaidNotToBeTFRecord) {
  files.set_content("a", "This is a file of text, and nothing else.");
  EXPECT_THAT(data_loss([&] { read_all(*open("a")); }), HasSubstr("is it a TFRecord file"));
  write_records("a", {"one"}, Compression::kGzip);
  EXPECT_THAT(data_loss([&] { read_all(*open("a")); }), HasSubstr("compression_type = \"GZIP\""));
}

TEST_F(RecordReaderTest, AnErrorThatDoesNotComeTwiceIsNone) {
  const auto records = sample_records(100);
  for (const Compression compression : {Compression::kNone, Compression::kGzip}) {
    write_records("a", records, compression);
    const int64_t before = files.calls();
    read_all(*open("a", compression, {.buffer_bytes = 500}));
    const int64_t calls = files.calls() - before;
    ASSERT_GE(calls, 2);
    for (int64_t call = 1; call <= calls; ++call) {
      files.set_faults({.fail_at = files.calls() + call});
      EXPECT_EQ(read_all(*open("a", compression, {.buffer_bytes = 500})), records) << call;
      files.set_faults({.fail_at = files.calls() + call, .stays_broken = true});
      EXPECT_THAT(data_loss([&] { read_all(*open("a", compression, {.buffer_bytes = 500})); }),
                  HasSubstr("'a'"));
      files.set_faults({});
    }
  }
}

TEST_F(RecordReaderTest, ADeviceThatDoesNotAnswerIsAnErrorAndMayAnswerLater) {
  write_records("a", sample_records(100));
  const RecordReaderOptions options = {.buffer_bytes = 500,
                                       .deadline = {std::chrono::milliseconds(20)}};
  const auto stalled = std::make_shared<std::promise<void>>();
  const auto answer = stalled->get_future().share();
  files.set_hook([answer](const std::string&) { answer.wait(); });
  EXPECT_THROW(open("a", Compression::kNone, options), DeadlineExceededError);
  files.set_hook(nullptr);
  const auto reader =
      open("a", Compression::kNone, {.buffer_bytes = 500, .deadline = {std::chrono::seconds(50)}});
  reader->next();
  const auto impatient = open("a", Compression::kNone, options);
  files.set_hook([answer](const std::string&) { answer.wait(); });
  try {
    impatient->next();
    ADD_FAILURE() << "a read that never comes back";
  } catch (const DeadlineExceededError& error) {
    EXPECT_THAT(error.what(), HasSubstr("reading 'a' at byte 0 has not come back within 20 ms"));
  }
  stalled->set_value();
  files.set_hook(nullptr);
  EXPECT_EQ(read_all(*impatient), sample_records(100));
}

TEST_F(RecordReaderTest, FilesThatAreNotThere) {
  EXPECT_THROW(open("none"), NotFoundError);
  files.make_directories("directory");
  EXPECT_THROW(open("directory"), DataLossError);
}

TEST_F(RecordReaderTest, Lines) {
  const auto lines = [&](const std::string& content, size_t buffer) {
    files.set_content("a", content);
    return read_all(*open_records(files, "a", {}, make_line_framing(), {.buffer_bytes = buffer}));
  };
  for (const size_t buffer : {1, 1 << 20}) {
    EXPECT_THAT(lines("", buffer), IsEmpty());
    EXPECT_THAT(lines("\n", buffer), ElementsAre(""));
    EXPECT_THAT(lines("a\n\nb\r\nc", buffer), ElementsAre("a", "", "b", "c"));
    const std::string long_line(1000, 'x');
    EXPECT_THAT(lines(long_line + "\n" + long_line, buffer), ElementsAre(long_line, long_line));
  }
}

TEST_F(RecordReaderTest, RecordsOfOneLength) {
  const auto read = [&](const std::string& content, const FixedLength& layout, size_t buffer) {
    files.set_content("a", content);
    return read_all(
        *open_records(files, "a", {}, make_fixed_length_framing(layout), {.buffer_bytes = buffer}));
  };
  for (const size_t buffer : {1, 1 << 20}) {
    const FixedLength layout = {.record_bytes = 3, .header_bytes = 2, .footer_bytes = 1};
    EXPECT_THAT(read("HHabcdefF", layout, buffer), ElementsAre("abc", "def"));
    EXPECT_THAT(read("HHF", layout, buffer), IsEmpty());
    EXPECT_THAT(read("", {.record_bytes = 3}, buffer), IsEmpty());
    EXPECT_THAT(
        read(std::string(100, 'H') + "abc", {.record_bytes = 3, .header_bytes = 100}, buffer),
        ElementsAre("abc"));
    EXPECT_THAT(data_loss([&] { read("HHabcdeF", layout, buffer); }),
                HasSubstr("'a', byte 5: after 1 records of 3 bytes 3 bytes are left, where the "
                          "footer has 1"));
    EXPECT_THAT(data_loss([&] { read("H", layout, buffer); }), HasSubstr("within its header"));
    EXPECT_THAT(data_loss([&] { read("HH", layout, buffer); }), HasSubstr("0 bytes are left"));
  }
}

TEST_F(RecordReaderTest, TheEndOfRecordsOfOneLengthStaysTheEnd) {
  const auto framing =
      make_fixed_length_framing({.record_bytes = 3, .header_bytes = 2, .footer_bytes = 1});
  for (const Compression compression : {Compression::kNone, Compression::kGzip}) {
    for (const std::string content : {"HHabcdefF", "HHF"}) {
      std::string packed;
      if (compression == Compression::kGzip) {
        Deflater deflater(compression);
        deflater.deflate(content, packed);
        deflater.finish(packed);
      }
      files.set_content("a", packed.empty() ? content : packed);
      const auto reader = open_records(files, "a", compression, framing);
      read_all(*reader);
      EXPECT_THAT(reader->next().records, IsEmpty());
      const auto resumed = open_records(files, "a", compression, framing);
      resumed->seek(reader->position());
      EXPECT_THAT(resumed->next().records, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace cohort::internal
