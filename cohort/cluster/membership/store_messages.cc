#include "cohort/cluster/membership/store_messages.h"

#include <algorithm>

#include "cohort/cluster/membership/fields.h"

namespace cohort::internal::membership {

std::string BarrierRequest::encode() const {
  Fields out;
  out.number(1, id).bytes(2, name);
  for (const TaskId& task : tasks) out.item(3, encode_task(task));
  out.number(4, generation).number(5, at_most).number(6, oldest);
  return out.str();
}

BarrierRequest BarrierRequest::decode(std::string_view bytes) {
  BarrierRequest result;
  read(bytes, "an arrival at a barrier", [&](WireReader& in) {
    switch (in.field()) {
      case 1:
        result.id = in.varint();
        break;
      case 2:
        result.name = in.bytes();
        break;
      case 3:
        limit("tasks", result.tasks, kMostTasks);
        result.tasks.push_back(decode_task(in.bytes()));
        break;
      case 4:
        result.generation = static_cast<int64_t>(in.varint());
        break;
      case 5:
        result.at_most = duration_from(in.varint());
        break;
      case 6:
        result.oldest = in.varint();
        break;
      default:
        break;
    }
  });
  check_name("a barrier's name", result.name, kMostKeyBytes);
  std::sort(result.tasks.begin(), result.tasks.end());
  result.tasks.erase(std::unique(result.tasks.begin(), result.tasks.end()), result.tasks.end());
  return result;
}

std::string StoreRequest::encode() const {
  Fields out;
  out.number(1, id).bytes(2, key).bytes(3, value);
  if (expected) out.item(4, *expected);
  out.number(5, delta).number(6, session).number(7, generation).number(8, at_most).bytes(9, after);
  out.number(10, oldest);
  return out.str();
}

StoreRequest StoreRequest::decode(std::string_view bytes) {
  StoreRequest result;
  read(bytes, "a call to the store", [&](WireReader& in) {
    switch (in.field()) {
      case 1:
        result.id = in.varint();
        break;
      case 2:
        result.key = bytes_of("a key", in.bytes(), 16 * kMostKeyBytes);
        break;
      case 3:
        result.value = bytes_of("a value", in.bytes(), kMostValueBytes);
        break;
      case 4:
        result.expected = bytes_of("a value", in.bytes(), kMostValueBytes);
        break;
      case 5:
        result.delta = static_cast<int64_t>(in.varint());
        break;
      case 6:
        result.session = in.varint() != 0;
        break;
      case 7:
        result.generation = static_cast<int64_t>(in.varint());
        break;
      case 8:
        result.at_most = duration_from(in.varint());
        break;
      case 9:
        result.after = bytes_of("a key", in.bytes(), 16 * kMostKeyBytes);
        break;
      case 10:
        result.oldest = in.varint();
        break;
      default:
        break;
    }
  });
  return result;
}

std::string StoreReply::encode() const {
  Fields out;
  out.number(1, done);
  if (has_value) out.item(2, value);
  out.number(3, number);
  for (const std::string& key : keys) out.item(4, key);
  out.number(5, more);
  return out.str();
}

StoreReply StoreReply::decode(std::string_view bytes) {
  StoreReply result;
  read(bytes, "the store's answer", [&](WireReader& in) {
    switch (in.field()) {
      case 1:
        result.done = in.varint() != 0;
        break;
      case 2:
        result.value = bytes_of("a value", in.bytes(), kMostValueBytes);
        result.has_value = true;
        break;
      case 3:
        result.number = static_cast<int64_t>(in.varint());
        break;
      case 4:
        limit("keys", result.keys, kMostListed);
        result.keys.push_back(text_of("a key", in.bytes(), kMostKeyBytes));
        break;
      case 5:
        result.more = in.varint() != 0;
        break;
      default:
        break;
    }
  });
  return result;
}

}  // namespace cohort::internal::membership
