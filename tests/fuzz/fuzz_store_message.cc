// Any bytes are a request to a parameter server's store, or its answer, or an error.
#include <cstdint>

#include "cohort/parameter_server/store/kept_message.h"
#include "cohort/parameter_server/store/packed_message.h"
#include "cohort/parameter_server/store/store_message.h"
#include "tests/fuzz/message_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cohort::internal;
  cohort::fuzz::InputReader in({reinterpret_cast<const char*>(data), size});
  const uint64_t which = in.number(14);
  const rpc::Message message = cohort::fuzz::read_message(in);
  switch (which) {
    case 0:
      cohort::fuzz::check_decoder(message, decode_create);
      break;
    case 1:
      cohort::fuzz::check_decoder(message, decode_read);
      break;
    case 2:
      cohort::fuzz::check_decoder(message, decode_read_reply);
      break;
    case 3:
      cohort::fuzz::check_decoder(message, decode_rows);
      break;
    case 4:
      cohort::fuzz::check_decoder(message, decode_push_pull);
      break;
    case 5:
      cohort::fuzz::check_decoder(message, decode_keep);
      break;
    case 6:
      cohort::fuzz::check_decoder(message, decode_write_kept);
      break;
    case 7:
      cohort::fuzz::check_decoder(message, decode_write_kept_reply);
      break;
    case 8:
      cohort::fuzz::check_decoder(message, decode_kept);
      break;
    case 10:
      cohort::fuzz::check_decoder(message, decode_read_parts);
      break;
    case 11:
      cohort::fuzz::check_decoder(message, decode_read_parts_reply);
      break;
    case 12:
      cohort::fuzz::check_decoder(message, decode_load);
      break;
    case 13:
      cohort::fuzz::check_decoder(message, decode_release);
      break;
    case 14:
      cohort::fuzz::check_decoder(message, [](const rpc::Message& any) {
        unpacked(any);
        return ReadRequest();
      });
      break;
    default:
      cohort::fuzz::check_decoder(message, decode_apply);
  }
  return 0;
}
