#include "cohort/data/files/record_cursor.h"

#include <future>
#include <latch>

#include "cohort/data/records/testing_records.h"
#include "cohort/data/records/tfrecord_framing.h"

namespace cohort::internal {
namespace {

using RecordCursorTest = RecordFilesTest;

TEST_F(RecordCursorTest, ItsEndBeginsNoFurtherRead) {
  write_records("a", std::vector<std::string>(100, std::string(100, 'x')));
  // All threads are busy, so that nobody begins the read of the second block.
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  WorkGroup busy, readers;
  std::latch begun(num_pipeline_threads());
  for (int i = 0; i < num_pipeline_threads(); ++i) {
    busy.add([&] {
      begun.count_down();
      ended.wait();
    });
  }
  begun.wait();
  int64_t calls = 0;
  {
    RecordCursor cursor(open_records(files, "a", Compression::kNone, make_tfrecord_framing(),
                                     {.buffer_bytes = 1000}),
                        &readers);
    EXPECT_TRUE(cursor.has_record());
    calls = files.calls();
  }
  EXPECT_EQ(files.calls(), calls);
  end.set_value();
}

}  // namespace
}  // namespace cohort::internal
