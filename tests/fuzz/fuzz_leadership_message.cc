// Any bytes are what a coordinator says of who leads, or a call with the session of its sender, or
// an error.
#include <cstdint>

#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/leadership/leadership_message.h"
#include "tests/fuzz/message_check.h"

namespace {

using namespace cohort::internal;

// The last stamp counts, whatever was there before.
void check_stamp(rpc::Message message, SessionId session) {
  try {
    session_of(message);
    stamp(message, session);
    cohort::fuzz::require_of_message(session_of(message) == session, "a stamp is read");
  } catch (const cohort::DataLossError&) {  // no message before
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cohort::fuzz::InputReader in({reinterpret_cast<const char*>(data), size});
  const uint64_t which = in.number(2);
  const SessionId session = which == 2 ? in.any_number() : 0;
  const rpc::Message message = cohort::fuzz::read_message(in);
  switch (which) {
    case 0:
      cohort::fuzz::check_decoder(message, decode_leader_claim);
      break;
    case 1:
      cohort::fuzz::check_decoder(message, decode_refuse_worker);
      break;
    default:
      check_stamp(message, session);
  }
  return 0;
}
