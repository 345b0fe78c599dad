#include "cohort/data/files/record_cursor.h"

#include <algorithm>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

}  // namespace

RecordCursor::~RecordCursor() {
  if (task_) work_->drop(task_);
}

void RecordCursor::read_ahead() {
  coming_ = std::make_shared<Coming>();
  task_ = work_->add([reader = reader_.get(), coming = coming_] {
    try {
      coming->run = reader->next();
    } catch (...) {
      coming->error = std::current_exception();
    }
  });
}

RecordRun RecordCursor::next_run() {
  if (!task_) return reader_->next();
  work_->finish(task_);
  task_ = nullptr;
  if (coming_->error) std::rethrow_exception(coming_->error);  // and next time from the reader
  return std::move(coming_->run);
}

bool RecordCursor::has_record() {
  if (row_ < run_.records.size()) return true;
  RecordRun run = next_run();
  const bool found = !run.records.empty();
  run_ = std::move(run);
  row_ = 0;
  if (found && work_ != nullptr) read_ahead();
  return found;
}

RecordSlice RecordCursor::take(int64_t most) {
  const size_t count = std::min<uint64_t>(static_cast<uint64_t>(most), run_.records.size() - row_);
  RecordSlice slice{run_.records.subspan(row_, count), run_};
  row_ += count;
  return slice;
}

IteratorState RecordCursor::save() const {
  IteratorState state;
  state.set_int("offset", static_cast<int64_t>(run_.begin.offset));
  state.set_int("index", static_cast<int64_t>(run_.begin.index));
  state.set_int("row", static_cast<int64_t>(row_));
  return state;
}

void RecordCursor::restore(const IteratorState& state) {
  const RecordPosition begin = {.offset = static_cast<uint64_t>(state.get_int("offset", 0, kMost)),
                                .index = static_cast<uint64_t>(state.get_int("index", 0, kMost))};
  reader_->seek(begin);
  run_.begin = begin;
  for (int64_t left = state.get_int("row", 0, kMost); left > 0;) {
    if (!has_record()) {
      throw DataLossError(str(quoted(file()), " has no record ", left, " after byte ", begin.offset,
                              ", where the state stands: it has changed"));
    }
    left -= static_cast<int64_t>(take(left).records.size());
  }
}

}  // namespace cohort::internal
