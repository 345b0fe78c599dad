// Any bytes are a record of an elastic group, or a proposal for one, or an error; and of what is a
// proposal, the rules make a record that others can read.
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cohort/cluster/elastic/forming_rules.h"
#include "cohort/cluster/elastic/record.h"
#include "tests/fuzz/message_check.h"

namespace {

using namespace cohort::internal;
using namespace cohort::internal::elastic;
using cohort::fuzz::require_of_message;

template <class T>
std::optional<T> decoded(std::string_view bytes) {
  try {
    T message = T::decode(bytes);
    require_of_message(T::decode(message.encode()).encode() == message.encode(),
                       "written as it was read");
    return message;
  } catch (const cohort::Error& error) {
    require_of_message(
        error.code() == cohort::Code::kDataLoss || error.code() == cohort::Code::kInvalidArgument,
        "an error of the two classes");
    return std::nullopt;
  }
}

membership::View three_tasks(int64_t term) {
  membership::View view{.service = 9, .term = term, .version = 1, .generation = 2};
  for (int i = 0; i < 3; ++i) {
    view.members.push_back(
        {.task = {"worker", i},
         .incarnation = 1,
         .state = i == 1 ? membership::TaskState::kLost : membership::TaskState::kAlive});
  }
  return view;
}

void check_rules(cohort::fuzz::InputReader& in) {
  const auto term = static_cast<int64_t>(1 + in.number(UINT64_MAX) % (uint64_t{1} << 53));
  const std::optional<Record> stored = decoded<Record>(in.bytes(255));
  std::vector<Proposal> proposals;
  for (int i = 0; i < 3; ++i) {  // one of each task
    std::optional<Proposal> proposal = decoded<Proposal>(in.bytes(255));
    if (!proposal) continue;
    proposal->proposer.task = {"worker", i};
    proposals.push_back(*std::move(proposal));
  }
  const Verdict verdict = judge(three_tasks(term), {.name = "g"}, stored, proposals, in.flag());
  if (!verdict.next) return;
  require_of_message(verdict.missing.empty(), "nobody is missing");
  const std::optional<Record> next = decoded<Record>(verdict.next->encode());
  require_of_message(next == verdict.next, "the next record can be read");
  require_of_message(!stored || next->number > stored->number, "numbers grow");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cohort::fuzz::InputReader in({reinterpret_cast<const char*>(data), size});
  const uint64_t which = in.number(2);
  const std::string_view rest =
      in.empty() ? "" : std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (which) {
    case 0:
      decoded<Record>(rest);
      break;
    case 1:
      decoded<Proposal>(rest);
      break;
    default:
      check_rules(in);
  }
  return 0;
}
