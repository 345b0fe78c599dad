#include <algorithm>
#include <optional>

#include "cohort/data/iteration/stacking.h"
#include "cohort/data/storage/cache_store.h"

namespace cohort::internal {

void CacheContents::read_block(int64_t position, int64_t count, Structure& out) const {
  std::vector<Structure> elements(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) read(position + i, elements[i]);
  out = stack_elements(elements, Positions::run(position, count));
}

namespace {

// One block where the elements came in blocks that fit together, else the elements.
class MemoryContents final : public CacheContents {
 public:
  MemoryContents(std::string start, std::optional<Structure> block, std::vector<Structure> elements,
                 int64_t size, std::vector<CacheMark> marks)
      : start_(std::move(start)),
        block_(std::move(block)),
        elements_(std::move(elements)),
        size_(size),
        marks_(std::move(marks)) {}

  const std::string& start() const override { return start_; }
  int64_t size() const override { return size_; }
  void read(int64_t position, Structure& out) const override {
    out = block_ ? select_row(*block_, position) : elements_[static_cast<size_t>(position)];
  }
  void read_block(int64_t position, int64_t count, Structure& out) const override {
    if (!block_) return CacheContents::read_block(position, count, out);
    out = slice_rows(*block_, position, position + count);
  }
  const CacheMark* mark_before(int64_t position) const override {
    const auto after = std::upper_bound(
        marks_.begin(), marks_.end(), position,
        [](int64_t value, const CacheMark& mark) { return value < mark.position; });
    return after == marks_.begin() ? nullptr : &*std::prev(after);
  }

 private:
  std::string start_;
  std::optional<Structure> block_;
  std::vector<Structure> elements_;
  int64_t size_;
  std::vector<CacheMark> marks_;
};

// What all of a node's iterators share: the contents of the first pass that was read to its end.
class MemoryStore final : public CacheStore, public std::enable_shared_from_this<MemoryStore> {
 public:
  std::shared_ptr<const CacheContents> contents() override {
    const std::lock_guard lock(mutex_);
    return contents_;
  }
  std::unique_ptr<CacheFiller> fill(const std::string& start) override;
  std::shared_ptr<const CacheContents> publish(std::shared_ptr<const CacheContents> contents) {
    const std::lock_guard lock(mutex_);
    if (!contents_) contents_ = contents;
    return contents;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const CacheContents> contents_;
};

class MemoryFiller final : public CacheFiller {
 public:
  MemoryFiller(std::shared_ptr<MemoryStore> store, std::string start)
      : store_(std::move(store)), start_(std::move(start)) {}

  void add(const Structure& element) override {
    elements_.push_back(element);
    ++size_;
  }
  void add_block(const Structure& block, int64_t count) override {
    blocks_.push_back(block);
    firsts_.push_back(size_);
    size_ += count;
  }
  std::shared_ptr<const CacheContents> finish(std::vector<CacheMark> marks) override {
    std::optional<Structure> block;
    if (!blocks_.empty()) block = join_blocks();
    return store_->publish(std::make_shared<const MemoryContents>(
        std::move(start_), std::move(block), std::move(elements_), size_, std::move(marks)));
  }

 private:
  std::optional<Structure> join_blocks() {
    try {
      return concat_blocks(blocks_, Positions::list(firsts_));
    } catch (const InvalidArgumentError&) {  // elements of several shapes
    }
    for (const Structure& block : blocks_) {
      for (int64_t row = 0; row < num_rows(block); ++row) {
        elements_.push_back(select_row(block, row));
      }
    }
    return std::nullopt;
  }

  std::shared_ptr<MemoryStore> store_;
  std::string start_;
  std::vector<Structure> elements_;
  std::vector<Structure> blocks_;
  std::vector<int64_t> firsts_;  // position of each block
  int64_t size_ = 0;
};

std::unique_ptr<CacheFiller> MemoryStore::fill(const std::string& start) {
  return std::make_unique<MemoryFiller>(shared_from_this(), start);
}

}  // namespace

std::shared_ptr<CacheStore> make_memory_cache() { return std::make_shared<MemoryStore>(); }

}  // namespace cohort::internal
