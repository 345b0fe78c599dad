#include "tests/fuzz/record_check.h"

#include <cstdlib>
#include <iostream>

#include "cohort/core/error.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/peak_memory.h"

namespace cohort::fuzz {
namespace {

using internal::Compression;
using internal::Framing;
using internal::RecordPosition;
using internal::RecordReader;

// Small, so that bombs are found at once.
constexpr uint64_t kMostRecordBytes = 1 << 20;

RecordReader reader_of(std::string_view bytes, Compression compression,
                       const std::shared_ptr<const Framing>& framing, size_t buffer_bytes) {
  return RecordReader(
      internal::make_byte_stream(std::make_unique<MemoryFile>(bytes), "input", compression),
      "input", compression, framing,
      {.buffer_bytes = buffer_bytes, .max_record_bytes = kMostRecordBytes});
}

RecordFile read(RecordReader& reader) {
  RecordFile file;
  file.positions.push_back(reader.position());
  try {
    while (true) {
      const internal::RecordRun run = reader.next();
      if (run.records.empty()) break;
      for (const std::string_view record : run.records) {
        require_of_records(record.data() >= run.bytes.data() &&
                               record.data() + record.size() <= run.bytes.data() + run.bytes.size(),
                           "records lie in their run");
        file.records.emplace_back(record);
      }
      file.positions.push_back(reader.position());
    }
  } catch (const DataLossError& error) {
    file.damaged = true;
    require_of_records(std::string_view(error.what()).find("'input', byte ") == 0,
                       "the error names the file and the byte");
    return file;
  }
  require_of_records(reader.next().records.empty(), "the end stays the end");
  return file;
}

}  // namespace

void require_of_records(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "records: broken property: " << property << '\n';
  std::abort();
}

RecordFile check_records(std::string_view bytes, Compression compression,
                         const std::shared_ptr<const Framing>& framing, int64_t most_memory) {
  {
    const PeakMemory memory;
    RecordReader reader = reader_of(bytes, compression, framing, 4096);
    try {
      while (!reader.next().records.empty()) {
      }
    } catch (const DataLossError&) {
      // It is read again below.
    }
    require_of_records(memory.peak_bytes() <= most_memory, "no more memory than stated");
  }
  RecordReader whole = reader_of(bytes, compression, framing, 1 << 16);
  const RecordFile file = read(whole);
  for (const size_t buffer : {1, 100}) {
    RecordReader reader = reader_of(bytes, compression, framing, buffer);
    const RecordFile other = read(reader);
    require_of_records(other.records == file.records && other.damaged == file.damaged,
                       "the same records from a buffer of another size");
    const RecordPosition& middle = other.positions[other.positions.size() / 2];
    reader.seek(middle);
    const RecordFile rest = read(reader);
    require_of_records(
        rest.damaged == file.damaged && rest.records.size() <= file.records.size() &&
            std::equal(rest.records.rbegin(), rest.records.rend(), file.records.rbegin()),
        "the same records from a place in the middle");
  }
  return file;
}

}  // namespace cohort::fuzz
