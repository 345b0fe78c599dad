#include "tools/tfrecord_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/data/records/example_builder.h"
#include "cohort/data/records/tfrecord_writer.h"

namespace cohort::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct TFRecordCommands : testing::Test {
  void write(const std::string& path, const std::vector<std::string>& records,
             const std::string& compression = "") {
    io::TFRecordWriter writer(files, path, {.compression_type = compression});
    for (const std::string& record : records) writer.write(record);
    writer.close();
  }
  void damage(const std::string& path, size_t byte) {
    std::string bytes = files.content(path);
    bytes.at(byte) ^= 1;
    files.set_content(path, bytes);
  }
  std::string list(const TFRecordLsOptions& options, int exit_code) {
    std::ostringstream out, err;
    EXPECT_EQ(list_tfrecords(files, options, out, err), exit_code);
    errors = err.str();
    return out.str();
  }
  std::string verify(const TFRecordVerifyOptions& options, int exit_code) {
    std::ostringstream out;
    EXPECT_EQ(verify_tfrecords(files, options, out), exit_code);
    return out.str();
  }

  internal::SimulatedFileSystem files;
  std::string errors;  // of the last list()
};

TEST_F(TFRecordCommands, ListsFilesOfAnyCompression) {
  write("a", {"one", "three"});
  write("b", {"x"}, "GZIP");
  write("c", {}, "ZLIB");
  EXPECT_EQ(list({.paths = {"a", "b", "c"}}, kExitOk),
            "a  2 records  8 bytes\n"
            "b  1 record   1 byte   GZIP\n"
            "c  0 records  0 bytes  ZLIB\n"
            "3 files, 3 records, 9 bytes\n");
  EXPECT_EQ(list({.paths = {"b"}, .compression = "gzip"}, kExitOk), "b  1 record  1 byte  GZIP\n");
  EXPECT_THAT(list({.paths = {"b"}, .compression = "none"}, kExitBadData), HasSubstr("damaged: "));
  EXPECT_THROW(list({.paths = {"b"}, .compression = "lz4"}, kExitOk), InvalidArgumentError);
  EXPECT_THROW(list({.paths = {"none"}}, kExitOk), NotFoundError);
}

TEST_F(TFRecordCommands, ListsFeatures) {
  const auto example = [](std::initializer_list<int64_t> ids) {
    return io::ExampleBuilder().add_ints("ids", ids).add_bytes("na\x1bme", {"x"}).serialize();
  };
  write("a", {example({1, 2}), example({}), "text"});
  EXPECT_EQ(list({.paths = {"a"}, .features = true}, kExitOk),
            "a  3 records  " + std::to_string(example({1, 2}).size() + example({}).size() + 4) +
                " bytes\n"
                "ids       int64  0 to 2 values  in 2 records\n"
                "na\\x1bme  bytes  1 value        in 2 records\n"
                "1 record that is no tf.Example\n");
  const std::string json = list({.paths = {"a"}, .features = true, .json = true}, kExitOk);
  EXPECT_THAT(json, AllOf(HasSubstr("\"records\": 3"), HasSubstr("\"most_values\": 2"),
                          HasSubstr("\"other_records\": 1")));
}

TEST_F(TFRecordCommands, DamageIsListedWithWhatComesBefore) {
  write("a", {"one", "two"});
  damage("a", 19 + 12);
  EXPECT_EQ(list({.paths = {"a"}}, kExitBadData),
            "a  1 record  3 bytes  damaged: 'a', byte 19: record 1 is damaged: the checksum of its "
            "3 bytes does not hold\n");
  EXPECT_THAT(list({.paths = {"a"}, .json = true}, kExitBadData), HasSubstr("\"damage\": \"'a', "));
}

TEST_F(TFRecordCommands, AMissingFileDoesNotHideTheOthers) {
  write("a", {"one", "two"});
  write("c", {"x"});
  EXPECT_EQ(list({.paths = {"a", "b", "c", "d"}}, kExitFailed),
            "a  2 records  6 bytes\n"
            "c  1 record   1 byte\n"
            "2 files, 3 records, 7 bytes\n");
  EXPECT_THAT(errors, AllOf(StartsWith("cohort: "), HasSubstr("'b'"), HasSubstr("\ncohort: "),
                            HasSubstr("'d'")));
  EXPECT_THAT(list({.paths = {"b", "c"}, .json = true}, kExitFailed), HasSubstr("\"path\": \"c\""));
  damage("a", 19);
  EXPECT_THAT(list({.paths = {"a", "b"}}, kExitFailed), HasSubstr("damaged: "));
  list({.paths = {"a", "c"}}, kExitBadData);
  EXPECT_EQ(errors, "");
}

TEST_F(TFRecordCommands, VerifiesEveryFile) {
  write("a", {"one", "two"});
  write("b", {"one"}, "GZIP");
  EXPECT_EQ(verify({.paths = {"a", "b"}}, kExitOk),
            "OK 'a': 2 records, 6 bytes\nOK 'b': 1 record, 3 bytes\n");
  damage("a", 19);
  EXPECT_THAT(verify({.paths = {"a", "b"}}, kExitBadData),
              AllOf(StartsWith("DAMAGED 'a': 1 record, 3 bytes, then\n  'a', byte 19: record 1"),
                    HasSubstr("OK 'b'")));
}

TEST_F(TFRecordCommands, VerifyFindsEveryFlippedBit) {
  write("a", {"one", "two"});
  for (size_t byte = 0; byte < files.content("a").size(); ++byte) {
    damage("a", byte);
    EXPECT_THAT(verify({.paths = {"a"}}, kExitBadData), StartsWith("DAMAGED")) << byte;
    damage("a", byte);
  }
}

}  // namespace
}  // namespace cohort::tools
