// The store in which a cache keeps elements, shared by all iterators of its node.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/data/graph/node.h"

namespace cohort::internal {

// The input's state before some element, so that what is restored without the cache's contents
// need not read from the beginning.
struct CacheMark {
  int64_t position = 0;
  std::shared_ptr<const IteratorState> state;
};

// All elements of one pass. Thread safety: immutable; reads from any thread.
class CacheContents {
 public:
  virtual ~CacheContents() = default;
  // The input's state before the first element: says which pass it was, in serialized form.
  virtual const std::string& start() const = 0;
  virtual int64_t size() const = 0;
  virtual void read(int64_t position, Structure& out) const = 0;
  // `count` elements from `position` on as a block, all of them there.
  virtual void read_block(int64_t position, int64_t count, Structure& out) const;
  // The last mark at or before `position`, or null.
  virtual const CacheMark* mark_before(int64_t) const { return nullptr; }
};

// Takes a pass's elements in order, singly or as blocks but not both.
class CacheFiller {
 public:
  virtual ~CacheFiller() = default;
  virtual void add(const Structure& element) = 0;
  virtual void add_block(const Structure& block, int64_t count) = 0;
  virtual std::shared_ptr<const CacheContents> finish(std::vector<CacheMark> marks) = 0;
};

// Thread safety: any thread.
class CacheStore {
 public:
  virtual ~CacheStore() = default;
  // Null as long as no pass was read to its end. Errors: see Dataset::cache.
  virtual std::shared_ptr<const CacheContents> contents() = 0;
  // For a pass that begins at the input's state `start`.
  virtual std::unique_ptr<CacheFiller> fill(const std::string& start) = 0;
};

std::shared_ptr<CacheStore> make_memory_cache();
// In the file `path`, of elements of `input`.
std::shared_ptr<CacheStore> make_file_cache(std::string path, DataNodePtr input);

}  // namespace cohort::internal
