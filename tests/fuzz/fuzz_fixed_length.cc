// Any bytes are a file of records of one length, up to some place: the records are what lies
// between its header and its footer, and it is damaged where that is no whole number of them.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "cohort/data/records/text_framing.h"
#include "tests/fuzz/input_reader.h"
#include "tests/fuzz/record_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cohort;
  // The layout first, then the file.
  constexpr size_t kLayoutBytes = 27;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  fuzz::InputReader in(input.substr(0, kLayoutBytes));
  const internal::FixedLength layout = {.record_bytes = std::max<uint64_t>(in.any_number(), 1),
                                        .header_bytes = in.any_number(),
                                        .footer_bytes = in.any_number()};
  const std::string_view bytes = input.substr(std::min(kLayoutBytes, size));
  const auto most_memory = static_cast<int64_t>(bytes.size()) * 64 + (64 << 10);
  const fuzz::RecordFile file =
      fuzz::check_records(bytes, internal::Compression::kNone,
                          internal::make_fixed_length_framing(layout), most_memory);

  const bool has_ends = layout.header_bytes <= bytes.size() &&
                        layout.footer_bytes <= bytes.size() - layout.header_bytes;
  const uint64_t between = has_ends ? bytes.size() - layout.header_bytes - layout.footer_bytes : 0;
  fuzz::require_of_records(file.damaged == (!has_ends || between % layout.record_bytes != 0),
                           "a whole number of records between header and footer");
  fuzz::require_of_records(file.records.size() == between / layout.record_bytes,
                           "the records before the damage");
  uint64_t offset = layout.header_bytes;
  for (const std::string& record : file.records) {
    fuzz::require_of_records(record == bytes.substr(offset, layout.record_bytes),
                             "records lie one after another");
    offset += layout.record_bytes;
  }
  return 0;
}
