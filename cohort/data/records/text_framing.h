// Records that are lines, and records of one length.
#pragma once

#include <cstdint>
#include <memory>

#include "cohort/data/records/record_reader.h"

namespace cohort::internal {

// Ended by "\n" or "\r\n", which are no part of the record; the last one may have no end.
std::shared_ptr<const Framing> make_line_framing();

struct FixedLength {
  uint64_t record_bytes = 0;  // at least 1
  uint64_t header_bytes = 0;  // before the first record
  uint64_t footer_bytes = 0;  // after the last one
};
// What is left after the last whole record must be the footer, no more and no less.
std::shared_ptr<const Framing> make_fixed_length_framing(const FixedLength& layout);

}  // namespace cohort::internal
