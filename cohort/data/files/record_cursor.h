// One file of records being read: which records come next.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cohort/data/iteration/state.h"
#include "cohort/data/iteration/work_group.h"
#include "cohort/data/records/record_reader.h"

namespace cohort::internal {

// Some consecutive records of a run.
struct RecordSlice {
  std::span<const std::string_view> records;
  RecordRun run;
};

// Thread safety: none.
class RecordCursor {
 public:
  // The next run is read by `work`, if given, while records of one are taken; it must live as long.
  RecordCursor(std::unique_ptr<RecordReader> reader, WorkGroup* work)
      : reader_(std::move(reader)), work_(work) {}
  // Waits for what is being read, and begins no other read.
  ~RecordCursor();

  // False at the end of the file. Errors: as RecordReader::next; the cursor stays where it is.
  bool has_record();
  // The next records, `most` at most, at least one; has_record() was true.
  RecordSlice take(int64_t most);

  // Whether the next record is in memory.
  bool has_buffered() const { return row_ < run_.records.size(); }
  // Undoes the last take() for the last `count` records of its slice.
  void put_back(size_t count) { row_ -= count; }

  const std::string& file() const { return reader_->file(); }
  // Once has_record() was false: whether the file has not one byte.
  bool is_empty() const { return reader_->position().offset == 0; }

  // The position: a run's place, and a row in it.
  IteratorState save() const;
  // Reads that run again, on a new cursor of the same file. Errors: DataLoss (the file ends
  // before).
  void restore(const IteratorState& state);

 private:
  struct Coming {
    RecordRun run;
    std::exception_ptr error;
  };

  RecordRun next_run();
  void read_ahead();

  const std::unique_ptr<RecordReader> reader_;  // the task's while there is one
  WorkGroup* const work_;
  RecordRun run_;
  size_t row_ = 0;  // of run_, the next to be taken
  WorkGroup::TaskPtr task_;
  std::shared_ptr<Coming> coming_;  // what the task reads
};

}  // namespace cohort::internal
