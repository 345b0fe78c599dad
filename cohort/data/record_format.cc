#include "cohort/data/record_format.h"

#include <vector>

namespace cohort::internal {
namespace {

// A string keeps at most so many times its own bytes alive; else it is copied.
constexpr size_t kMostKeptRatio = 8;

size_t total_bytes(std::span<const std::string_view> records) {
  size_t bytes = 0;
  for (const std::string_view record : records) bytes += record.size();
  return bytes;
}

}  // namespace

StructureSpec RecordFormat::element_spec() const {
  return TensorSpec::strings(std::vector<int64_t>{});
}

Structure RecordFormat::element(const RecordSlice& slice, const std::string&) const {
  const std::string_view record = slice.records.front();
  if (record.size() * kMostKeptRatio < slice.run.memory->capacity) {
    return StringTensor::scalar(record);
  }
  return StringTensor::over(slice.run.memory, slice.records.data(), {});
}

Structure RecordFormat::block(std::span<const RecordSlice> slices, const std::string&) const {
  struct Memory {
    std::vector<std::string_view> records;
    std::vector<std::shared_ptr<const RecordChunk>> chunks;
  };
  size_t kept = 0, used = 0;
  int64_t count = 0;
  for (const RecordSlice& slice : slices) {
    kept += slice.run.memory->capacity;
    used += total_bytes(slice.records);
    count += static_cast<int64_t>(slice.records.size());
  }
  const RecordSlice& first = slices.front();
  StringTensor block;
  if (slices.size() == 1) {
    block = StringTensor::over(first.run.memory, first.records.data(), {count});
  } else {
    const auto memory = std::make_shared<Memory>();
    for (const RecordSlice& slice : slices) {
      memory->records.insert(memory->records.end(), slice.records.begin(), slice.records.end());
      memory->chunks.push_back(slice.run.memory);
    }
    block = StringTensor::over(memory, memory->records.data(), {count});
  }
  return used * kMostKeptRatio < kept ? concat({block}) : block;
}

}  // namespace cohort::internal
