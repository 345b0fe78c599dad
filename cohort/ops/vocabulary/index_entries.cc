#include "cohort/ops/vocabulary/index_entries.h"

#include <algorithm>
#include <exception>
#include <span>
#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/program/start_thread.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// Numbers below `count`, one after another, until somebody fails.
class WorkItems {
 public:
  explicit WorkItems(uint64_t count) : count_(count) {}
  std::optional<uint64_t> take() {
    const uint64_t item = next_.fetch_add(1, std::memory_order_relaxed);
    return item < count_ ? std::optional(item) : std::nullopt;
  }
  void stop() { next_.store(count_, std::memory_order_relaxed); }

 private:
  const uint64_t count_;
  std::atomic<uint64_t> next_ = 0;
};

// Runs `body` on this thread and on others, as far as there are any to be had.
void run_on_threads(int threads, WorkItems& items, FunctionRef<void()> body) {
  std::mutex mutex;
  std::exception_ptr error;
  const auto guarded = [&] {
    try {
      body();
    } catch (...) {
      items.stop();
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  try {
    while (static_cast<int>(others.size()) + 1 < threads) {
      others.push_back(start_thread("to index a vocabulary with", guarded));
    }
  } catch (const ResourceExhaustedError&) {  // fewer do it, too
  }
  guarded();
  for (std::thread& thread : others) thread.join();
  if (error) std::rethrow_exception(error);
}

bool is_empty(const TextChunks::Line& line) { return line.text.empty() || line.text == "\r"; }

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

RepeatedTokenError::RepeatedTokenError(std::string token, std::string first, std::string second)
    : InvalidArgumentError(str(quoted(token), " is at ", first, " and again at ", second,
                               "; a vocabulary has each token once")),
      token_(std::move(token)),
      first_(std::move(first)),
      second_(std::move(second)) {}

IndexEntries::IndexEntries(const TextChunks& text, const IndexLayout& layout,
                           const IndexEntriesOptions& options)
    : text_(text),
      layout_(layout),
      options_(options),
      format_(layout.entry()),
      most_keys_(layout.function.most_keys_of_part()),
      pilots_(layout.function.num_buckets()),
      samples_(layout.num_samples()) {}

std::string_view IndexEntries::pilots() const { return bytes_of(pilots_); }
std::string_view IndexEntries::samples() const { return bytes_of(samples_); }

bool IndexEntries::build(FunctionRef<void(std::string_view)> append) {
  const uint64_t parts = layout_.function.parts;
  const uint64_t fitting = options_.memory_bytes / (most_keys_ * sizeof(Key));
  const uint64_t group = std::clamp<uint64_t>(fitting, 1, parts);
  keys_ = std::make_unique_for_overwrite<Key[]>(group * most_keys_);
  counts_ = std::vector<std::atomic<uint32_t>>(group);
  for (uint64_t first = 0; first < parts; first += group) {
    const uint64_t count = std::min(group, parts - first);
    if (!build_group(first, count)) return false;
    if (repeated_) continue;  // the text is wrong; which line is the first to be so?
    const auto bytes =
        uint64_t{layout_.function.slots_per_part} * static_cast<uint64_t>(format_.bytes());
    for (uint64_t part = 0; part < count; ++part) {
      append({reinterpret_cast<const char*>(&keys_[part * most_keys_]), bytes});
    }
  }
  fail_if_wrong();
  std::sort(twins_.begin(), twins_.end(),
            [](const Twin& a, const Twin& b) { return a.number < b.number; });
  return true;
}

// ---- keys to their parts ------------------------------------------------------------------------

// One thread's keys, some of each part at a time, so that it writes runs.
class IndexEntries::Scatter {
 public:
  Scatter(IndexEntries& entries, uint64_t parts)
      : entries_(entries), parts_(parts), keys_(parts * kRun), filled_(parts) {}

  void add(const TextChunks::Line& line) {
    const std::optional<std::string_view> token = token_of_line(line.text, column());
    if (!token || is_empty(line)) return entries_.note_wrong_line(line);
    const bool is_first_group = entries_.first_part_ == 0;
    if (is_first_group && line.number % kLinesPerSample == 0) {
      entries_.samples_[line.number / kLinesPerSample] = line.offset;
    }
    const auto place = entries_.layout_.function.place(entries_.options_.hash(*token));
    const uint64_t part = place.part - entries_.first_part_;
    if (part >= parts_) return;
    const auto in_line = static_cast<uint64_t>(token->data() - line.text.data());
    keys_[part * kRun + filled_[part]] = {place.mixed, line.offset + in_line,
                                          static_cast<uint32_t>(line.number)};
    if (++filled_[part] == kRun) flush(part);
  }
  void finish() {
    for (uint64_t part = 0; part < parts_; ++part) flush(part);
  }

 private:
  static constexpr uint32_t kRun = 32;

  const TokenColumn& column() const { return entries_.layout_.column; }
  void flush(uint64_t part) {
    const uint32_t count = std::exchange(filled_[part], 0);
    const uint32_t begin = entries_.counts_[part].fetch_add(count, std::memory_order_relaxed);
    const uint64_t room = entries_.most_keys_ - std::min<uint64_t>(begin, entries_.most_keys_);
    if (count > room) entries_.does_not_fit_ = true;
    std::copy_n(&keys_[part * kRun], std::min<uint64_t>(count, room),
                &entries_.keys_[part * entries_.most_keys_ + begin]);
  }

  IndexEntries& entries_;
  const uint64_t parts_;
  std::vector<Key> keys_;
  std::vector<uint32_t> filled_;
};

void IndexEntries::note_wrong_line(const TextChunks::Line& line) {
  const std::lock_guard lock(mutex_);
  std::optional<WrongLine>& first = is_empty(line) ? empty_line_ : short_line_;
  if (first && first->number <= line.number) return;
  const auto delimiters = std::count(line.text.begin(), line.text.end(), layout_.column.delimiter);
  first = {line.number, line.offset, delimiters + 1};
}

void IndexEntries::fail_if_wrong() const {
  if (empty_line_) {
    throw InvalidArgumentError(
        str(line_place(text_.path(), empty_line_->number, empty_line_->offset),
            " is empty; a table's file has one entry a line"));
  }
  if (short_line_) {
    throw InvalidArgumentError(
        str(line_place(text_.path(), short_line_->number, short_line_->offset), " has ",
            short_line_->columns, " columns, but column ", layout_.column.index,
            " is asked for; columns count from 0 and are separated by ",
            quoted(std::string_view(&layout_.column.delimiter, 1))));
  }
  if (repeated_) {
    throw RepeatedTokenError(repeated_->token, place_of(repeated_->first),
                             place_of(repeated_->second));
  }
}

std::string IndexEntries::place_of(uint64_t line) const {
  uint64_t offset = samples_[line / kLinesPerSample];
  for (uint64_t i = 0; i < line % kLinesPerSample; ++i) {
    offset += text_.rest_of_line(offset).size() + 1;
  }
  return line_place(text_.path(), line, offset);
}

// ---- a part's slots -----------------------------------------------------------------------------

// One thread's memory for a part.
class IndexEntries::PartWork {
 public:
  explicit PartWork(IndexEntries& entries)
      : entries_(entries),
        function_(entries.layout_.function),
        search_(function_),
        sorted_(entries.most_keys_),
        begins_(function_.buckets_per_part + 1) {}

  // Makes entries of the part's keys, in their place. False: some bucket has no pilot.
  bool run(uint64_t part_of_group) {
    Key* keys = &entries_.keys_[part_of_group * entries_.most_keys_];
    const auto found = entries_.counts_[part_of_group].load(std::memory_order_relaxed);
    sort({keys, static_cast<size_t>(std::min<uint64_t>(found, entries_.most_keys_))});
    sort_out_equal_hashes();
    if (entries_.does_not_fit_) return false;
    const uint64_t part = entries_.first_part_ + part_of_group;
    uint16_t* pilots = &entries_.pilots_[part * function_.buckets_per_part];
    if (!search_.find(mixed_, pilots)) return false;
    store(reinterpret_cast<char*>(keys), pilots);
    return true;
  }

 private:
  uint64_t bucket_of(uint64_t mixed) const {
    return function_.place_of_mixed(mixed).bucket % function_.buckets_per_part;
  }

  // Keys by their buckets, which follow the order of hashes, and within these.
  void sort(std::span<const Key> keys) {
    std::fill(begins_.begin(), begins_.end(), 0);
    for (const Key& key : keys) ++begins_[bucket_of(key.mixed)];
    uint32_t sum = 0;
    for (uint32_t& begin : begins_) sum += std::exchange(begin, sum);
    for (const Key& key : keys) sorted_[begins_[bucket_of(key.mixed)]++] = key;
    count_ = keys.size();
    const auto before = [](const Key& a, const Key& b) {
      return a.mixed != b.mixed ? a.mixed < b.mixed : a.number < b.number;
    };
    uint32_t begin = 0;  // each has moved to its bucket's end
    for (const uint32_t end : begins_) {
      if (end - begin > 1) std::sort(sorted_.begin() + begin, sorted_.begin() + end, before);
      begin = end;
    }
  }

  void sort_out_equal_hashes() {
    mixed_.clear();
    size_t kept = 0;
    for (size_t i = 0; i < count_;) {
      size_t end = i + 1;
      while (end < count_ && sorted_[end].mixed == sorted_[i].mixed) ++end;
      if (end - i > 1) {
        std::vector<Key> same(&sorted_[i], &sorted_[i] + (end - i));
        entries_.sort_out(same);
      }
      sorted_[kept++] = sorted_[i];
      mixed_.push_back(sorted_[i].mixed);
      i = end;
    }
    count_ = kept;
  }

  void store(char* out, const uint16_t* pilots) const {
    const EntryFormat& format = entries_.format_;
    const auto bytes = static_cast<size_t>(format.bytes());
    for (uint32_t slot = 0; slot < function_.slots_per_part; ++slot) {
      format.store({entries_.layout_.lines, 0, 0}, out + slot * bytes);
    }
    for (size_t i = 0; i < count_; ++i) {
      const Key& key = sorted_[i];
      const uint32_t slot = function_.slot_in_part(key.mixed, pilots[bucket_of(key.mixed)]);
      format.store({key.number, key.offset, key.mixed}, out + slot * bytes);
    }
  }

  IndexEntries& entries_;
  const PerfectHash& function_;
  PilotSearch search_;
  std::vector<Key> sorted_;
  size_t count_ = 0;
  std::vector<uint64_t> mixed_;
  std::vector<uint32_t> begins_;  // of buckets
};

bool IndexEntries::build_group(uint64_t first_part, uint64_t parts) {
  first_part_ = first_part;
  for (std::atomic<uint32_t>& count : counts_) count = 0;
  WorkItems chunks(text_.num_chunks());
  run_on_threads(options_.threads, chunks, [&] {
    Scatter scatter(*this, parts);
    std::string buffer;
    while (const auto chunk = chunks.take()) {
      text_.visit_lines(*chunk, buffer, [&](const TextChunks::Line& line) { scatter.add(line); });
    }
    scatter.finish();
  });
  if (empty_line_ || short_line_) fail_if_wrong();
  WorkItems items(parts);
  run_on_threads(options_.threads, items, [&] {
    PartWork work(*this);
    while (const auto part = items.take()) {
      if (!work.run(*part)) does_not_fit_ = true;
    }
  });
  if (does_not_fit_ && repeated_) fail_if_wrong();  // so often that its part does not hold it
  return !does_not_fit_;
}

void IndexEntries::sort_out(std::vector<Key>& same_hash) {
  {
    // No token of these can be the first that is repeated: the keys are in the order of lines.
    const std::lock_guard lock(mutex_);
    if (repeated_ && repeated_->second <= same_hash[1].number) return;
  }
  std::vector<std::pair<std::string, Key>> tokens;
  for (const Key& key : same_hash) tokens.emplace_back(token_at(key.offset), key);
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 1; i < tokens.size(); ++i) {
    const auto& [token, key] = tokens[i];
    const auto& [before, key_before] = tokens[i - 1];
    const bool is_second = i == 1 || tokens[i - 2].first != token;
    if (token == before && is_second) note_repeated(key_before.number, key.number, token);
  }
  const std::lock_guard lock(mutex_);
  for (size_t i = 1; i < same_hash.size(); ++i) {
    const Key& key = same_hash[i];
    twins_.push_back({options_.hash(token_at(key.offset)), key.offset, key.number});
  }
}

void IndexEntries::note_repeated(uint64_t first, uint64_t second, const std::string& token) {
  const std::lock_guard lock(mutex_);
  if (!repeated_ || second < repeated_->second) repeated_ = {first, second, token};
}

std::string IndexEntries::token_at(uint64_t offset) const {
  const std::string rest = text_.rest_of_line(offset);
  TokenColumn column = layout_.column;
  if (column.index > 0) column.index = 0;  // it begins here
  return std::string(token_of_line(rest, column).value_or(""));
}

}  // namespace cohort::internal
