// Files that the tests of the data sets write themselves.
#pragma once

#include <gtest/gtest.h>
#include <isa-l/igzip_lib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/testing_folder.h"

namespace cohort::internal {

// An IDX file of unsigned bytes.
inline std::string make_idx(const std::vector<uint32_t>& shape, const std::string& values) {
  std::string bytes = {0, 0, 8, static_cast<char>(shape.size())};
  for (uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift);
  }
  return bytes + values;
}

inline std::string gzip(std::string bytes) {
  std::string compressed(bytes.size() * 2 + 1000, '\0');
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.flush = NO_FLUSH;
  stream.next_in = reinterpret_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uint32_t>(bytes.size());
  stream.next_out = reinterpret_cast<uint8_t*>(compressed.data());
  stream.avail_out = static_cast<uint32_t>(compressed.size());
  EXPECT_EQ(isal_deflate_stateless(&stream), COMP_OK);
  compressed.resize(stream.total_out);
  return compressed;
}

}  // namespace cohort::internal
