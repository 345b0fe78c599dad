// Elements that can be read at any position. For these, skipping, sharding and resuming cost
// nothing, and a shuffle permutes positions instead of buffering elements.
#pragma once

#include <cstdint>
#include <memory>

#include "cohort/data/iteration/iterator.h"
#include "cohort/data/iteration/positions.h"

namespace cohort::internal {

// Thread safety: none (it contains scratch space); each iterator has its own.
class IndexedData {
 public:
  virtual ~IndexedData() = default;
  virtual int64_t size() const = 0;
  // Every position is in [0, size()).
  virtual void read(int64_t position, Structure& out) = 0;
  // See DataIterator::has_blocks.
  virtual bool has_blocks() const { return false; }
  virtual void read_block(const Positions& positions, Structure& out);
};

// Reads one element after another. Its state is a position.
class IndexedIterator final : public DataIterator {
 public:
  explicit IndexedIterator(std::unique_ptr<IndexedData> data) : data_(std::move(data)) {}

  bool next(Structure& out) override;
  bool has_blocks() const override { return data_->has_blocks(); }
  int64_t next_block(int64_t n, Structure& out) override;
  int64_t skip(int64_t n) override;
  void rewind(uint64_t) override { position_ = 0; }
  IteratorState save() override;
  void restore(const IteratorState& state) override;

 private:
  std::unique_ptr<IndexedData> data_;
  int64_t position_ = 0;
};

}  // namespace cohort::internal
