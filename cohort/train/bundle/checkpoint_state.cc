#include "cohort/train/bundle/checkpoint_state.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/text_proto.h"

namespace cohort::internal {
namespace {

constexpr std::string_view kLatest = "model_checkpoint_path";
constexpr std::string_view kPaths = "all_model_checkpoint_paths";
constexpr std::string_view kTimestamps = "all_model_checkpoint_timestamps";
constexpr std::string_view kLastPreserved = "last_preserved_timestamp";

std::string checksum_line(std::string_view body) {
  return str("# crc32c: 0x", hex_digits(crc32c(body), 8));
}

// What a double is read from again.
std::string digits(double value) {
  if (!std::isfinite(value)) {
    throw InvalidArgumentError(
        str("a checkpoint state's timestamp is ", value, "; it must be a finite number"));
  }
  return general_digits(value, 17);
}

void check_path(const std::string& path) {
  if (path.empty() || path.find('\0') != path.npos) {
    throw InvalidArgumentError(
        str("a checkpoint state cannot hold the path ", quoted(path), "; it names no file"));
  }
}

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// The text without its checksum line, if it has one, which is checked.
std::string_view checked_body(std::string_view text, const std::string& file) {
  if (text.empty()) throw_malformed(file, 1, "the file is empty");
  if (text.size() > kMostStateBytes) {
    throw_malformed(file, 1, str("the file has ", text.size(), " bytes, more than any state has"));
  }
  if (!text.starts_with('#')) return text;
  const size_t length = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, length);
  const std::string_view rest = text.substr(length);  // lines count from the file's first
  const std::string expected = checksum_line(rest.substr(std::min<size_t>(rest.size(), 1)));
  if (line != expected || rest.empty()) {
    throw_malformed(file, 1,
                    str("the line is ", quoted(line.substr(0, 2 * expected.size())),
                        ", but the checksum of what follows makes it ", quoted(expected),
                        "; the file is damaged"));
  }
  return rest;
}

class StateParser {
 public:
  explicit StateParser(const std::string& file) : file_(file) {}

  void take(const TextProtoField& field) {
    if (field.name == kLatest) {
      once(field, state_.model_checkpoint_path.empty());
      state_.model_checkpoint_path = path(field);
    } else if (field.name == kPaths) {
      check_count(field, state_.all_model_checkpoint_paths.size());
      state_.all_model_checkpoint_paths.push_back(path(field));
    } else if (field.name == kTimestamps) {
      check_count(field, state_.all_model_checkpoint_timestamps.size());
      state_.all_model_checkpoint_timestamps.push_back(number_of(field, file_));
    } else if (field.name == kLastPreserved) {
      once(field, !has_last_preserved_);
      has_last_preserved_ = true;
      state_.last_preserved_timestamp = number_of(field, file_);
    } else if (field.name == "crc32c") {
      throw_malformed(file_, field.line, "the checksum line lost its '#'; the file is damaged");
    }
  }

  CheckpointState finish(size_t last_line) && {
    auto& paths = state_.all_model_checkpoint_paths;
    const size_t timestamps = state_.all_model_checkpoint_timestamps.size();
    if (state_.model_checkpoint_path.empty()) {
      throw_malformed(file_, last_line, str("there is no ", kLatest));
    }
    if (!contains(paths, state_.model_checkpoint_path))
      paths.push_back(state_.model_checkpoint_path);
    if (timestamps != 0 && timestamps != paths.size()) {
      throw_malformed(file_, last_line,
                      str("there are ", timestamps, " timestamps for ", paths.size(),
                          " checkpoints (the latest counts, listed or not)"));
    }
    return std::move(state_);
  }

 private:
  std::string path(const TextProtoField& field) const {
    const std::string& path = field.value;
    const bool names_something = field.kind == TextProtoField::Kind::kString && !path.empty() &&
                                 path.find('\0') == path.npos;
    if (!names_something) {
      throw_malformed(file_, field.line,
                      str(field.name, " is ", quoted(path), ", which is no path"));
    }
    return path;
  }

  void once(const TextProtoField& field, bool first) const {
    if (!first) throw_malformed(file_, field.line, field.name + " is there twice");
  }

  void check_count(const TextProtoField& field, size_t count) const {
    if (count < kMostStatePaths) return;
    throw_malformed(file_, field.line, str("there are more than ", count, " ", field.name));
  }

  const std::string& file_;
  CheckpointState state_;
  bool has_last_preserved_ = false;
};

}  // namespace

std::string format_checkpoint_state(const CheckpointState& state) {
  std::vector<std::string> paths = state.all_model_checkpoint_paths;
  check_path(state.model_checkpoint_path);
  if (!contains(paths, state.model_checkpoint_path)) paths.push_back(state.model_checkpoint_path);
  const std::vector<double>& timestamps = state.all_model_checkpoint_timestamps;
  if (!timestamps.empty() && timestamps.size() != paths.size()) {
    throw InvalidArgumentError(str("a checkpoint state has ", timestamps.size(), " timestamps for ",
                                   paths.size(), " checkpoints; give one for each or none"));
  }
  if (paths.size() > kMostStatePaths) {
    throw InvalidArgumentError(str("a checkpoint state cannot list ", paths.size(),
                                   " checkpoints; at most ", kMostStatePaths));
  }
  std::string body = str(kLatest, ": ", text_proto_string(state.model_checkpoint_path), "\n");
  for (const std::string& path : paths) {
    check_path(path);
    body += str(kPaths, ": ", text_proto_string(path), "\n");
  }
  for (double timestamp : timestamps) body += str(kTimestamps, ": ", digits(timestamp), "\n");
  if (state.last_preserved_timestamp != 0) {
    body += str(kLastPreserved, ": ", digits(state.last_preserved_timestamp), "\n");
  }
  std::string text = checksum_line(body) + "\n" + body;
  if (text.size() > kMostStateBytes) {
    throw InvalidArgumentError(str("a checkpoint state would have ", text.size(),
                                   " bytes, more than ", kMostStateBytes,
                                   "; keep fewer checkpoints (max_to_keep)"));
  }
  return text;
}

CheckpointState parse_checkpoint_state(std::string_view text, const std::string& file) {
  const std::string_view body = checked_body(text, file);
  StateParser parser(file);
  read_text_proto(body, file, [&](const TextProtoField& field) { parser.take(field); });
  const auto lines = std::count(body.begin(), body.end(), '\n');
  return std::move(parser).finish(static_cast<size_t>(std::max<ptrdiff_t>(lines, 1)));
}

}  // namespace cohort::internal
