#include "cohort/transform/output/analyze.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "cohort/core/files/file_system.h"
#include "cohort/core/testing_errors.h"
#include "cohort/transform/functions/column_functions.h"
#include "cohort/transform/functions/mappers.h"
#include "cohort/transform/graph/mapped_function.h"
#include "cohort/transform/testing_columns.h"

namespace cohort::transform {
namespace {

using internal::expect_error;
using internal::TemporaryFolder;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Structure column_x(std::vector<float> values) { return dict({{"x", at::tensor(values)}}); }

Structure cities() {
  return dict({{"city", StringTensor({"b", "a", "c", "a", "c", "c", "", "d"})}});
}

TEST(Analyze, ScalesToZScore) {
  const Structure result = transformed(column_x({1, 2, 4}), [](const Columns& in) {
    return Columns{{"z", scale_to_z_score(in["x"])}};
  });
  EXPECT_EQ(result["z"].tensor().scalar_type(), float32);
  EXPECT_THAT(numbers(result["z"]),
              ElementsAre(DoubleNear(-1.06904495, 1e-6), DoubleNear(-.26726118, 1e-6),
                          DoubleNear(1.33630633, 1e-6)));
}

TEST(Analyze, AConstantColumnBecomesZeroAndAHalf) {
  const Structure result = transformed(column_x({3, 3, 3}), [](const Columns& in) {
    return Columns{{"z", scale_to_z_score(in["x"])}, {"u", scale_to_0_1(in["x"])}};
  });
  EXPECT_THAT(numbers(result["z"]), ElementsAre(0, 0, 0));
  EXPECT_THAT(numbers(result["u"]), testing::Each(DoubleNear(.9525741, 1e-6)));
}

TEST(Analyze, MakesAPassForEachPhase) {
  const Structure result = transformed(column_x({1, 2, 4}), [](const Columns& in) {
    return Columns{{"u", scale_to_0_1(scale_to_z_score(in["x"]))},
                   {"b", bucketize(in["x"] - mean(in["x"]), 2)}};
  });
  EXPECT_THAT(numbers(result["u"]), ElementsAre(0, DoubleNear(.33333337, 1e-6), 1));
  EXPECT_THAT(numbers(result["b"]), ElementsAre(0, 1, 1));
}

TEST(Analyze, LearnsAVocabularyAndAppliesIt) {
  const TemporaryFolder folder;
  const auto output = analyze_dataset(
      batches(cities()),
      [](const Columns& in) {
        return Columns{{"city", compute_and_apply_vocabulary(
                                    in["city"], {.top_k = 2, .vocab_filename = "my city"})},
                       {"oov", compute_and_apply_vocabulary(in["city"], {.num_oov_buckets = 3})}};
      },
      folder / "output");
  const Structure result = output.transform_raw_features(cities());
  EXPECT_THAT(numbers(result["city"]), ElementsAre(-1, 1, 0, 1, 0, 0, -1, -1));
  EXPECT_EQ(output.vocabulary_file_by_name("my city"),
            folder / "output/transform_fn/assets/my-city");
  EXPECT_EQ(output.vocabulary_size_by_name("my city"), 2);
  EXPECT_THAT(texts(output.vocabulary_by_name("my city")), ElementsAre("c", "a"));
  EXPECT_THAT(texts(output.vocabulary_by_name("vocab_compute_and_apply_vocabulary_1_vocabulary")),
              ElementsAre("c", "a", "d", "b"));
  EXPECT_EQ(output.num_buckets_for_transformed_feature("oov"), 7);
  EXPECT_GE(numbers(result["oov"])[6], 4);  // the empty token is in no vocabulary
}

// The line that stands for no tokens is a number where tokens are integers, as in tf.Transform.
TEST(Analyze, AnEmptyVocabularyHoldsOneLine) {
  const auto tokens = [](const Structure& columns, const char* column) {
    const Structure result = transformed(columns, [&](const Columns& in) {
      const ComputeAndApplyVocabularyOptions options{.frequency_threshold = 100,
                                                     .num_oov_buckets = 1};
      return Columns{{"id", compute_and_apply_vocabulary(in[column], options)}};
    });
    return numbers(result["id"]);
  };
  EXPECT_THAT(tokens(dict({{"n", at::tensor(std::vector<int64_t>{3, -1})}}), "n"),
              ElementsAre(1, 0));
  EXPECT_THAT(tokens(dict({{"s", StringTensor({"3", "-1"})}}), "s"), ElementsAre(1, 1));
}

TEST(Analyze, StoredFrequenciesStandBeforeTheTokens) {
  const TemporaryFolder folder;
  const auto output = analyze_dataset(
      batches(cities()),
      [](const Columns& in) {
        return Columns{
            {"city", compute_and_apply_vocabulary(in["city"], {.store_frequency = true})}};
      },
      folder / "output");
  std::ifstream file(
      output.vocabulary_file_by_name("vocab_frequency_compute_and_apply_vocabulary_vocabulary"));
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "3 c");
  EXPECT_THAT(numbers(output.transform_raw_features(cities())["city"]),
              ElementsAre(3, 1, 0, 1, 0, 0, -1, 2));
}

TEST(Analyze, MissingValuesStayMissing) {
  const auto x = RaggedTensor::from_row_lengths(at::tensor({1.F, 2.F, 4.F}), {1, 0, 1, 1});
  const Structure result = transformed(dict({{"x", x}}), [](const Columns& in) {
    return Columns{{"z", scale_to_0_1(in["x"])}, {"d", to_dense(in["x"], {.number = -1})}};
  });
  EXPECT_THAT(rows(result["z"]),
              ElementsAre(ElementsAre(0), IsEmpty(), ElementsAre(testing::_), ElementsAre(1)));
  EXPECT_THAT(numbers(result["d"]), ElementsAre(1, -1, 2, 4));
}

TEST(Analyze, WeighsTokensByHowRareTheyAre) {
  const StringTensor documents({"I like pie pie pie", "yum yum pie", "", "pie"});
  const Structure result = transformed(dict({{"text", documents}}), [](const Columns& in) {
    const Column tokens = compute_and_apply_vocabulary(split(in["text"]));
    const auto [indices, weights] = tfidf(tokens, 6);
    return Columns{{"i", indices}, {"w", weights}, {"n", word_count(split(in["text"]))}};
  });
  EXPECT_THAT(rows(result["i"]),
              ElementsAre(ElementsAre(0, 2, 3), ElementsAre(0, 1), IsEmpty(), ElementsAre(0)));
  EXPECT_THAT(rows(result["w"])[0],
              ElementsAre(DoubleNear(.73388618, 1e-6), DoubleNear(.38325816, 1e-6),
                          DoubleNear(.38325816, 1e-6)));
  EXPECT_THAT(numbers(result["n"]), ElementsAre(5, 3, 0, 1));
}

TEST(Analyze, KeepsStatistics) {
  const TemporaryFolder folder;
  const auto output = analyze_dataset(
      batches(cities()),
      [](const Columns& in) {
        const auto [keys, counts] = count_per_key(in["city"]);
        keep_statistic("keys", keys);
        keep_statistic("counts", counts);
        return Columns{{"city", in["city"]}};
      },
      folder / "output");
  EXPECT_THAT(texts(output.statistic("keys")), ElementsAre("", "a", "b", "c", "d"));
  EXPECT_THAT(numbers(output.statistic("counts")), ElementsAre(1, 2, 1, 3, 1));
  EXPECT_EQ(output.num_rows(), 8);
  expect_error<NotFoundError>([&] { output.statistic("key"); }, "there are: 'keys', 'counts'");
}

TEST(Analyze, CountsBins) {
  const TemporaryFolder folder;
  const auto output = analyze_dataset(
      batches(column_x({0, .1F, .15F, .5F, .99F, 1, 1.5F, -3, NAN})),
      [](const Columns& in) {
        keep_statistic("counts", histogram(in["x"]).counts);
        keep_statistic("few", histogram(in["x"], std::vector<double>{0, 1, 2}).counts);
        return Columns{{"x", in["x"]}};
      },
      folder / "output");
  EXPECT_THAT(numbers(output.statistic("counts")), ElementsAre(3, 2, 0, 0, 0, 1, 0, 0, 0, 3));
  EXPECT_THAT(numbers(output.statistic("few")), ElementsAre(7, 2));
}

TEST(Analyze, MappedFunctionsAreKnownByNameAndVersion) {
  const TemporaryFolder folder;
  const auto twice = [](const Tensor& x) { return x * 2; };
  const auto output = analyze_dataset(
      batches(column_x({1, 2, 3})),
      [&](const Columns& in) {
        return Columns{{"y", scale_to_0_1(map({.name = "twice"}, twice, {in["x"]}))}};
      },
      folder / "output");
  EXPECT_THAT(numbers(output.transform_raw_features(column_x({2}))["y"]), ElementsAre(.5));
  register_function({.name = "twice", .version = 2}, twice);
  expect_error<FailedPreconditionError>(
      [&] { TFTransformOutput(folder / "output"); },
      "analysed with version 1 of the function 'twice', but this program has version 2");
}

TEST(Analyze, RefusesAnotherFunction) {
  const TemporaryFolder folder;
  const auto function = [](double offset) {
    return [offset](const Columns& in) { return Columns{{"y", in["x"] + offset}}; };
  };
  analyze_dataset(batches(column_x({1, 2, 3})), function(1), folder / "output");
  EXPECT_NO_THROW(TFTransformOutput(folder / "output", function(1)));
  expect_error<FailedPreconditionError>(
      [&] { TFTransformOutput(folder / "output", function(2)); },
      "output 'y' is add(column 'x', constant(value=2.0)), but was add(column 'x', "
      "constant(value=1.0))");
}

TEST(Analyze, OutputsWithoutTheirColumnsAreLeftOut) {
  const TemporaryFolder folder;
  const Structure columns = dict({{"x", at::tensor({1.F, 2.F})}, {"label", at::arange(2)}});
  const auto output = analyze_dataset(
      batches(columns),
      [](const Columns& in) {
        return Columns{{"x", in["x"] * 2}, {"label", in["label"]}};
      },
      folder / "output");
  const Structure features = output.transform_raw_features(column_x({5}));
  EXPECT_EQ(features.size(), 1);
  EXPECT_THAT(numbers(features["x"]), ElementsAre(10));
  expect_error<InvalidArgumentError>(
      [&] {
        output.transform_raw_features(dict({{"xx", at::arange(2)}}));
      },
      "column 'xx' was not analysed; the transform knows: 'x', 'label'");
  expect_error<InvalidArgumentError>([&] { output.transform_raw_features(dict({})); },
                                     "suffice for no output; missing: 'label', 'x'");
  expect_error<InvalidArgumentError>(
      [&] {
        output.transform_raw_features(dict({{"x", at::arange(2)}}));
      },
      "column 'x': expected a column of float32 [rows], but got one of int64");
}

TEST(Analyze, AFailureLeavesTheDirectoryAsItWas) {
  const TemporaryFolder folder;
  const auto identity = [](const Columns& in) { return Columns{{"x", in["x"]}}; };
  analyze_dataset(batches(column_x({1})), identity, folder / "output");
  expect_error<AlreadyExistsError>(
      [&] { analyze_dataset(batches(column_x({1})), identity, folder / "output"); },
      ".overwrite = true");
  const auto failing = data::Dataset::from_tensor_slices(column_x({1, 2, 3, 4}))
                           .map([](const Structure& row) {
                             if (row["x"].tensor().item<float>() == 4) {
                               throw std::runtime_error("no more");
                             }
                             return row;
                           })
                           .batch(1);
  expect_error<UnknownError>(
      [&] {
        analyze_dataset(failing,
                        [](const Columns& in) {
                          return Columns{{"z", scale_to_0_1(in["x"])}};
                        },
                        folder / "output", {.overwrite = true});
      },
      "no more");
  EXPECT_THAT(
      numbers(TFTransformOutput(folder / "output").transform_raw_features(column_x({7}))["x"]),
      ElementsAre(7));
  const auto names = [&](const std::string& directory) {
    return internal::posix_file_system().list(folder / directory);
  };
  EXPECT_THAT(names("output"), ElementsAre("transform_fn", "transformed_metadata"));
  EXPECT_THAT(names("output/transform_fn"), ElementsAre("assets", "transform.json"));
}

TEST(Analyze, SaysWhatAFunctionDoesWrong) {
  const auto error = [](const Structure& columns, const PreprocessingFunction& function) {
    return thrown<InvalidArgumentError>([&] { transformed(columns, function); });
  };
  EXPECT_THAT(
      error(cities(),
            [](const Columns& in) {
              return Columns{{"y", scale_to_z_score(in["city"])}};
            }),
      HasSubstr("transform::scale_to_z_score: it takes numbers, but got a column of strings "
                "[rows]"));
  EXPECT_THAT(error(column_x({1}),
                    [](const Columns& in) {
                      return Columns{{"y", mean(in["x"])}};
                    }),
              HasSubstr("output 'y' is a statistic of float32 []"));
  EXPECT_THAT(error(column_x({1}), [](const Columns&) { return Columns(); }),
              HasSubstr("returned no columns"));
  EXPECT_THAT(error(column_x({1}),
                    [](const Columns& in) {
                      return Columns{{"y", compute_and_apply_vocabulary(in["x"])}};
                    }),
              HasSubstr("it takes strings or integers"));
  EXPECT_THAT(
      thrown<NotFoundError>([&] {
        transformed(column_x({1}), [](const Columns& in) { return Columns{{"y", in["z"]}}; });
      }),
      HasSubstr("there is no column 'z'; there are: 'x'"));
}

TEST(Analyze, DamagedOutputsAreFound) {
  const TemporaryFolder folder;
  const auto analyze = [&](const std::string& name) {
    const std::string directory = folder / name;
    analyze_dataset(
        batches(cities()),
        [](const Columns& in) {
          return Columns{
              {"city", compute_and_apply_vocabulary(in["city"], {.vocab_filename = "v"})}};
        },
        directory);
    return directory;
  };
  const std::string changed = analyze("changed");
  folder.write("changed/transform_fn/assets/v", "c\na\nd\nz\n");
  const TFTransformOutput output(changed);
  expect_error<DataLossError>([&] { output.transform_raw_features(cities()); },
                              "its checksum is not the one with which the transform was written");
  const std::string shorter = analyze("shorter");
  folder.write("shorter/transform_fn/assets/v", "c\n");
  expect_error<DataLossError>([&] { TFTransformOutput{shorter}; }, "has 2 bytes, where");
  const std::string damaged = analyze("damaged");
  const std::string path = folder / "damaged/transform_fn/transform.json";
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  for (size_t i = 0; i < text.size(); i += 7) {
    std::string wrong = text;
    wrong[i] = static_cast<char>(wrong[i] ^ 1);
    folder.write("damaged/transform_fn/transform.json", wrong);
    EXPECT_THROW(TFTransformOutput{damaged}, Error) << i;
  }
  expect_error<NotFoundError>([&] { TFTransformOutput(folder / "none"); }, "holds no transform");
}

}  // namespace
}  // namespace cohort::transform
