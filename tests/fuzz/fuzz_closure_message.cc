// Any bytes are a closure, or the making of an input, or an error.
#include <cstdint>

#include "cohort/parameter_server/closures/closure_message.h"
#include "tests/fuzz/message_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cohort::internal;
  cohort::fuzz::InputReader in({reinterpret_cast<const char*>(data), size});
  const bool is_closure = in.flag();
  const rpc::Message message = cohort::fuzz::read_message(in);
  if (is_closure) {
    cohort::fuzz::check_decoder(message, decode_run_closure);
  } else {
    cohort::fuzz::check_decoder(message, decode_make_input);
  }
  return 0;
}
