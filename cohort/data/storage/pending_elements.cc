#include "cohort/data/storage/pending_elements.h"

#include "cohort/core/error.h"
#include "cohort/data/storage/element_codec.h"

namespace cohort::internal {
namespace {

constexpr const char* kName = "pending";

}  // namespace

void save_pending(const std::vector<Structure>& elements, IteratorState& state) {
  if (!elements.empty()) state.set_bytes(kName, encode_element(Structure::make_tuple(elements)));
}

std::vector<Structure> restore_pending(const IteratorState& state, std::string_view what,
                                       int64_t most) {
  std::vector<Structure> elements;
  if (!state.has(kName)) return elements;
  const std::string where = str("iterator state of a ", what);
  const Structure all = decode_element(state.get_bytes(kName), where);
  if (all.is_leaf() || static_cast<int64_t>(all.size()) >= most) {
    throw DataLossError(str(where, ": it has ", all.is_leaf() ? 0 : all.size(),
                            " pending elements of a batch of ", most));
  }
  for (size_t i = 0; i < all.size(); ++i) elements.push_back(all[i]);
  return elements;
}

void save_error(const std::exception_ptr& error, IteratorState& state) {
  ErrorRecord record = record_error(error);
  state.set_int("error", static_cast<int64_t>(record.code));
  state.set_bytes("text", std::move(record.message));
  state.set_bytes("task", std::move(record.task));
}

std::exception_ptr restore_error(const IteratorState& state) {
  const int64_t code = state.get_int("error", 0, static_cast<int64_t>(Code::kUnauthenticated));
  return make_error(static_cast<Code>(code), state.get_bytes("text"), state.get_bytes("task"));
}

}  // namespace cohort::internal
