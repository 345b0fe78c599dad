#include "cohort/cluster/membership/messages.h"

#include <algorithm>
#include <bit>

#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/wire.h"

namespace cohort::internal::membership {
namespace {

// Longest wait that a message may ask for.
constexpr Duration kLongest = std::chrono::hours(24 * 365);

uint64_t to_wire(Duration duration) {
  return static_cast<uint64_t>(std::clamp(duration, Duration::zero(), kLongest).count());
}

Duration duration_from(uint64_t value) {
  return Duration(std::min(value, static_cast<uint64_t>(kLongest.count())));
}

template <class Container>
void limit(std::string_view what, const Container& container, size_t most) {
  if (container.size() < most) return;
  throw InvalidArgumentError(str("a message has more than ", most, ' ', what));
}

std::string text_of(std::string_view what, std::string_view bytes, size_t most) {
  if (bytes.size() > most) {
    throw InvalidArgumentError(
        str(what, " has ", bytes.size(), " bytes; at most ", most, " are allowed"));
  }
  if (!rpc::is_utf8(bytes)) throw InvalidArgumentError(str(what, " is not UTF-8"));
  return std::string(bytes);
}

std::string bytes_of(std::string_view what, std::string_view bytes, size_t most) {
  if (bytes.size() > most) {
    throw ResourceExhaustedError(
        str(what, " has ", bytes.size(), " bytes; at most ", most, " are allowed"));
  }
  return std::string(bytes);
}

// Fields that have their default are not written.
class Fields {
 public:
  Fields& number(uint32_t field, uint64_t value) {
    if (value != 0) out_.varint(field, value);
    return *this;
  }
  Fields& number(uint32_t field, int64_t value) {
    return number(field, static_cast<uint64_t>(value));
  }
  Fields& number(uint32_t field, int value) { return number(field, static_cast<int64_t>(value)); }
  Fields& number(uint32_t field, bool value) { return number(field, value ? 1 : 0); }
  Fields& number(uint32_t field, Duration value) { return number(field, to_wire(value)); }
  Fields& bytes(uint32_t field, std::string_view value) {
    if (!value.empty()) out_.bytes(field, value);
    return *this;
  }
  // Also an empty one.
  Fields& item(uint32_t field, std::string_view value) {
    out_.bytes(field, value);
    return *this;
  }
  const std::string& str() const { return out_.str(); }

 private:
  WireWriter out_;
};

std::string encode_task(const TaskId& task) {
  return Fields().bytes(1, task.job).number(2, task.index).str();
}

TaskId decode_task(std::string_view bytes) {
  TaskId task;
  WireReader in(bytes, "a task");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        task.job = text_of("a job's name", in.bytes(), kMostNameBytes);
        break;
      case 2:
        task.index = static_cast<int>(in.varint());
        break;
      default:
        break;
    }
  }
  if (task.index < 0) throw InvalidArgumentError(str("a task has the index ", task.index));
  return task;
}

std::string encode_figure(const std::string& name, double value) {
  return Fields().bytes(1, name).number(2, std::bit_cast<uint64_t>(value)).str();
}

void decode_figure(std::string_view bytes, Figures& figures) {
  limit("figures", figures, kMostFigures);
  std::string name;
  double value = 0;
  WireReader in(bytes, "a figure");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        name = text_of("a figure's name", in.bytes(), kMostNameBytes);
        break;
      case 2:
        value = std::bit_cast<double>(in.varint());
        break;
      default:
        break;
    }
  }
  figures[std::move(name)] = value;
}

std::string encode_section(const Section& section) {
  return Fields().bytes(1, section.name).bytes(2, section.text).number(3, section.strict).str();
}

Section decode_section(std::string_view bytes) {
  Section section{.name = "", .text = "", .strict = false};
  WireReader in(bytes, "a section of a program");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        section.name = text_of("a section's name", in.bytes(), kMostNameBytes);
        break;
      case 2:
        section.text = text_of("a section", in.bytes(), kMostSectionBytes);
        break;
      case 3:
        section.strict = in.varint() != 0;
        break;
      default:
        break;
    }
  }
  check_name("a section's name", section.name, kMostNameBytes);
  return section;
}

void add_section(std::vector<Section>& sections, std::string_view bytes) {
  limit("sections", sections, kMostSections);
  sections.push_back(decode_section(bytes));
}

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

constexpr size_t kMostErrorBytes = 8 << 10;

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

void add_warning(std::vector<std::string>& warnings, std::string_view bytes) {
  limit("warnings", warnings, kMostSections);
  warnings.push_back(rpc::printable(rpc::head_of(bytes, 2048)));
}

// Calls take(in) for each field.
template <class Take>
void read(std::string_view bytes, std::string_view what, Take&& take) {
  WireReader in(bytes, std::string(what));
  while (in.next()) take(in);
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

void check_name(std::string_view what, std::string_view name, size_t most) {
  if (name.empty()) throw InvalidArgumentError(str(what, " is empty"));
  if (name.size() > most) {
    throw InvalidArgumentError(str(what, ' ', quoted(rpc::printable(rpc::head_of(name, 40))),
                                   "... has ", name.size(), " bytes; at most ", most,
                                   " are allowed"));
  }
  if (!rpc::is_utf8(name)) {
    throw InvalidArgumentError(str(what, ' ', quoted(rpc::printable(name)), " is not UTF-8"));
  }
}

std::string hex(uint64_t incarnation) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; incarnation >>= 4) text[i] = kDigits[incarnation & 15];
  return text;
}

std::string RegisterRequest::encode() const {
  Fields out;
  out.number(1, protocol_major)
      .number(2, protocol_minor)
      .bytes(3, address)
      .bytes(4, cluster_spec)
      .number(5, term_seen)
      .number(6, generation_seen);
  for (const Section& section : program) out.item(7, encode_section(section));
  return out.str();
}

RegisterRequest RegisterRequest::decode(std::string_view bytes) {
  RegisterRequest result;
  result.protocol_major = 0;
  // First the version: what another one writes may be of no use.
  read(bytes, "a registration", [&](WireReader& in) {
    if (in.field() == 1) result.protocol_major = static_cast<int>(in.varint());
    if (in.field() == 2) result.protocol_minor = static_cast<int>(in.varint());
  });
  if (result.protocol_major != kProtocolMajor) return result;
  read(bytes, "a registration", [&](WireReader& in) {
    switch (in.field()) {
      case 3:
        result.address = text_of("an address", in.bytes(), kMostNameBytes);
        break;
      case 4:
        result.cluster_spec = text_of("a cluster spec", in.bytes(), kMostSpecBytes);
        break;
      case 5:
        result.term_seen = static_cast<int64_t>(in.varint());
        break;
      case 6:
        result.generation_seen = static_cast<int64_t>(in.varint());
        break;
      case 7:
        add_section(result.program, in.bytes());
        break;
      default:
        break;
    }
  });
  return result;
}

std::string RegisterReply::encode() const {
  Fields out;
  out.number(1, service)
      .number(2, heartbeat.interval)
      .number(3, heartbeat.dead_after)
      .number(4, heartbeat.reconnect_grace);
  for (const std::string& warning : warnings) out.item(5, warning);
  return out.str();
}

RegisterReply RegisterReply::decode(std::string_view bytes) {
  RegisterReply result;
  result.heartbeat.reconnect_grace = Duration::zero();
  read(bytes, "the answer to a registration", [&](WireReader& in) {
    switch (in.field()) {
      case 1:
        result.service = in.varint();
        break;
      case 2:
        result.heartbeat.interval = duration_from(in.varint());
        break;
      case 3:
        result.heartbeat.dead_after = duration_from(in.varint());
        break;
      case 4:
        result.heartbeat.reconnect_grace = duration_from(in.varint());
        break;
      case 5:
        add_warning(result.warnings, in.bytes());
        break;
      default:
        break;
    }
  });
  check(result.heartbeat);
  return result;
}

std::string HeartbeatRequest::encode() const {
  Fields out;
  out.number(1, seen);
  for (const auto& [name, value] : figures) out.item(2, encode_figure(name, value));
  return out.str();
}

HeartbeatRequest HeartbeatRequest::decode(std::string_view bytes) {
  HeartbeatRequest result;
  read(bytes, "a heartbeat", [&](WireReader& in) {
    switch (in.field()) {
      case 1:
        result.seen = static_cast<int64_t>(in.varint());
        break;
      case 2:
        decode_figure(in.bytes(), result.figures);
        break;
      default:
        break;
    }
  });
  return result;
}

std::string HeartbeatReply::encode() const { return Fields().number(1, version).str(); }

HeartbeatReply HeartbeatReply::decode(std::string_view bytes) {
  HeartbeatReply result;
  read(bytes, "the answer to a heartbeat", [&](WireReader& in) {
    if (in.field() == 1) result.version = static_cast<int64_t>(in.varint());
  });
  return result;
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
      default:
        break;
    }
  });
  std::sort(result.members.begin(), result.members.end(),
            [](const Member& left, const Member& right) { return left.task < right.task; });
  return result;
}

std::string WatchRequest::encode() const {
  return Fields().number(1, since).number(2, at_most).str();
}

WatchRequest WatchRequest::decode(std::string_view bytes) {
  WatchRequest result;
  read(bytes, "a watch", [&](WireReader& in) {
    if (in.field() == 1) result.since = static_cast<int64_t>(in.varint());
    if (in.field() == 2) result.at_most = duration_from(in.varint());
  });
  return result;
}

std::string LeaveRequest::encode() const { return Fields().bytes(1, where).str(); }

LeaveRequest LeaveRequest::decode(std::string_view bytes) {
  LeaveRequest result;
  read(bytes, "a farewell", [&](WireReader& in) {
    if (in.field() == 1) result.where = text_of("where a task leaves", in.bytes(), kMostNameBytes);
  });
  return result;
}

std::string ReportRequest::encode() const { return Fields().bytes(1, error).str(); }

ReportRequest ReportRequest::decode(std::string_view bytes) {
  ReportRequest result;
  read(bytes, "a report", [&](WireReader& in) {
    if (in.field() == 1) result.error = bytes_of("an error", in.bytes(), kMostErrorBytes);
  });
  return result;
}

std::string DeclareRequest::encode() const {
  Fields out;
  for (const Section& section : program) out.item(1, encode_section(section));
  return out.str();
}

DeclareRequest DeclareRequest::decode(std::string_view bytes) {
  DeclareRequest result;
  read(bytes, "a declaration", [&](WireReader& in) {
    if (in.field() == 1) add_section(result.program, in.bytes());
  });
  return result;
}

std::string DeclareReply::encode() const {
  Fields out;
  for (const std::string& warning : warnings) out.item(1, warning);
  return out.str();
}

DeclareReply DeclareReply::decode(std::string_view bytes) {
  DeclareReply result;
  read(bytes, "the answer to a declaration", [&](WireReader& in) {
    if (in.field() == 1) add_warning(result.warnings, in.bytes());
  });
  return result;
}

std::string BarrierRequest::encode() const {
  Fields out;
  out.number(1, id).bytes(2, name);
  for (const TaskId& task : tasks) out.item(3, encode_task(task));
  out.number(4, generation).number(5, at_most);
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
