#include <algorithm>

#include "cohort/data/dataset.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/iteration/pass_interrupted.h"
#include "cohort/data/iteration/stacking.h"
#include "cohort/data/storage/cache_store.h"

namespace cohort::internal {
namespace {

// So many elements at most are read again where a state is restored without the cache's contents.
constexpr int64_t kMarkInterval = 1024;

// Three ways through a pass: what is cached already is read from there; else the input is read,
// and fills the cache, unless the pass was entered in its middle by a restore.
class CacheIterator final : public DataIterator {
 public:
  CacheIterator(std::unique_ptr<DataIterator> input, std::shared_ptr<CacheStore> store,
                bool in_memory)
      : input_(std::move(input)), store_(std::move(store)), in_memory_(in_memory) {
    start_state_ = std::make_shared<const IteratorState>(input_->save());
    start_ = start_state_->serialize();
  }

  bool next(Structure& out) override {
    if (has_blocks()) {
      if (next_block(1, out) == 0) return false;
      out = select_row(out, 0);
      return true;
    }
    return advance(1, [&](int64_t) -> int64_t {
             if (contents_) {
               contents_->read(position_, out);
             } else if (!input_->next(out)) {
               return 0;
             } else if (filler_) {
               of_pass([&] { filler_->add(out); });
             }
             return 1;
           }) > 0;
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  int64_t next_block(int64_t n, Structure& out) override {
    return advance(n, [&](int64_t count) {
      if (contents_) {
        contents_->read_block(position_, count, out);
        return count;
      }
      const int64_t rows = input_->next_block(count, out);
      if (filler_ && rows > 0) of_pass([&] { filler_->add_block(out, rows); });
      return rows;
    });
  }
  int64_t skip(int64_t n) override {
    begin();
    if (filler_) return DataIterator::skip(n);
    const int64_t count = contents_ ? std::min(n, contents_->size() - position_) : input_->skip(n);
    position_ += count;
    return count;
  }
  void rewind(uint64_t) override { begun_ = false; }
  IteratorState save() override;
  void restore(const IteratorState& state) override;

 private:
  // Begins a pass with the first element asked for.
  void begin() {
    if (begun_) return;
    begun_ = true;
    position_ = 0;
    filler_ = nullptr;
    overshot_ = false;
    marks_.clear();
    of_pass([this] { find_elements(); });
  }
  void find_elements() {
    contents_ = usable_contents();
    if (contents_) return;
    input_->restore(*start_state_);
    if (store_) filler_ = store_->fill(start_);
  }
  // The contents of the store, unless they are of another pass than a restored state is of: then
  // this iterator has its own store, or in place of a file none.
  std::shared_ptr<const CacheContents> usable_contents() {
    if (!store_) return nullptr;
    auto contents = store_->contents();
    if (!contents) return nullptr;
    if (!chosen_) adopt(*contents);
    if (contents->start() == start_) return contents;
    store_ = in_memory_ ? make_memory_cache() : nullptr;
    return nullptr;
  }
  // The pass that the contents are of becomes this iterator's.
  void adopt(const CacheContents& contents) {
    if (contents.start() == start_) return;
    start_state_ = std::make_shared<const IteratorState>(IteratorState::parse(contents.start()));
    start_ = contents.start();
  }
  // What a state says follows must not change afterwards: before the first, the choice between what
  // is cached already and this iterator's own pass is made for good. What keeps it from being made
  // is for begin() to report.
  void choose_start() {
    if (chosen_) return;
    try {
      const auto contents = begun_ || !store_ ? nullptr : store_->contents();
      if (contents) adopt(*contents);
      chosen_ = true;
    } catch (const std::exception&) {
    }
  }
  // Runs `read`, which gives up to its argument of elements.
  template <class Read>
  int64_t advance(int64_t n, const Read& read);
  void mark();

  std::unique_ptr<DataIterator> input_;
  std::shared_ptr<CacheStore> store_;  // null: the input is read in every pass
  bool in_memory_;
  // The input's state before its first element; save() may choose it.
  std::shared_ptr<const IteratorState> start_state_;
  std::string start_;    // the same, serialized
  bool chosen_ = false;  // a state holds it: it stays in every pass
  bool begun_ = false;
  int64_t position_ = 0;
  // position_ may be beyond the end: a block that failed counts as a whole, whatever there was of
  // it.
  bool overshot_ = false;
  std::shared_ptr<const CacheContents> contents_;
  std::unique_ptr<CacheFiller> filler_;
  std::vector<CacheMark> marks_;  // of this pass
};

template <class Read>
int64_t CacheIterator::advance(int64_t n, const Read& read) {
  begin();
  if (contents_) {
    n = std::min(n, contents_->size() - position_);
    if (n == 0) return 0;
  } else {
    mark();
  }
  int64_t count = 0;
  try {
    count = read_counted(position_, n, [&] { return read(n); });
  } catch (...) {
    filler_ = nullptr;  // a pass with errors is no cache
    overshot_ = overshot_ || n > 1;
    throw;
  }
  if (count == 0 && filler_) {
    of_pass([&] { std::exchange(filler_, nullptr)->finish(std::move(marks_)); });
    marks_.clear();
  }
  return count;
}

void CacheIterator::mark() {
  if (!marks_.empty() && position_ - marks_.back().position < kMarkInterval) return;
  if (!filler_) marks_.clear();
  marks_.push_back({position_, std::make_shared<const IteratorState>(input_->save())});
}

IteratorState CacheIterator::save() {
  choose_start();
  IteratorState state;
  const int64_t position = begun_ ? position_ : 0;
  const CacheMark start{0, start_state_};
  const CacheMark* mark = &start;
  if (begun_ && contents_) {
    if (const CacheMark* found = contents_->mark_before(position)) mark = found;
  } else if (begun_ && !marks_.empty()) {
    mark = &marks_.back();
  }
  state.set_int("position", position);
  state.set_child("start", start_state_);
  state.set_int("mark", mark->position);
  state.set_child("input", mark->state);
  if (!chosen_) state.set_int("open", 1);  // the file could not be read: begin() chooses
  if (overshot_) state.set_int("overshot", 1);
  return state;
}

void CacheIterator::restore(const IteratorState& state) {
  position_ = state.get_int("position", 0, kMostElements);
  const int64_t mark = state.get_int("mark", 0, position_);
  start_state_ = state.shared_child("start");
  start_ = start_state_->serialize();
  chosen_ = !state.has("open");
  overshot_ = state.has("overshot");
  filler_ = nullptr;
  marks_.clear();
  begun_ = position_ > 0;
  if (!begun_) return;
  contents_ = usable_contents();
  if (contents_) {
    if (position_ > contents_->size()) {
      throw DataLossError(str("cache: the state is of element ", position_, ", but there are only ",
                              contents_->size()));
    }
    return;
  }
  const auto& before = state.shared_child("input");
  input_->restore(*before);
  marks_.push_back({mark, before});
  const int64_t found = mark + input_->skip(position_ - mark);
  if (found < position_ && !overshot_) {
    throw DataLossError(
        str("cache: the state is of element ", position_, ", but there are only ", found));
  }
}

class CacheNode final : public UnaryNode {
 public:
  CacheNode(DataNodePtr input, std::string path)
      : UnaryNode("cache", std::move(input)),
        path_(std::move(path)),
        store_(path_.empty() ? make_memory_cache() : make_file_cache(path_, inputs()[0])) {}

  Attributes attributes() const override {
    return path_.empty() ? Attributes{} : Attributes{{"path", path_}};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<CacheNode>(std::move(inputs[0]), path_);
  }
  // In a file of the worker's own: its elements are.
  DataNodePtr of_worker(std::vector<DataNodePtr> inputs, int64_t index,
                        int64_t num_workers) const override {
    return std::make_shared<CacheNode>(
        std::move(inputs[0]),
        path_.empty() ? path_ : str(path_, "-worker-", index, "-of-", num_workers));
  }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    if (context.probing) return input().make_iterator(context);
    IteratorContext first_pass = context.keeping_order();  // restoring counts from the last mark
    first_pass.epoch = 0;
    return std::make_unique<CacheIterator>(input().make_iterator(first_pass), store_,
                                           path_.empty());
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  std::string path_;
  std::shared_ptr<CacheStore> store_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::cache(std::string path) const {
  return Dataset(std::make_shared<internal::CacheNode>(node_, std::move(path)), options_);
}

}  // namespace cohort::data
