// Any text is a vocabulary in which each line is found, or an error that names a line; any index,
// whatever its checksums say, finds something or nothing, within its bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/ops/vocabulary/index_builder.h"
#include "tests/fuzz/input_reader.h"

namespace {

using cohort::Error;
using cohort::InvalidArgumentError;
using cohort::fuzz::InputReader;
using cohort::internal::BlockChecksums;
using cohort::internal::IndexBuildOptions;
using cohort::internal::IndexLayout;
using cohort::internal::kIndexBlock;
using cohort::internal::SimulatedFileSystem;
using cohort::internal::TokenColumn;
using cohort::internal::VocabularyIndex;

void require(bool holds, const char* property) {
  if (holds) return;
  std::cerr << "it does not hold that " << property << '\n';
  std::abort();
}

uint64_t poor_hash(std::string_view token) {
  return token.empty() ? 0 : static_cast<unsigned char>(token[0]) % 8;
}

// The numbers of tokens, as the definition says. Nothing: some line is wrong.
std::optional<std::map<std::string, int64_t>> expected_of(std::string_view text,
                                                          const TokenColumn& column) {
  std::map<std::string, int64_t> numbers;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto token = cohort::internal::token_of_line(line, column);
    if (line.empty() || line == "\r" || !token) return std::nullopt;
    const auto number = static_cast<int64_t>(numbers.size());
    if (!numbers.emplace(*token, number).second) return std::nullopt;
  }
  return numbers;
}

std::string build(std::string_view text, const IndexBuildOptions& options) {
  SimulatedFileSystem files;
  files.set_content("text", text);
  build_vocabulary_index(files, "text", "index", options);
  return files.content("index");
}

void check_text(InputReader in) {
  IndexBuildOptions options;
  if (in.flag()) options.column = {static_cast<int64_t>(in.number(2)), ' '};
  if (in.flag()) options.hash = poor_hash;
  options.memory_bytes = in.number(1) << 20;
  const std::string_view other = in.bytes(8);
  const std::string_view text = in.bytes(UINT16_MAX);
  const auto expected = expected_of(text, options.column);
  try {
    const std::string bytes = build(text, options);
    require(expected.has_value(), "a wrong line is an error");
    const VocabularyIndex index(bytes, "index", options.hash);
    require(index.size() == static_cast<int64_t>(expected->size()), "each line is a token");
    for (const auto& [token, number] : *expected) {
      require(index.find(token) == number, "each token is found");
      require(index.token(number) == token, "each number has its token");
    }
    if (expected->find(std::string(other)) == expected->end()) {
      require(index.find(other) == -1, "no other token is found");
    }
  } catch (const InvalidArgumentError& error) {
    require(!expected.has_value(), "what is an error has a reason");
    require(std::string_view(error.what()).find("'text', line ") != std::string_view::npos,
            "the error names the line");
  }
}

// An index with bytes changed, and sizes too, under checksums that are right.
void check_index(InputReader in) {
  std::string bytes = build("some\nwords\nof\na\ntext\n", {});
  IndexLayout layout = VocabularyIndex(bytes, "index").layout();
  for (uint64_t changes = in.number(8); changes > 0; --changes) {
    const uint64_t parts[] = {0, layout.entries_at(), layout.pilots_at(), layout.lines_at(),
                              layout.twins_at()};
    const uint64_t at = parts[in.number(4)] + in.number(255);
    bytes[at] = static_cast<char>(in.number(255));
  }
  const uint64_t blocks = layout.checksums_at();
  BlockChecksums checksums;
  checksums.add(std::string_view(bytes).substr(0, blocks));
  const std::vector<uint32_t> list = checksums.finish();
  std::memcpy(bytes.data() + blocks, list.data(), list.size() * sizeof(uint32_t));
  if (in.flag()) layout.lines = in.any_number();
  if (in.flag()) layout.text_bytes = in.any_number();
  if (in.flag()) layout.twins = in.any_number();
  if (in.flag()) layout.function.parts = in.any_number();
  if (in.flag()) layout.function.slots_per_part = static_cast<uint32_t>(in.any_number());
  if (in.flag()) layout.function.buckets_per_part = static_cast<uint32_t>(in.any_number());
  if (in.flag()) layout.column.index = static_cast<int64_t>(in.number(3));
  const std::string_view checked(reinterpret_cast<const char*>(list.data()),
                                 list.size() * sizeof(uint32_t));
  const std::string trailer = encode_trailer(layout, checked);
  bytes.replace(bytes.size() - trailer.size(), trailer.size(), trailer);
  try {
    const VocabularyIndex index(bytes, "index");
    for (const char* token : {"some", "of", "text", "", "other"}) index.find(token);
    const int64_t numbers[] = {0, 1, 4, -1, index.size() - 1, index.size()};
    std::string_view tokens[std::size(numbers)];
    index.tokens_at(numbers, std::size(numbers), tokens);
    index.tokens();
    index.check_all();
  } catch (const Error& error) {
    require(std::string_view(error.what()).find("'index'") != std::string_view::npos,
            "the error names the file");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  InputReader in(std::string_view(reinterpret_cast<const char*>(data), size));
  in.flag() ? check_index(in) : check_text(in);
  return 0;
}
