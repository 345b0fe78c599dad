// TFRecord, TensorFlow's file of byte strings. Each record is
//
//   length: u64  masked crc32c of the length: u32  data: byte*length  masked crc32c of the data:
//   u32
//
// in little endian; nothing comes before, between or after them.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "cohort/data/records/record_reader.h"

namespace cohort::internal {

inline constexpr size_t kTFRecordHeaderBytes = 12;
inline constexpr size_t kTFRecordFooterBytes = 4;

// Checks both checksums of every record.
std::shared_ptr<const Framing> make_tfrecord_framing();

// Whether the bytes are what stands before a record of whatever length.
bool is_tfrecord_header(std::string_view bytes);

// What stands before and after the data of a record.
std::array<char, kTFRecordHeaderBytes> tfrecord_header(std::string_view data);
std::array<char, kTFRecordFooterBytes> tfrecord_footer(std::string_view data);

}  // namespace cohort::internal
