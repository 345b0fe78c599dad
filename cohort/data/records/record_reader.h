// Reads a file of records in order: many records at a time, as views into one block of memory.
//
//   RecordReader reader(open_records(files, "a.tfrecord"), make_tfrecord_framing());
//   for (RecordRun run = reader.next(); !run.records.empty(); run = reader.next()) {
//     for (std::string_view record : run.records) ...
//   }
//
// What a record is, a Framing says: TFRecord's (tfrecord_framing.h), lines and records of one
// length (text_framing.h), CSV's (csv.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/compression.h"
#include "cohort/core/files/file_deadline.h"
#include "cohort/core/files/file_system.h"
#include "cohort/data/records/byte_stream.h"
#include "cohort/data/records/chunk_pool.h"

namespace cohort::internal {

// A place between two records.
struct RecordPosition {
  uint64_t offset = 0;  // in bytes of the file's content: what comes out of its compression
  uint64_t index = 0;   // of the record; of files of text, of the line

  bool operator==(const RecordPosition&) const = default;
};

// Cuts bytes into records. Thread safety: immutable.
class Framing {
 public:
  struct Input {
    std::string_view bytes;  // from `position` on
    // So many bytes, at most, are there from `position` on; bytes.size() where no more will come.
    uint64_t available;
    const std::string& file;  // its name, for errors
    RecordPosition position;

    [[noreturn]] void fail(const std::string& problem) const;  // with file and position
    bool at_end() const { return available == bytes.size(); }
  };
  struct Split {
    size_t consumed = 0;   // bytes of the records that were found, and of what lies between
    uint64_t indices = 0;  // records, or lines, in them
    // How many bytes a record takes at least, if none was found and that is known.
    uint64_t needed = 0;
  };

  virtual ~Framing() = default;
  // Appends the whole records at the front of the bytes, as views of them. At damage it stops, and
  // where no record comes before it, fails.
  // Errors: DataLoss (damaged; at the end of the file, what is no whole record).
  virtual Split split(const Input& input, std::vector<std::string_view>& records) const = 0;
};

struct RecordReaderOptions {
  // How much is read at once: two or three such blocks should fit into a core's cache. Records stay
  // in memory together with those around them.
  size_t buffer_bytes = size_t{128} << 10;
  // The largest record of a compressed file, whose own size says nothing about what comes out of
  // it, and of files whose records do not say how long they are. buffer_bytes counts if that is
  // more.
  uint64_t max_record_bytes = uint64_t{256} << 20;
  FileDeadline deadline = kDefaultFileDeadline;
};

// Consecutive records.
struct RecordRun {
  std::span<const std::string_view> records;  // none at the end of the file
  std::string_view bytes;                     // all of the block up to the last record
  RecordPosition begin;                       // of `bytes`
  // Keeps all of it alive. Memory is reused when nobody holds it.
  std::shared_ptr<const RecordChunk> memory;
};

// Memory: two blocks of buffer_bytes or, if that is more, of the largest record, which is never
// larger than the file or max_record_bytes; twice that while one of unknown length grows; and what
// the holders of runs keep. No memory is taken because a file says so.
// Thread safety: none.
class RecordReader {
 public:
  RecordReader(std::unique_ptr<ByteStream> bytes, std::string file, Compression compression,
               std::shared_ptr<const Framing> framing, const RecordReaderOptions& options = {});

  // Errors: DataLoss (file, byte offset, and what is wrong), DeadlineExceeded. The reader stays
  // where it is.
  RecordRun next();
  // The beginning of the next run.
  const RecordPosition& position() const { return position_; }
  // To what position() gave. Errors: DataLoss (the file ends before).
  void seek(const RecordPosition& position);

  const std::string& file() const { return file_; }

 private:
  void make_room(std::shared_ptr<RecordChunk>& chunk, uint64_t needed);
  size_t larger_capacity(size_t size, uint64_t needed) const;

  const std::unique_ptr<ByteStream> bytes_;
  const std::string file_;
  const bool compressed_;
  const std::shared_ptr<const Framing> framing_;
  const RecordReaderOptions options_;
  const std::shared_ptr<ChunkPool> pool_;
  RecordPosition position_;
  std::shared_ptr<const RecordChunk> previous_;  // holds rest_
  std::string_view rest_;                        // read, but not yet part of a run
  size_t fill_bytes_;
};

// Errors: those of FileSystem::open (NotFound: names the file), but DataLoss of what is no regular
// file; a device's error only when it comes twice; DeadlineExceeded.
std::unique_ptr<RecordReader> open_records(FileSystem& files, const std::string& path,
                                           Compression compression,
                                           std::shared_ptr<const Framing> framing,
                                           const RecordReaderOptions& options = {});

}  // namespace cohort::internal
