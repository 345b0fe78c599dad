#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/testing_errors.h"
#include "tools/testing_transforms.h"
#include "tools/transform_commands.h"

namespace cohort::tools {
namespace {

using internal::expect_error;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct TransformShow : testing::Test {
  std::string show(TransformShowOptions options = {}) {
    options.directory = "out";
    std::ostringstream out;
    EXPECT_EQ(show_transform(files, options, out), kExitOk);
    return out.str();
  }
  nlohmann::json show_json(uint64_t most = 10) {
    return nlohmann::json::parse(show({.directory = "", .max_values = most, .json = true}));
  }
  // The document, changed and written again with a good checksum.
  void rewrite(const std::function<void(nlohmann::json&)>& change) {
    internal::TransformDocument document = internal::read_transform_document(files, "out");
    change(document.json);
    write_file(files, transform_path("out"), internal::transform_document_text(document.json));
  }

  internal::SimulatedFileSystem files;
};

TEST_F(TransformShow, ShowsAllThatWasFound) {
  write_transform(files, "out");
  EXPECT_EQ(show(),
            "out: 8 rows analysed by Cohort 0.1.0\n"
            "\n"
            "columns\n"
            "  age        float32 [rows]\n"
            "  home city  ragged string\n"
            "  pair       float32 [rows, 2]\n"
            "\n"
            "outputs\n"
            "  age   z_score(age, mean(age), variance(age), dtype=\"float32\")\n"
            "  city  apply_vocabulary('home city', vocabulary 'city names', default_value=-1, "
            "num_oov_buckets=1)\n"
            "  half  apply_buckets(age / 2, quantiles(age / 2))\n"
            "\n"
            "statistics that are kept\n"
            "  cities  keys('home city')\n"
            "\n"
            "numbers\n"
            "               count  mean  standard deviation  min  max  sum\n"
            "  age          8      40    10                  20   60   -\n"
            "  pair at [0]  -      -     -                   -    -    1\n"
            "  pair at [1]  -      -     -                   -    -    2.5\n"
            "\n"
            "quantiles\n"
            "  age / 2  25%: 10  50%: 20  75%: 30\n"
            "\n"
            "vocabularies\n"
            "  city names  of 'home city'  3 tokens  23 bytes  'rome': 4, 'par\\x1bis': 3, "
            "'bonn': 1\n"
            "\n"
            "counts, the largest first\n"
            "  'home city'  3 keys  'rome': 4 (50%)  'par\\x1bis': 3 (37.5%)  'bonn': 1 (12.5%)\n");
}

TEST_F(TransformShow, ShowsNoMoreThanItIsAskedFor) {
  TransformContent content;
  for (int i = 1; i < 100; ++i) content.quantiles.push_back(30 + i);
  for (int i = 0; i < 1000; ++i) {
    content.keys.push_back("z" + std::to_string(i));
    content.counts.push_back(0);
    content.tokens.push_back("0 z" + std::to_string(i));
  }
  write_transform(files, "out", content);
  const std::string text = show({.directory = "", .max_values = 2});
  EXPECT_THAT(text, HasSubstr("  age / 2  0.9709%: 10  99.03%: 129\n"));
  EXPECT_THAT(text, HasSubstr("'rome': 4, 'par\\x1bis': 3  and 1001 more\n"));
  EXPECT_THAT(text,
              HasSubstr("1003 keys  'rome': 4 (50%)  'par\\x1bis': 3 (37.5%)  and 1001 more"));
  EXPECT_THAT(show({.directory = "", .max_values = 1}), HasSubstr("  pair at [0]"));
  EXPECT_THAT(show({.directory = "", .max_values = 1}), Not(HasSubstr("  pair at [1]")));
  EXPECT_THAT(show({.directory = "", .max_values = 0}), Not(HasSubstr("rome")));
}

TEST_F(TransformShow, WritesJson) {
  write_transform(files, "out",
                  {.mean = std::numeric_limits<double>::quiet_NaN(), .tokens = {"4 \xff"}});
  const nlohmann::json json = show_json(2);
  EXPECT_EQ(json["rows"], 8);
  EXPECT_EQ(json["columns"][1]["type"], "ragged string");
  EXPECT_EQ(json["outputs"][2]["made_by"], "apply_buckets(age / 2, quantiles(age / 2))");
  const auto result = [&](int analysis, const char* name) {
    return json["analyses"][analysis]["results"][name];
  };
  EXPECT_EQ(result(0, "mean")["values"][0], "nan");
  EXPECT_EQ(result(0, "count")["values"][0], 8);
  EXPECT_EQ(result(3, "quantiles")["places"], nlohmann::json({0, 2}));
  EXPECT_EQ(result(3, "quantiles")["values"], nlohmann::json({10., 30.}));
  EXPECT_EQ(result(4, "keys")["values"], nlohmann::json({"rome", "par\x1bis"}));
  EXPECT_EQ(result(4, "counts")["values"], nlohmann::json({4, 3}));
  EXPECT_EQ(json["analyses"][2]["vocabulary"]["lines"], 1);
  EXPECT_EQ(json["analyses"][2]["vocabulary"]["tokens"][0]["frequency"], 4);
}

TEST_F(TransformShow, LongExpressionsAreCut) {
  write_transform(files, "out");
  rewrite([](nlohmann::json& document) {
    auto& steps = document["function"]["steps"];
    for (int i = 0; i < 5000; ++i) {
      const size_t last = i == 0 ? 0 : steps.size() - 1;
      steps.push_back({{"operation", "add"}, {"inputs", {last, last}}});
    }
    document["function"]["outputs"][0]["step"] = steps.size() - 1;
  });
  EXPECT_THAT(show(), HasSubstr(".."));
  EXPECT_LT(show().size(), 5000u);
}

TEST_F(TransformShow, ALargeVocabularyIsNotReadWhole) {
  TransformContent content;
  content.tokens = {"9 " + std::string(100, 'a'), "8 b"};
  content.tokens.push_back("1 " + std::string(kMostHeadBytes, 'c'));
  write_transform(files, "out", content);
  // What lies behind the part that is read may be damaged: only a lookup finds it.
  std::string bytes = files.content(vocabulary_path("out"));
  bytes[bytes.size() - 2] ^= 1;
  files.set_content(vocabulary_path("out"), bytes);
  EXPECT_THAT(show(), HasSubstr("aaa'..: 9, 'b': 8  and 1 more\n"));
}

TEST_F(TransformShow, SaysWhatIsWrongAsTFTransformOutputDoes) {
  const auto reading = [&] { show(); };
  expect_error<NotFoundError>(reading,
                              "'out' holds no transform: there is no "
                              "'out/transform_fn/transform.json'; transform::analyze_dataset");
  write_transform(files, "out");
  const std::string good = files.content(transform_path("out"));
  for (size_t i = 0; i < good.size(); i += 7) {
    std::string bytes = good;
    bytes[i] ^= 1;
    files.set_content(transform_path("out"), bytes);
    EXPECT_THROW(show(), Error) << i;
  }
  files.set_content(transform_path("out"), good.substr(0, good.size() / 2));
  expect_error<DataLossError>(reading, "damaged transform 'out/transform_fn/transform.json'");
  std::string later = good;
  later.replace(later.find("\"file_version\":1"), 16, "\"file_version\":2");
  files.set_content(transform_path("out"), later);
  expect_error<InvalidArgumentError>(reading,
                                     "it is of version 2, but this Cohort reads version 1");
  files.set_content(transform_path("out"), good);
  const std::string vocabulary = files.content(vocabulary_path("out"));
  files.set_content(vocabulary_path("out"), vocabulary + "x\n");
  expect_error<DataLossError>(reading, "has 25 bytes, where the transform was written with 23");
  files.set_content(vocabulary_path("out"), "5" + vocabulary.substr(1));
  expect_error<DataLossError>(reading, "its checksum is not the one");
  files.remove(vocabulary_path("out"));
  expect_error<DataLossError>(reading, "assets/city-names' is missing");
}

// Of a writer that is no Cohort.
TEST_F(TransformShow, RefusesWhatAGoodChecksumHides) {
  using nlohmann::json;
  const std::vector<std::pair<json::json_pointer, json>> wrongs = {
      {json::json_pointer("/function/version"), 2},
      {json::json_pointer("/function/steps/3/inputs/0"), 3},
      {json::json_pointer("/function/steps/3/inputs/0"), -1},
      {json::json_pointer("/function/steps/1/analysis"), 6},
      {json::json_pointer("/function/analyses/0/inputs/0"), 1},
      {json::json_pointer("/function/outputs/0/step"), 13},
      {json::json_pointer("/function/columns/0/type/ragged"), "no"},
      {json::json_pointer("/results/0/constants/mean/shape"), {2}},
      {json::json_pointer("/results/0/constants/mean/values/0"), "x"},
      {json::json_pointer("/results/4/constants/keys/values/0"), 1},
      {json::json_pointer("/results/2/file/name"), "../transform.json"},
      {json::json_pointer("/results"), json::array()},
      {json::json_pointer("/rows"), "8"},
      {json::json_pointer("/rows"), -1},
      {json::json_pointer("/results/2/file/lines"), -1},
      {json::json_pointer("/function/outputs/0/name"), "city"},
      {json::json_pointer("/function/columns/0/name"), "pair"},
  };
  for (const auto& [place, value] : wrongs) {
    write_transform(files, "out");
    rewrite([&, &place = place, &value = value](json& document) { document[place] = value; });
    EXPECT_THROW(show(), InvalidArgumentError) << place.to_string() << ' ' << value;
  }
}

}  // namespace
}  // namespace cohort::tools
