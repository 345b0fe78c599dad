// The JSON of a transform of any content, with a good checksum: the command shows it, and finds no
// drift from itself, or says what is wrong.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "cohort/cluster/json_document.h"
#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "tools/testing_transforms.h"
#include "tools/transform_commands.h"

namespace {

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_transform: broken property: " << property << '\n';
  std::abort();
}

// Lines and tokens of an input's vocabularies, whose sizes and checksums are those of this file.
constexpr std::string_view kVocabulary = "4 rome\n3 paris\n1 bonn\n";

bool write(cohort::internal::FileSystem& files, std::string_view text) {
  using cohort::tools::transform_path;
  using cohort::tools::vocabulary_path;
  try {
    cohort::tools::write_file(files, vocabulary_path("out"), std::string(kVocabulary));
    cohort::tools::write_file(
        files, transform_path("out"),
        cohort::internal::transform_document_text(cohort::internal::parse_json(
            text, {.source = "input", .bytes = 1 << 20, .depth = 20})));
    return true;
  } catch (const cohort::InvalidArgumentError&) {
    return false;  // no JSON
  } catch (const nlohmann::json::exception&) {
    return false;  // no object
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cohort::internal::SimulatedFileSystem files;
  if (!write(files, {reinterpret_cast<const char*>(data), size})) return 0;
  std::ostringstream shown, json, compared;
  try {
    cohort::tools::show_transform(files, {.directory = "out", .max_values = 5}, shown);
  } catch (const cohort::Error& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos,
            "an error is one line");
    return 0;
  }
  require(shown.str().size() < 4096 + 100 * size, "what is shown has a bound");
  cohort::tools::show_transform(files, {.directory = "out", .json = true}, json);
  require(nlohmann::json::accept(json.str()), "what is meant for programs is JSON");
  const int result = cohort::tools::compare_transforms(
      files, {.a = "out", .b = "out", .limits = {.all = 0}}, compared);
  require(result == cohort::tools::kExitOk, "nothing has drifted from itself");
  return 0;
}
