// What holds of every file of records, whatever bytes it is made of.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/data/records/record_reader.h"

namespace cohort::fuzz {

// Ends the program unless it holds.
void require_of_records(bool holds, std::string_view property);

struct RecordFile {
  std::vector<std::string> records;
  std::vector<internal::RecordPosition> positions;  // the first record's and after each run
  bool damaged = false;
};

// Reads the bytes as the file 'input' to the end or to the first damage. Whatever the size of the
// buffer and wherever reading begins anew, the records are the same, they lie in memory that stays
// as it is, and the error names the file. Memory that is taken stays within `most_memory` bytes.
RecordFile check_records(std::string_view bytes, internal::Compression compression,
                         const std::shared_ptr<const internal::Framing>& framing,
                         int64_t most_memory);

}  // namespace cohort::fuzz
