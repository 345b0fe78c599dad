// Two collective calls have the same fingerprint if and only if nothing in them differs.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "cohort/collective/call_fingerprint.h"
#include "tests/fuzz/input_reader.h"

namespace {

using cohort::fuzz::InputReader;

struct Call {
  std::string operation;
  std::string name;
  std::string signature;
  int root = -1;
  int64_t count = 0;
  int dtype = -1;
  std::vector<int64_t> parts;
  cohort::collective::CallPlace place;

  bool operator==(const Call&) const = default;

  uint64_t fingerprint() const {
    const cohort::collective::CallIdentity identity{operation, name,  signature, root,
                                                    count,     dtype, parts};
    return cohort::collective::placed_fingerprint(identity.fingerprint(), place);
  }
};

// Reads one field again.
void change(Call& call, uint64_t field, InputReader& in) {
  switch (field) {
    case 0:
      call.operation = in.bytes(12);
      break;
    case 1:
      call.name = in.bytes(40);
      break;
    case 2:
      call.signature = in.bytes(40);
      break;
    case 3:
      call.root = static_cast<int>(in.number(255)) - 1;
      break;
    case 4:
      call.count = static_cast<int64_t>(in.any_number());
      break;
    case 5:
      call.dtype = static_cast<int>(in.number(20)) - 1;
      break;
    case 6:
      call.parts.clear();
      for (uint64_t i = in.number(8); i > 0; --i) {
        call.parts.push_back(static_cast<int64_t>(in.any_number()));
      }
      break;
    case 7:
      call.place.generation = static_cast<int64_t>(in.any_number());
      break;
    case 8:
      call.place.sequence = in.any_number();
      break;
    default:
      call.place.phase = static_cast<int64_t>(in.any_number());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  InputReader in({reinterpret_cast<const char*>(data), size});
  constexpr uint64_t kFields = 10;
  Call first;
  for (uint64_t field = 0; field < kFields; ++field) change(first, field, in);
  Call second = first;
  while (!in.empty()) change(second, in.number(kFields - 1), in);
  if ((first == second) == (first.fingerprint() == second.fingerprint())) return 0;
  std::cerr << "does not hold: equal calls and no others have equal fingerprints\n";
  std::abort();
}
