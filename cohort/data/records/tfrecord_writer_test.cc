#include "cohort/data/records/tfrecord_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/files/deflate.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/data/records/testing_records.h"
#include "cohort/data/records/tfrecord_framing.h"

namespace cohort::internal {
namespace {

using testing::ElementsAre;
using TFRecordWriterTest = RecordFilesTest;

TEST_F(TFRecordWriterTest, AWriterThatEndsSaysNothingOfErrors) {
  {
    io::TFRecordWriter writer(files, "a");
    files.set_hook([](const std::string&) { throw std::bad_alloc(); });
  }
  files.set_hook(nullptr);
}

TEST_F(TFRecordWriterTest, TheWriterSaysWhatIsWrong) {
  using io::TFRecordWriter;
  EXPECT_THROW(TFRecordWriter(files, "a", {.compression_type = "LZ4"}), InvalidArgumentError);
  EXPECT_THROW(TFRecordWriter(files, "none/a"), NotFoundError);
  TFRecordWriter writer(files, "a");
  writer.write("one");
  writer.close();
  writer.close();
  EXPECT_THROW(writer.write("two"), FailedPreconditionError);
  files.set_faults({.fail_at = files.calls() + 2, .error_number = ENOSPC});
  EXPECT_THROW(
      {
        TFRecordWriter full(files, "b");
        full.write("one");
        full.close();
      },
      ResourceExhaustedError);
}

TEST_F(TFRecordWriterTest, WhatWasFlushedSurvivesAPowerCut) {
  for (const std::string compression : {"", "GZIP"}) {
    io::TFRecordWriter writer(files, "a", {.compression_type = compression});
    files.sync_directory(".");
    writer.write("one");
    writer.flush();
    writer.write("two");
    const auto found = files.after_power_cut();
    const auto reader =
        open_records(*found, "a", compression_of(compression), make_tfrecord_framing());
    EXPECT_THAT(reader->next().records, ElementsAre("one"));
  }
}

}  // namespace
}  // namespace cohort::internal
