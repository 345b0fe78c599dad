// Uses memory of a communicator again and again: a communicator itself frees none before its end.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "cohort/collective/buffer.h"

namespace cohort::collective {

// Thread safety: any thread.
class BufferPool {
 public:
  // Memory of the pool, given back when it goes; movable. Must not outlive the pool.
  class Piece {
   public:
    Piece() = default;
    Piece(Piece&& other) noexcept { *this = std::move(other); }
    Piece& operator=(Piece&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(buffer_, other.buffer_);
      return *this;
    }
    ~Piece() {
      if (pool_ != nullptr) pool_->give_back(buffer_);
    }

    char* data() const { return static_cast<char*>(buffer_.data); }
    int64_t bytes() const { return buffer_.count; }

   private:
    friend class BufferPool;
    Piece(BufferPool* pool, const Buffer& buffer) : pool_(pool), buffer_(buffer) {}

    BufferPool* pool_ = nullptr;
    Buffer buffer_;
  };

  // source: a communicator, which must outlive the pool.
  explicit BufferPool(BufferSource& source) : source_(source) {}

  // At least so many bytes, with any contents.
  // Errors: those of BufferSource::buffer.
  Piece take(int64_t bytes);

  // Keeps a piece that other tasks may still read where it lies, from take().
  void set_aside(Piece piece);
  // Returns the pieces that were set aside, to a caller that is about to make a call that every
  // task makes only after it has read them. When that call has returned, the pieces may be freed.
  std::vector<Piece> take_set_aside();

 private:
  void give_back(const Buffer& buffer);

  BufferSource& source_;
  std::mutex mutex_;
  size_t made_ = 0;           // guarded by mutex_
  std::vector<Buffer> free_;  // guarded by mutex_
  // Guarded by mutex_. After free_, to which they go.
  std::vector<Piece> set_aside_;
};

}  // namespace cohort::collective
