// Any bytes are either a safetensors file, each tensor of which can be read and whose header comes
// back as it was from being written, or an error that names the file.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/train/safetensors/safetensors_file.h"

namespace {

using cohort::internal::SafetensorsHeader;
using cohort::internal::SafetensorsReader;

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_safetensors: broken property: " << property << '\n';
  std::abort();
}

class MemoryFile final : public cohort::internal::ReadableFile {
 public:
  explicit MemoryFile(std::string_view bytes) : bytes_(bytes) {}

  uint64_t size() const override { return bytes_.size(); }
  void read(uint64_t offset, void* out, size_t length) const override {
    require(offset <= bytes_.size() && length <= bytes_.size() - offset, "reads inside the file");
    if (length > 0) std::memcpy(out, bytes_.data() + offset, length);
  }

 private:
  std::string_view bytes_;
};

void check(const SafetensorsReader& file, size_t size) {
  const SafetensorsHeader& header = file.header();
  uint64_t end = 0;
  for (const auto* tensor : in_file_order(header)) {
    const auto& [name, entry] = *tensor;
    require(entry.begin == end && entry.end >= end, "no gap and no overlap");
    require(entry.end - entry.begin == cohort::internal::num_elements(entry.shape, name) *
                                           cohort::internal::size_of(entry.type),
            "as many bytes as the shape takes");
    end = entry.end;
    std::string bytes(entry.end - entry.begin, '\0');
    file.read(entry, bytes.data());
  }
  require(end == data_bytes(header) && end <= size, "all data belongs to a tensor");
  const std::string written = format_safetensors_header(header);
  require(cohort::internal::parse_safetensors_header(std::string_view(written).substr(8), end,
                                                     "written") == header,
          "what is written is what was read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto names_the_file = [](const cohort::Error& error) {
    require(std::string_view(error.what()).find("'input'") != std::string_view::npos,
            "the error names the file");
  };
  try {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    check(SafetensorsReader(std::make_unique<MemoryFile>(bytes), "input"), size);
  } catch (const cohort::DataLossError& error) {
    names_the_file(error);
  } catch (const cohort::UnimplementedError& error) {
    names_the_file(error);
  }
  return 0;
}
