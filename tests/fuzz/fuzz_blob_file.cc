// Any bytes are a file of blobs or an error that names it; blobs that are written are read again,
// and no byte of their file can change without an error.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/data/records/blob_file.h"
#include "tests/fuzz/input_reader.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/peak_memory.h"
#include "tests/fuzz/record_check.h"

namespace {

using cohort::Error;
using cohort::fuzz::InputReader;
using cohort::fuzz::MemoryFile;
using cohort::fuzz::require_of_records;
using cohort::internal::BlobFile;
using cohort::internal::SimulatedFileSystem;

struct Contents {
  std::vector<std::string> blobs;
  std::string info;
  bool operator==(const Contents&) const = default;
};

std::string write(const Contents& contents) {
  SimulatedFileSystem files;
  cohort::internal::BlobFileWriter writer(files, "input");
  for (const std::string& blob : contents.blobs) writer.append(blob);
  writer.finish(contents.info);
  const auto file = files.open("input");
  std::string bytes(file->size(), '\0');
  file->read(0, bytes.data(), bytes.size());
  return bytes;
}

// Nothing where any part is refused.
std::optional<Contents> read(std::string_view bytes) {
  const cohort::fuzz::PeakMemory memory;
  std::optional<Contents> contents(std::in_place);
  try {
    const BlobFile file(std::make_unique<MemoryFile>(bytes), "input");
    for (int64_t i = 0; i < file.size(); ++i) contents->blobs.push_back(file.read(i));
    contents->info = file.info();
  } catch (const Error& error) {
    require_of_records(std::string_view(error.what()).find("file 'input'") == 0,
                       "the error names the file");
    contents.reset();
  }
  require_of_records(memory.peak_bytes() <= static_cast<int64_t>(bytes.size()) * 16 + (64 << 10),
                     "no more memory than the file has bytes for");
  return contents;
}

template <class Number>
void append_number(std::string& out, Number value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// What the rest of the input is, with a good trailer behind it: of an index that lies anywhere.
std::string with_trailer(InputReader in) {
  using cohort::internal::crc32c;
  using cohort::internal::mask_crc;
  const uint64_t index = in.any_number(), count = in.any_number();
  std::string file("cohortE\1", 8);
  file += in.bytes(UINT16_MAX);
  const std::string_view indexed = std::string_view(file).substr(std::min(index, file.size()));
  std::string trailer;
  append_number(trailer, index);
  append_number(trailer, count);
  append_number(trailer, mask_crc(crc32c(indexed)));
  append_number(trailer, mask_crc(crc32c(trailer)));
  return file + trailer + "cohortE$";
}

void check_written(InputReader in) {
  const uint64_t place = in.number(UINT16_MAX);
  const uint64_t flip = in.number(254) + 1;
  Contents contents;
  contents.info = in.bytes(255);
  while (!in.empty()) contents.blobs.emplace_back(in.bytes(255));
  std::string file = write(contents);
  require_of_records(read(file) == contents, "what was written is read again");
  file[place % file.size()] ^= static_cast<char>(flip);
  require_of_records(!read(file), "a changed byte is an error");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  InputReader in(std::string_view(reinterpret_cast<const char*>(data), size));
  switch (in.number(2)) {
    case 0:
      if (const auto contents = read(in.bytes(UINT16_MAX))) {
        require_of_records(read(write(*contents)) == contents, "what was read can be written");
      }
      break;
    case 1:
      read(with_trailer(in));
      break;
    default:
      check_written(in);
  }
  return 0;
}
