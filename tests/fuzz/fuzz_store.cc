// Any calls to the store of a cluster answer what a std::map would.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/cluster/membership/store.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "tests/fuzz/input_reader.h"

namespace {

using namespace cohort;
using namespace cohort::internal;
using namespace cohort::internal::membership;

constexpr size_t kKeysPerTask = 4;
constexpr size_t kBytes = 300;

void require_of_store(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "does not hold: " << property << '\n';
  std::abort();
}

struct Entry {
  std::string value;
  TaskId creator;
  std::optional<Session> owner;
};

class Model {
 public:
  // Whether there is room for it, and the key may be one.
  bool may_put(const Session& session, const std::string& key, const std::string& value) const {
    if (key.empty() || key.size() > kMostKeyBytes || !rpc::is_utf8(key)) return false;
    size_t bytes = key.size() + value.size();
    size_t keys = 0;
    for (const auto& [name, entry] : entries) {
      if (name != key) bytes += name.size() + entry.value.size();
      if (entry.creator == session.task) ++keys;
    }
    return bytes <= kBytes && (entries.count(key) != 0 || keys < kKeysPerTask);
  }
  void put(const Session& session, const StoreRequest& request, const std::string& value) {
    Entry& entry = entries[request.key];
    if (entry.creator.job.empty()) entry.creator = session.task;
    entry.value = value;
    entry.owner = request.session ? std::optional(session) : std::nullopt;
  }

  std::map<std::string, Entry> entries;
};

// What `change` throws is expected where `allowed` is false.
template <class Change>
void expect_refusal(bool allowed, Change&& change) {
  bool refused = false;
  try {
    change();
  } catch (const Error&) {
    refused = true;
  }
  require_of_store(refused == !allowed, "a change is refused where the limits say so");
}

void compare(const Store& store, const Model& model) {
  require_of_store(store.size() == model.entries.size(), "as many keys as in the model");
  for (const auto& [key, entry] : model.entries) {
    const std::string* value = store.get(key);
    require_of_store(value != nullptr && *value == entry.value, "the values of the model");
  }
}

void step(fuzz::InputReader& in, Store& store, Model& model) {
  const Session session{{"worker", static_cast<int>(in.number(1))}, 1 + in.number(1)};
  StoreRequest request;
  request.key = std::string(in.bytes(in.flag() ? 3 : 1));
  request.value = std::string(in.bytes(in.flag() ? 90 : 2));
  request.session = in.flag();
  const auto found = model.entries.find(request.key);
  const std::string* current = found == model.entries.end() ? nullptr : &found->second.value;
  switch (in.number(5)) {
    case 0: {
      const bool allowed = model.may_put(session, request.key, request.value);
      expect_refusal(allowed, [&] { store.set(session, request); });
      if (allowed) model.put(session, request, request.value);
      break;
    }
    case 1: {
      request.delta = static_cast<int64_t>(in.any_number());
      const auto number = current ? parse_number<int64_t>(*current) : std::optional<int64_t>(0);
      int64_t sum = 0;
      bool allowed = number && !__builtin_add_overflow(*number, request.delta, &sum);
      allowed = allowed && model.may_put(session, request.key, std::to_string(sum));
      expect_refusal(allowed, [&] {
        require_of_store(store.add(session, request) == sum, "the sum is right");
      });
      if (allowed) model.put(session, request, std::to_string(sum));
      break;
    }
    case 2: {
      if (in.flag()) request.expected = std::string(in.bytes(2));
      const bool as_expected =
          request.expected ? current && *current == *request.expected : current == nullptr;
      const bool allowed = !as_expected || model.may_put(session, request.key, request.value);
      expect_refusal(allowed, [&] {
        require_of_store(store.compare_and_set(session, request) == as_expected,
                         "compare_and_set compares");
      });
      if (as_expected && allowed) model.put(session, request, request.value);
      break;
    }
    case 3:
      require_of_store(store.remove(request.key) == (model.entries.erase(request.key) > 0),
                       "remove says whether there was a key");
      break;
    case 4: {
      const std::string after(in.bytes(2));
      const StoreReply reply = store.list(request.key, after);
      size_t count = 0;
      for (const auto& [key, entry] : model.entries) {
        if (!key.starts_with(request.key) || key <= after) continue;
        require_of_store(count < reply.keys.size() && reply.keys[count] == key, "list is whole");
        ++count;
      }
      require_of_store(count == reply.keys.size() && !reply.more, "list has nothing else");
      break;
    }
    default:
      store.end(session);
      std::erase_if(model.entries, [&](const auto& item) { return item.second.owner == session; });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::InputReader in({reinterpret_cast<const char*>(data), size});
  Store store({.keys_per_task = kKeysPerTask, .bytes = kBytes});
  Model model;
  while (!in.empty()) {
    step(in, store, model);
    compare(store, model);
  }
  return 0;
}
