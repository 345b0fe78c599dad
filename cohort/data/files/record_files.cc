#include "cohort/data/files/record_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/data/iteration/pass_interrupted.h"

namespace cohort::internal {
namespace {

class RecordFilesIterator final : public DataIterator {
 public:
  RecordFilesIterator(std::unique_ptr<DataIterator> names,
                      std::shared_ptr<const RecordFormat> format, const RecordFilesOptions& options,
                      SkippedFiles skipped, WarnedOfEmpty warned)
      : names_(std::move(names)),
        format_(std::move(format)),
        options_(options),
        skipped_(std::move(skipped)),
        warned_(std::move(warned)),
        slots_(static_cast<size_t>(options.num_parallel_reads)) {}

  bool next(Structure& out) override {
    Slot* slot = find_record();
    if (slot == nullptr) return false;
    const RecordSlice slice = slot->cursor->take(1);
    const std::string& file = note_file(slot->cursor->file());
    advance();
    out = format_->element(slice, file);
    return true;
  }
  bool has_blocks() const override { return true; }
  int64_t next_block(int64_t n, Structure& out) override;
  bool has_runs() const override { return true; }
  int64_t next_run(int64_t n, Structure& out) override;
  int64_t skip(int64_t n) override;
  void rewind(uint64_t epoch) override {
    close_all();
    names_->rewind(epoch);
  }
  IteratorState save() override;
  void restore(const IteratorState& state) override;
  std::shared_ptr<const std::string> last_origin() const override { return last_origin_; }

 private:
  using StatePtr = std::shared_ptr<const IteratorState>;
  struct Slot {
    StatePtr before;                       // of the names, before the name of this file
    std::unique_ptr<RecordCursor> cursor;  // null: the slot is free
  };

  // The slot in turn that has a record, after opening and closing what it takes; null at the end.
  // An error is that of one element.
  Slot* find_record();
  // Takes up to `n` records in turn into slices_, and stops where a file has to be read, opened or
  // closed. The slot in turn has a record.
  void take_buffered(int64_t n);
  // The number of records at the front of slices_ that can be decoded.
  size_t count_good() const;
  // Records after the first `count` come again.
  void put_back_after(size_t count);
  // Puts the next file into the slot, which stays free where ignore_errors leaves the file out;
  // false where there is none.
  bool open_next(Slot& slot);
  std::string path_of(const Structure& name) const;
  std::unique_ptr<RecordCursor> open(const std::string& path);
  void close(Slot& slot) {
    slot = Slot();
    --open_;
    advance();
  }
  void close_all() {
    for (Slot& slot : slots_) slot = Slot();
    open_ = current_ = 0;
    ended_ = false;
    names_state_ = nullptr;
  }
  const std::string& note_file(const std::string& file) {
    if (!last_origin_ || last_file_ != file) {
      last_file_ = file;
      last_origin_ = std::make_shared<const std::string>("file " + quoted(file));
    }
    return last_file_;
  }
  void advance() { current_ = (current_ + 1) % slots_.size(); }
  // Such a file has no records; once a dataset.
  void warn_if_empty(const RecordCursor& cursor);
  // Called where an error of a file was caught: counts it and returns, or goes on with it.
  void count_or_rethrow();
  StatePtr names_state() {
    if (!names_state_) names_state_ = std::make_shared<const IteratorState>(names_->save());
    return names_state_;
  }

  const std::unique_ptr<DataIterator> names_;
  const std::shared_ptr<const RecordFormat> format_;
  const RecordFilesOptions options_;
  const SkippedFiles skipped_;
  const WarnedOfEmpty warned_;
  size_t current_ = 0;  // the slot whose turn it is
  size_t open_ = 0;
  bool ended_ = false;     // the names
  std::string last_file_;  // of the record or block that came last
  std::shared_ptr<const std::string> last_origin_;
  StatePtr names_state_;             // the names' state now, once asked for
  std::vector<RecordSlice> slices_;  // of a run
  std::vector<size_t> owners_;       // their slots
  WorkGroup work_;
  std::vector<Slot> slots_;  // their cursors end before the work group
};

std::string RecordFilesIterator::path_of(const Structure& name) const {
  if (!name.is_leaf() || !name.leaf().is_strings() || name.strings().dim() != 0) {
    throw InvalidArgumentError(
        str(format_->name(), ": file names must be string scalars, but this is ", name));
  }
  return std::string(name.strings().item());
}

std::unique_ptr<RecordCursor> RecordFilesIterator::open(const std::string& path) {
  return std::make_unique<RecordCursor>(
      open_records(posix_file_system(), path, options_.compression, format_->framing(),
                   {.buffer_bytes = static_cast<size_t>(options_.buffer_size),
                    .deadline = options_.deadline}),
      slots_.size() > 1 ? &work_ : nullptr);
}

bool RecordFilesIterator::open_next(Slot& slot) {
  Slot opened;
  opened.before = names_state();
  names_state_ = nullptr;
  Structure name;
  if (!names_->next(name)) return false;
  try {
    opened.cursor = open(path_of(name));
  } catch (const DeadlineExceededError& error) {
    interrupt_pass(error);
  } catch (...) {
    count_or_rethrow();
    return true;
  }
  slot = std::move(opened);
  ++open_;
  return true;
}

void RecordFilesIterator::count_or_rethrow() {
  if (!options_.ignore_errors) throw;
  try {
    throw;
  } catch (const Error& error) {
    // Files that are damaged, or are no files of records: not those that are not there.
    if (error.code() != Code::kDataLoss) throw;
    skipped_->fetch_add(1, std::memory_order_relaxed);
    log_warning(format_->name(), ": ", error.what(),
                "; the rest of the file is left out (ignore_errors)");
  }
}

void RecordFilesIterator::warn_if_empty(const RecordCursor& cursor) {
  if (options_.compression != Compression::kNone || !cursor.is_empty()) return;
  if (warned_->exchange(true)) return;
  log_warning(format_->name(), ": ", quoted(cursor.file()),
              " has no bytes, and so no records: was it cut off before it was written?");
}

RecordFilesIterator::Slot* RecordFilesIterator::find_record() {
  while (true) {
    Slot& slot = slots_[current_];
    if (slot.cursor) {
      try {
        if (slot.cursor->has_record()) return &slot;
        warn_if_empty(*slot.cursor);
        close(slot);
      } catch (const DeadlineExceededError& error) {
        interrupt_pass(error);  // the file may answer later
      } catch (const std::exception&) {
        close(slot);
        count_or_rethrow();
      }
    } else if (ended_) {
      if (open_ == 0) return nullptr;
      advance();
    } else {
      ended_ = !open_next(slot);
    }
  }
}

// The end of a block depends on the files alone, not on how they are read: it ends with its file or
// before damage.
int64_t RecordFilesIterator::next_block(int64_t n, Structure& out) {
  if (slots_.size() > 1) {
    try {
      return next_run(n, out);
    } catch (const std::exception&) {
      skip(n - 1);
      throw;
    }
  }
  int64_t count = 0;
  try {
    Slot* slot = find_record();
    if (slot == nullptr) return 0;
    const std::string file = note_file(slot->cursor->file());
    std::vector<RecordSlice> slices;
    while (count < n) {
      slices.push_back(slot->cursor->take(n - count));
      count += static_cast<int64_t>(slices.back().records.size());
      try {
        if (count < n && !slot->cursor->has_record()) break;
      } catch (const Error&) {
        break;  // it comes again
      }
    }
    out = format_->block(slices, file);
  } catch (const std::exception&) {
    skip(n - std::max<int64_t>(count, 1));
    throw;
  }
  return count;
}

void RecordFilesIterator::take_buffered(int64_t n) {
  slices_.clear();
  owners_.clear();
  const int64_t most = slots_.size() == 1 ? n : 1;
  for (int64_t count = 0; count < n;) {
    Slot& slot = slots_[current_];
    if (!slot.cursor && ended_) {
      advance();
      continue;
    }
    if (!slot.cursor || !slot.cursor->has_buffered()) return;
    slices_.push_back(slot.cursor->take(most));
    owners_.push_back(current_);
    count += std::ssize(slices_.back().records);
    advance();
  }
}

size_t RecordFilesIterator::count_good() const {
  size_t good = 0;
  for (size_t i = 0; i < slices_.size(); ++i) {
    const auto& [records, run] = slices_[i];
    for (size_t k = 0; k < records.size(); ++k, ++good) {
      try {
        format_->element({records.subspan(k, 1), run}, slots_[owners_[i]].cursor->file());
      } catch (const std::exception&) {
        return good;
      }
    }
  }
  return good;
}

void RecordFilesIterator::put_back_after(size_t count) {
  size_t before = 0;
  for (size_t i = 0; i < slices_.size(); ++i) {
    std::span<const std::string_view>& records = slices_[i].records;
    const size_t kept = std::min(count - before, records.size());
    if (kept < records.size()) {
      slots_[owners_[i]].cursor->put_back(records.size() - kept);
      if (kept == 0 && (i == 0 || !slices_[i - 1].records.empty())) current_ = owners_[i];
    }
    records = records.first(kept);
    before += kept;
  }
  std::erase_if(slices_, [](const RecordSlice& slice) { return slice.records.empty(); });
}

int64_t RecordFilesIterator::next_run(int64_t n, Structure& out) {
  if (find_record() == nullptr) return 0;
  take_buffered(n);
  const std::string& file = note_file(slots_[owners_.front()].cursor->file());
  try {
    out = format_->block(slices_, file);
  } catch (const std::exception&) {
    const size_t good = count_good();
    put_back_after(std::max<size_t>(good, 1));
    if (good == 0) throw;  // the error is the first record's, and so names its file
    out = format_->block(slices_, file);
  }
  int64_t count = 0;
  for (const RecordSlice& slice : slices_) count += std::ssize(slice.records);
  slices_.clear();
  return count;
}

int64_t RecordFilesIterator::skip(int64_t n) {
  int64_t skipped = 0;
  while (skipped < n) {
    try {
      Slot* slot = find_record();
      if (slot == nullptr) break;
      // Files that take turns give one record each.
      const int64_t most = slots_.size() == 1 ? n - skipped : 1;
      skipped += static_cast<int64_t>(slot->cursor->take(most).records.size());
      advance();
    } catch (const Error&) {
      ++skipped;
    }
  }
  return skipped;
}

IteratorState RecordFilesIterator::save() {
  IteratorState state;
  state.set_int("current", static_cast<int64_t>(current_));
  state.set_int("ended", ended_);
  state.set_child("names", names_state());
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].cursor) continue;
    IteratorState slot = slots_[i].cursor->save();
    slot.set_child("before", slots_[i].before);
    state.set_child(str("file ", i), std::move(slot));
  }
  return state;
}

void RecordFilesIterator::restore(const IteratorState& state) {
  close_all();
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!state.has(str("file ", i))) continue;
    const IteratorState& saved = state.child(str("file ", i));
    Slot slot;
    slot.before = saved.shared_child("before");
    names_->restore(*slot.before);
    Structure name;
    if (!names_->next(name)) {
      throw DataLossError(str(format_->name(), ": the names end before that of the file in which ",
                              "the state stands"));
    }
    const std::string path = path_of(name);
    try {
      slot.cursor = open(path);
      slot.cursor->restore(saved);
    } catch (const DeadlineExceededError& error) {
      interrupt_pass(error);
    }
    slots_[i] = std::move(slot);
    ++open_;
  }
  current_ =
      static_cast<size_t>(state.get_int("current", 0, static_cast<int64_t>(slots_.size()) - 1));
  ended_ = state.get_int("ended", 0, 1) == 1;
  names_->restore(state.child("names"));
}

class RecordFilesNode final : public UnaryNode {
 public:
  RecordFilesNode(DataNodePtr names, std::shared_ptr<const RecordFormat> format,
                  const RecordFilesOptions& options, SkippedFiles skipped,
                  WarnedOfEmpty warned = std::make_shared<std::atomic<bool>>(false))
      : UnaryNode(format->name(), std::move(names)),
        format_(std::move(format)),
        options_(options),
        skipped_(std::move(skipped)),
        warned_(std::move(warned)) {}

  Attributes attributes() const override {
    Attributes attributes = format_->attributes();
    if (options_.compression != Compression::kNone) {
      attributes.emplace_back("compression_type", compression_name(options_.compression));
    }
    if (options_.num_parallel_reads > 1) {
      attributes.emplace_back("num_parallel_reads", str(options_.num_parallel_reads));
    }
    if (options_.ignore_errors) attributes.emplace_back("ignore_errors", "true");
    return attributes;
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<RecordFilesNode>(std::move(inputs[0]), format_, options_, skipped_,
                                             warned_);
  }
  StructureSpec element_spec() const override { return format_->element_spec(); }
  int64_t cardinality() const override {
    const int64_t files = input().cardinality();
    return files <= 0 ? files : data::kUnknownCardinality;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    RecordFilesOptions options = options_;
    if (context.probing) options.num_parallel_reads = 1;
    return std::make_unique<RecordFilesIterator>(input().make_iterator(context.keeping_order()),
                                                 format_, options, skipped_, warned_);
  }
  SourceKind source() const override { return SourceKind::kFiles; }

 private:
  const std::shared_ptr<const RecordFormat> format_;
  const RecordFilesOptions options_;
  const SkippedFiles skipped_;
  const WarnedOfEmpty warned_;
};

}  // namespace

DataNodePtr make_record_files(DataNodePtr names, std::shared_ptr<const RecordFormat> format,
                              const RecordFilesOptions& options, SkippedFiles skipped) {
  RecordFilesOptions checked = options;
  if (options.num_parallel_reads == data::AUTOTUNE) {
    checked.num_parallel_reads = data::InterleaveOptions().cycle_length;
  }
  if (checked.num_parallel_reads < 1) {
    throw InvalidArgumentError(str(format->name(), ": num_parallel_reads is ",
                                   options.num_parallel_reads,
                                   "; it must be at least 1, or AUTOTUNE"));
  }
  if (options.buffer_size < 1) {
    throw InvalidArgumentError(
        str(format->name(), ": buffer_size is ", options.buffer_size, "; it must be at least 1"));
  }
  return std::make_shared<RecordFilesNode>(std::move(names), std::move(format), checked,
                                           std::move(skipped));
}

DataNodePtr file_names(const data::Paths& paths) {
  return data::Dataset::from_tensor_slices(StringTensor(paths.list())).node();
}

}  // namespace cohort::internal
