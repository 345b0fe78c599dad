// Values of a checkpoint that other processes have, and write themselves.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/train/bundle/tensor_slice.h"

namespace cohort::train {

class RemotePart;

// Parts as they were at one moment, for as long as this lives. They are numbered from 0.
// Errors of its calls: Unavailable and DeadlineExceeded (a process that has parts; names it), those
// of FileSystem at that process.
// Thread safety: one thread at a time.
class RemoteValues {
 public:
  virtual ~RemoteValues() = default;

  // The directory in which processes write, each to a file of its own.
  struct Target {
    std::string directory;  // absolute
    std::string probe;      // a file in it, by which a process sees that it has the same directory
    std::string file_prefix;  // of the files' names, to which each process adds its number
  };
  struct Stored {
    size_t part = 0;
    uint64_t offset = 0;
    uint64_t size = 0;
    uint32_t crc = 0;  // masked
  };
  struct File {
    std::string name;
    std::vector<Stored> parts;
  };
  // Lets each process write its parts, all at once; the files have been synced then. Missing: some
  // process does not see the directory. Without a result no files are left, as far as those
  // processes live.
  virtual std::optional<std::vector<File>> write(const Target& target) = 0;
  virtual Tensor fetch(size_t part) = 0;
};

// What processes have read of a checkpoint for their parts, until this ends. The parts change with
// commit(), all that were asked for. Errors and thread safety: as RemoteValues'.
class RemoteReads {
 public:
  virtual ~RemoteReads() = default;
  virtual void commit() = 0;
};

// Says of which value of a checkpoint a part is.
struct RemoteRead {
  std::shared_ptr<const RemotePart> part;
  std::string key;
  std::optional<TensorSlice> slice = std::nullopt;  // without: all of it
};

// Finds the parts of values in other processes.
class RemoteKeeper {
 public:
  virtual ~RemoteKeeper() = default;
  // What the parts are now; called while values are held (SaveGroup::hold_values). `timeout`: of
  // each call to another process, also of the result's. Errors: as RemoteValues'.
  virtual std::unique_ptr<RemoteValues> keep(
      const std::vector<std::shared_ptr<const RemotePart>>& parts,
      std::chrono::milliseconds timeout) = 0;
  // Lets each process read what its parts are in the checkpoint of this prefix, all at once, and
  // verify it. The index has this checksum: a process that finds another one has another file
  // there. nullptr: some process does not find it. Errors: as RemoteValues', DataLoss.
  virtual std::unique_ptr<RemoteReads> read(const std::string& prefix, uint32_t index_crc,
                                            const std::vector<RemoteRead>& wanted) = 0;
  // The same of values that `value_of` reads here, one after another: each has been sent to its
  // process before the next is read. nullptr: the caller has to bring them to their objects itself.
  // Errors: as RemoteValues', those of `value_of`.
  virtual std::unique_ptr<RemoteReads> send(const std::vector<RemoteRead>& wanted,
                                            FunctionRef<Tensor(const RemoteRead&)> value_of) = 0;
};

// One value, or one slice of a value.
class RemotePart {
 public:
  RemotePart(std::shared_ptr<RemoteKeeper> keeper, std::vector<int64_t> shape, DType dtype)
      : keeper_(std::move(keeper)), shape_(std::move(shape)), dtype_(dtype) {}
  virtual ~RemotePart() = default;

  const std::shared_ptr<RemoteKeeper>& keeper() const { return keeper_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  DType dtype() const { return dtype_; }

 private:
  const std::shared_ptr<RemoteKeeper> keeper_;
  const std::vector<int64_t> shape_;
  const DType dtype_;
};

}  // namespace cohort::train
