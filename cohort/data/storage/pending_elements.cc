#include "cohort/data/storage/pending_elements.h"

#include "cohort/core/error.h"
#include "cohort/data/functions/error_context.h"
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
  Code code = Code::kUnknown;
  std::string text = "an exception of an unknown class", task;
  try {
    std::rethrow_exception(error);
  } catch (const Error& typed) {
    code = typed.code();
    text = typed.what();
    task = typed.task();
  } catch (const std::exception& other) {
    text = other.what();
  } catch (...) {
  }
  state.set_int("error", static_cast<int64_t>(code));
  state.set_bytes("text", std::move(text));
  state.set_bytes("task", std::move(task));
}

std::exception_ptr restore_error(const IteratorState& state) {
  const int64_t code = state.get_int("error", 0, static_cast<int64_t>(Code::kUnauthenticated));
  const std::string& text = state.get_bytes("text");
  const std::string& task = state.get_bytes("task");
  try {
    throw_code(static_cast<Code>(code), text, task);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace cohort::internal
