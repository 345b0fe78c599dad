#include "cohort/data/records/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/files/deflate.h"
#include "cohort/data/records/testing_records.h"

namespace cohort::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

struct Csv : RecordFilesTest {
  std::vector<std::string> records(const std::string& content, const CsvDialect& dialect = {}) {
    files.set_content("a", content);
    std::vector<std::string> all;
    for (const size_t buffer : {1, 1 << 20}) {
      const auto reader = open_records(files, "a", Compression::kNone, make_csv_framing(dialect),
                                       {.buffer_bytes = buffer});
      const auto found = read_all(*reader);
      if (buffer > 1) {
        EXPECT_EQ(found, all);  // however they are read
      }
      all = found;
    }
    return all;
  }
  std::vector<std::string> fields(std::string_view record, const CsvDialect& dialect = {}) {
    CsvFields fields(dialect);
    EXPECT_EQ(fields.split(record), std::nullopt);
    return {fields.fields().begin(), fields.fields().end()};
  }
  std::string problem(std::string_view record) {
    return CsvFields({}).split(record).value_or("none");
  }
};

TEST_F(Csv, RecordsEndWithTheirLineOutsideOfQuotes) {
  EXPECT_THAT(records(""), IsEmpty());
  EXPECT_THAT(records("a,b\nc\r\nd\re"), ElementsAre("a,b", "c", "d", "e"));
  EXPECT_THAT(records("\n\r\n"), ElementsAre("", ""));
  EXPECT_THAT(records("a,\"x\r\ny\",\"\"\"\n\"\nb"), ElementsAre("a,\"x\r\ny\",\"\"\"\n\"", "b"));
  EXPECT_THAT(records("a\"b\nc"), ElementsAre("a\"b", "c"));
  EXPECT_THAT(records("a\n\"b\nc\nd"), ElementsAre("a", "\"b\nc\nd"));
  EXPECT_THAT(records("\"a\nb\"", {.quotes = false}), ElementsAre("\"a", "b\""));
  EXPECT_THAT(records("a\t\"\n\"", {.delimiter = '\t'}), ElementsAre("a\t\"\n\""));
}

TEST_F(Csv, TheHeaderIsNoRecord) {
  EXPECT_THAT(records("a,\"b\nc\"\n1,2\n", {.skips_header = true}), ElementsAre("1,2"));
  EXPECT_THAT(records("a", {.skips_header = true}), IsEmpty());
  EXPECT_THROW(records("", {.skips_header = true}), DataLossError);
}

TEST_F(Csv, PositionsCountLines) {
  files.set_content("a", "header\n\"x\ny\"\nz\n");
  const auto reader =
      open_records(files, "a", Compression::kNone, make_csv_framing({.skips_header = true}), {});
  const RecordRun run = reader->next();
  EXPECT_EQ(run.begin, (RecordPosition{.offset = 7, .index = 1}));
  EXPECT_EQ(reader->position(), (RecordPosition{.offset = 15, .index = 4}));
}

TEST_F(Csv, Fields) {
  EXPECT_THAT(fields("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(fields(""), ElementsAre(""));
  EXPECT_THAT(fields(",a,"), ElementsAre("", "a", ""));
  EXPECT_THAT(fields("\"a,b\",\"\",\"\"\"\",\"x\"\"y\"\"z\""),
              ElementsAre("a,b", "", "\"", "x\"y\"z"));
  EXPECT_THAT(fields("\"a\nb\""), ElementsAre("a\nb"));
  EXPECT_THAT(fields("\"a\",b", {.quotes = false}), ElementsAre("\"a\"", "b"));
  EXPECT_THAT(fields("a,b;c", {.delimiter = ';'}), ElementsAre("a,b", "c"));
}

TEST_F(Csv, WhatIsWrongWithQuotes) {
  EXPECT_THAT(problem("a,\"b"), HasSubstr("field 2 is never closed"));
  EXPECT_THAT(problem("\"b\"\""), HasSubstr("never closed"));
  EXPECT_THAT(problem("\"a\"b,c"), HasSubstr("field 1 goes on after its closing"));
  EXPECT_THAT(problem("\"a\"\"x\"b,c"), HasSubstr("field 1 goes on after its closing"));
  EXPECT_THAT(problem("a,b\"c\""), HasSubstr("field 2 has a quotation mark inside"));
}

}  // namespace
}  // namespace cohort::internal
