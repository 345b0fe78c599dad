#include "cohort/cluster/membership/view.h"

#include <algorithm>

#include "cohort/cluster/membership/fields.h"

namespace cohort::internal::membership {
namespace {

std::string encode_member(const Member& member) {
  Fields out;
  out.item(1, encode_task(member.task))
      .number(2, member.incarnation)
      .bytes(3, member.address)
      .number(4, static_cast<int>(member.state))
      .number(5, member.observer);
  // Plus one, so that nothing and 0 differ.
  if (member.state_age) out.number(6, to_wire(*member.state_age) + 1);
  if (member.silence) out.number(7, to_wire(*member.silence) + 1);
  for (const auto& [name, value] : member.figures) out.item(8, encode_figure(name, value));
  return out.str();
}

Member decode_member(std::string_view bytes) {
  Member member;
  WireReader in(bytes, "a member");
  const auto age = [&]() -> std::optional<Duration> {
    const uint64_t value = in.varint();
    if (value == 0) return std::nullopt;
    return duration_from(value - 1);
  };
  while (in.next()) {
    switch (in.field()) {
      case 1:
        member.task = decode_task(in.bytes());
        break;
      case 2:
        member.incarnation = in.varint();
        break;
      case 3:
        member.address = text_of("an address", in.bytes(), kMostNameBytes);
        break;
      case 4: {
        const uint64_t state = in.varint();
        if (state > static_cast<uint64_t>(TaskState::kLeft)) in.fail("an unknown state");
        member.state = static_cast<TaskState>(state);
        break;
      }
      case 5:
        member.observer = in.varint() != 0;
        break;
      case 6:
        member.state_age = age();
        break;
      case 7:
        member.silence = age();
        break;
      case 8:
        decode_figure(in.bytes(), member.figures);
        break;
      default:
        break;
    }
  }
  return member;
}

std::string encode_event(const Event& event) {
  return Fields()
      .number(1, event.version)
      .number(2, static_cast<int>(event.kind))
      .item(3, encode_task(event.task))
      .number(4, event.incarnation)
      .bytes(5, event.error)
      .str();
}

Event decode_event(std::string_view bytes) {
  Event event;
  WireReader in(bytes, "an event");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        event.version = static_cast<int64_t>(in.varint());
        break;
      case 2: {
        const uint64_t kind = in.varint();
        if (kind < 1 || kind > static_cast<uint64_t>(EventKind::kReported)) {
          in.fail("an unknown kind");
        }
        event.kind = static_cast<EventKind>(kind);
        break;
      }
      case 3:
        event.task = decode_task(in.bytes());
        break;
      case 4:
        event.incarnation = in.varint();
        break;
      case 5:
        event.error = bytes_of("an error", in.bytes(), kMostErrorBytes);
        break;
      default:
        break;
    }
  }
  return event;
}

}  // namespace

std::string_view state_name(TaskState state) {
  switch (state) {
    case TaskState::kAwaited:
      return "awaited";
    case TaskState::kAlive:
      return "alive";
    case TaskState::kLost:
      return "lost";
    case TaskState::kLeft:
      return "left";
  }
  return "unknown";
}

const Member* View::find(const TaskId& task) const {
  const auto found = std::lower_bound(
      members.begin(), members.end(), task,
      [](const Member& member, const TaskId& wanted) { return member.task < wanted; });
  return found != members.end() && found->task == task ? &*found : nullptr;
}

bool View::complete() const {
  return std::all_of(members.begin(), members.end(), [](const Member& member) {
    return member.observer || member.state == TaskState::kAlive;
  });
}

std::string View::encode() const {
  Fields out;
  out.number(1, service).number(2, term).number(3, version).number(4, generation);
  for (const Member& member : members) out.item(5, encode_member(member));
  out.bytes(6, failure);
  for (const Event& event : events) out.item(7, encode_event(event));
  if (stale_refused) out.number(8, *stale_refused + 1);
  return out.str();
}

View View::decode(std::string_view bytes) {
  View result;
  read(bytes, "a view of the cluster", [&](WireReader& in) {
    switch (in.field()) {
      case 1:
        result.service = in.varint();
        break;
      case 2:
        result.term = static_cast<int64_t>(in.varint());
        break;
      case 3:
        result.version = static_cast<int64_t>(in.varint());
        break;
      case 4:
        result.generation = static_cast<int64_t>(in.varint());
        break;
      case 5:
        limit("members", result.members, kMostTasks);
        result.members.push_back(decode_member(in.bytes()));
        break;
      case 6:
        result.failure = bytes_of("an error", in.bytes(), kMostErrorBytes);
        break;
      case 7:
        limit("events", result.events, kMostEvents);
        result.events.push_back(decode_event(in.bytes()));
        break;
      case 8:
        if (const uint64_t count = in.varint(); count != 0) {
          result.stale_refused = static_cast<int64_t>(count - 1);
        }
        break;
      default:
        break;
    }
  });
  std::sort(result.members.begin(), result.members.end(),
            [](const Member& left, const Member& right) { return left.task < right.task; });
  return result;
}

}  // namespace cohort::internal::membership
