#include "tools/vocabulary_commands.h"

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/text.h"
#include "cohort/ops/vocabulary/mapped_vocabulary.h"
#include "tools/printable.h"

namespace cohort::tools {
namespace {

using internal::MappedVocabulary;
using internal::quoted;
using internal::TokenColumn;

TokenColumn column_of(const VocabularyCommandOptions& options) {
  if (options.delimiter.size() != 1) {
    throw InvalidArgumentError(
        internal::str("--delimiter is ", quoted(options.delimiter), ", not one character"));
  }
  return {options.column.value_or(TokenColumn::kWholeLine), options.delimiter[0]};
}

// What is wrong with the text's index; nothing: all is well.
std::string problem_of(const std::string& text, const TokenColumn& column) {
  for (const std::string& path : internal::vocabulary_index_paths(text, column)) {
    if (!internal::posix_file_system().exists(path)) continue;
    try {
      const MappedVocabulary vocabulary(text, path);
      vocabulary.index().check_all();
      if (vocabulary.is_of_text()) return "";
      return internal::str(quoted(path), " is the index of another text");
    } catch (const DataLossError& error) {
      return error.what();
    } catch (const UnimplementedError& error) {
      return error.what();
    }
  }
  return "it has no index";
}

}  // namespace

int index_vocabularies(const VocabularyCommandOptions& options, std::ostream& out) {
  const TokenColumn column = column_of(options);
  for (const std::string& text : options.paths) {
    const auto vocabulary = MappedVocabulary::open(
        text, {.column = column, .least_bytes = 0, .threads = options.threads});
    if (vocabulary == nullptr) {  // a warning has said why
      throw PermissionDeniedError(
          internal::str("the index of ", quoted(text), " can be written nowhere"));
    }
    out << printable(quoted(text)) << ": "
        << counted(static_cast<uint64_t>(vocabulary->index().size()), "token") << ", index "
        << printable(quoted(vocabulary->path())) << '\n';
  }
  return kExitOk;
}

int verify_vocabularies(const VocabularyCommandOptions& options, std::ostream& out) {
  const TokenColumn column = column_of(options);
  bool is_wrong = false;
  for (const std::string& text : options.paths) {
    const std::string problem = problem_of(text, column);
    is_wrong = is_wrong || !problem.empty();
    out << (problem.empty() ? "OK " : "DAMAGED ") << printable(quoted(text));
    if (!problem.empty()) out << ": " << printable(problem);
    out << '\n';
  }
  return is_wrong ? kExitBadData : kExitOk;
}

}  // namespace cohort::tools
