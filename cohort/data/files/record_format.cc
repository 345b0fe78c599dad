#include "cohort/data/files/record_format.h"

#include <algorithm>
#include <memory>
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

// Records of one run, which lie one after another: with what is between them they are one copy.
StringTensor copied_run(std::span<const std::string_view> records, size_t used) {
  const char* const begin = records.front().data();
  const auto bytes = static_cast<size_t>(records.back().data() + records.back().size() - begin);
  const auto count = static_cast<int64_t>(records.size());
  if (bytes / 2 > used) {
    return concat({StringTensor::over(nullptr, records.data(), {count})});
  }
  struct Memory {
    std::unique_ptr<char[]> bytes;
    std::vector<std::string_view> records;
  };
  const auto memory = std::make_shared<Memory>();
  memory->bytes = std::make_unique_for_overwrite<char[]>(bytes);
  std::copy_n(begin, bytes, memory->bytes.get());
  memory->records.reserve(records.size());
  for (const std::string_view record : records) {
    memory->records.emplace_back(memory->bytes.get() + (record.data() - begin), record.size());
  }
  return StringTensor::over(memory, memory->records.data(), {count});
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
  std::vector<std::shared_ptr<const RecordChunk>> chunks;
  size_t kept = 0, used = 0;
  int64_t count = 0;
  for (const RecordSlice& slice : slices) {
    // Files that take turns give many slices of few chunks.
    if (std::find(chunks.begin(), chunks.end(), slice.run.memory) == chunks.end()) {
      chunks.push_back(slice.run.memory);
      kept += slice.run.memory->capacity;
    }
    used += total_bytes(slice.records);
    count += static_cast<int64_t>(slice.records.size());
  }
  const bool copy = used * kMostKeptRatio < kept;
  const RecordSlice& first = slices.front();
  if (copy && slices.size() == 1) return copied_run(first.records, used);
  StringTensor block;
  if (slices.size() == 1) {
    block = StringTensor::over(first.run.memory, first.records.data(), {count});
  } else {
    const auto memory = std::make_shared<Memory>();
    for (const RecordSlice& slice : slices) {
      memory->records.insert(memory->records.end(), slice.records.begin(), slice.records.end());
    }
    memory->chunks = std::move(chunks);
    block = StringTensor::over(memory, memory->records.data(), {count});
  }
  return copy ? concat({block}) : block;
}

}  // namespace cohort::internal
