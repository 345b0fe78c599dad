// Any bytes are an error of one of our classes, whose bytes are that same error again.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/text.h"

namespace {

void require_of_error(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "does not hold: " << property << '\n';
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cohort;
  using namespace cohort::internal;
  const std::exception_ptr error = rpc::decode_error({reinterpret_cast<const char*>(data), size});
  require_of_error(error != nullptr, "any bytes are an error");
  const ErrorRecord record = record_error(error);
  require_of_error(record.code > Code::kOk && record.code <= Code::kUnauthenticated,
                   "the code is one of an error");
  require_of_error(rpc::printable(record.message) == record.message, "the text can be printed");
  require_of_error(rpc::printable(record.task) == record.task, "the task can be printed");

  const std::string bytes = rpc::encode_error(error);
  require_of_error(bytes.size() <= 6 << 10, "it fits into metadata");
  const std::exception_ptr again = rpc::decode_error(bytes);
  require_of_error(record_error(again).code == record.code, "the code survives");
  if (record.message.size() <= rpc::kMostErrorTextBytes) {
    require_of_error(record_error(again).message == record.message, "the text survives");
  }
  const ErrorDetail detail = rpc::detail_of(error);
  const ErrorDetail same = rpc::detail_of(again);
  require_of_error(same.incarnation == detail.incarnation && same.step == detail.step &&
                       same.generation == detail.generation &&
                       same.system_error == detail.system_error && same.cause == detail.cause,
                   "the numbers survive");
  if (detail.peer.size() <= rpc::kMostErrorNameBytes) {
    require_of_error(same.peer == detail.peer, "the peer survives");
  }
  return 0;
}
