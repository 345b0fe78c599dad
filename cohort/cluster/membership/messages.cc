#include "cohort/cluster/membership/messages.h"

#include "cohort/cluster/membership/fields.h"
#include "cohort/cluster/rpc/text.h"

namespace cohort::internal::membership {
namespace {

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

void add_warning(std::vector<std::string>& warnings, std::string_view bytes) {
  limit("warnings", warnings, kMostSections);
  warnings.push_back(rpc::printable(rpc::head_of(bytes, 2048)));
}

}  // namespace

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

}  // namespace cohort::internal::membership
