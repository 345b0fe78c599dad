#include "cohort/cluster/membership/messages.h"

#include "cohort/cluster/rpc/text.h"

namespace cohort::internal::membership {
namespace {

constexpr AtMost kSections{"sections", kMostSections};
constexpr AtMost kWarnings{"warnings", kMostSections};

void check_names(const std::vector<Section>& program) {
  for (const Section& section : program) {
    check_name("a section's name", section.name, kMostNameBytes);
  }
}

void make_printable(std::vector<std::string>& warnings) {
  for (std::string& warning : warnings) warning = rpc::printable(rpc::head_of(warning, 2048));
}

}  // namespace

void fields(auto& f, Section& section) {
  f(1, section.name, AtMostText{"a section's name", kMostNameBytes});
  f(2, section.text, AtMostText{"a section", kMostSectionBytes});
  f(3, section.strict);
}

void fields(auto& f, RegisterRequest& request) {
  f(1, request.protocol_major);
  f(2, request.protocol_minor);
  // The version is read first: a message of another version may be of no use.
  if (request.protocol_major != kProtocolMajor) return;
  f(3, request.address, AtMostText{"an address", kMostNameBytes});
  f(4, request.cluster_spec, AtMostText{"a cluster spec", kMostSpecBytes});
  f(5, request.term_seen);
  f(6, request.generation_seen);
  f(7, request.program, kSections);
  f(8, request.record, AtMostBytes{"a record", kMostRecordBytes});
  f(9, request.place, AtMostText{"a process's place", kMostNameBytes});
}

void fields(auto& f, RegisterReply& reply) {
  f(1, reply.service);
  f(2, reply.heartbeat.interval);
  f(3, reply.heartbeat.dead_after);
  f(4, reply.heartbeat.reconnect_grace);
  f(5, reply.warnings, kWarnings);
}

void fields(auto& f, Standing& standing) {
  f(1, standing.stage, Stage::kEnded);
  f(2, standing.term_seen);
  f(3, standing.service);
  f(4, standing.term);
  f(5, standing.agreed);
}

void fields(auto& f, HeartbeatRequest& request) {
  f(1, request.seen);
  f(2, request.figures, kFigures, kFigureName);
}

void fields(auto& f, HeartbeatReply& reply) { f(1, reply.version); }

void fields(auto& f, WatchRequest& request) {
  f(1, request.since);
  f(2, request.at_most);
}

void fields(auto& f, LeaveRequest& request) {
  f(1, request.where, AtMostText{"where a task leaves", kMostNameBytes});
}

void fields(auto& f, ReportRequest& request) {
  f(1, request.error, AtMostBytes{"an error", kMostErrorBytes});
}

void fields(auto& f, DeclareRequest& request) { f(1, request.program, kSections); }

void fields(auto& f, DeclareReply& reply) { f(1, reply.warnings, kWarnings); }

std::string RegisterRequest::encode() const { return encode_fields(*this); }
RegisterRequest RegisterRequest::decode(std::string_view bytes) {
  auto request = decode_fields<RegisterRequest>(bytes, "a registration");
  check_names(request.program);
  return request;
}

std::string RegisterReply::encode() const { return encode_fields(*this); }
RegisterReply RegisterReply::decode(std::string_view bytes) {
  auto reply = decode_fields<RegisterReply>(bytes, "the answer to a registration");
  for (Duration* time :
       {&reply.heartbeat.interval, &reply.heartbeat.dead_after, &reply.heartbeat.reconnect_grace}) {
    *time = bounded(*time);
  }
  check(reply.heartbeat);
  make_printable(reply.warnings);
  return reply;
}

std::string Standing::encode() const { return encode_fields(*this); }
Standing Standing::decode(std::string_view bytes) {
  return decode_fields<Standing>(bytes, "a task's standing");
}

std::string HeartbeatRequest::encode() const { return encode_fields(*this); }
HeartbeatRequest HeartbeatRequest::decode(std::string_view bytes) {
  return decode_fields<HeartbeatRequest>(bytes, "a heartbeat");
}

std::string HeartbeatReply::encode() const { return encode_fields(*this); }
HeartbeatReply HeartbeatReply::decode(std::string_view bytes) {
  return decode_fields<HeartbeatReply>(bytes, "the answer to a heartbeat");
}

std::string WatchRequest::encode() const { return encode_fields(*this); }
WatchRequest WatchRequest::decode(std::string_view bytes) {
  auto request = decode_fields<WatchRequest>(bytes, "a watch");
  request.at_most = bounded(request.at_most);
  return request;
}

std::string LeaveRequest::encode() const { return encode_fields(*this); }
LeaveRequest LeaveRequest::decode(std::string_view bytes) {
  return decode_fields<LeaveRequest>(bytes, "a farewell");
}

std::string ReportRequest::encode() const { return encode_fields(*this); }
ReportRequest ReportRequest::decode(std::string_view bytes) {
  return decode_fields<ReportRequest>(bytes, "a report");
}

std::string DeclareRequest::encode() const { return encode_fields(*this); }
DeclareRequest DeclareRequest::decode(std::string_view bytes) {
  auto request = decode_fields<DeclareRequest>(bytes, "a declaration");
  check_names(request.program);
  return request;
}

std::string DeclareReply::encode() const { return encode_fields(*this); }
DeclareReply DeclareReply::decode(std::string_view bytes) {
  auto reply = decode_fields<DeclareReply>(bytes, "the answer to a declaration");
  make_printable(reply.warnings);
  return reply;
}

}  // namespace cohort::internal::membership
