#include "cohort/transform/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "cohort/core/testing_errors.h"
#include "cohort/transform/functions/column_functions.h"
#include "cohort/transform/functions/mappers.h"

namespace cohort::internal {
namespace {

namespace tft = transform;
using testing::HasSubstr;

const NamedTypes kColumns = {
    {"x", {.dtype = at::kFloat, .kind = ColumnKind::kDense}},
    {"text", {.dtype = cohort::string, .kind = ColumnKind::kDense}},
    {"tags", {.dtype = cohort::string, .kind = ColumnKind::kRagged}},
};

TransformGraph traced(const tft::PreprocessingFunction& function) {
  return trace(function, kColumns);
}

TEST(TransformGraph, MakesEqualAnalysesOnce) {
  const TransformGraph graph = traced([](const tft::Columns& in) {
    return tft::Columns{{"a", in["x"] - tft::mean(in["x"])},
                        {"b", tft::scale_to_z_score(in["x"])},
                        {"c", in["x"] - tft::mean(in["x"])}};
  });
  EXPECT_EQ(graph.analyses.size(), 1);
  EXPECT_EQ(graph.num_phases, 1);
  EXPECT_EQ(graph.outputs[0].second, graph.outputs[2].second);
}

TEST(TransformGraph, AnAnalysisOfWhatAnotherGivesIsALaterPhase) {
  const TransformGraph graph = traced([](const tft::Columns& in) {
    const tft::Column z = tft::scale_to_z_score(in["x"]);
    return tft::Columns{{"b", tft::bucketize(z, 4)}, {"u", tft::scale_to_0_1(in["x"])}};
  });
  EXPECT_EQ(graph.num_phases, 2);
  for (const auto& analysis : graph.analyses) {
    EXPECT_EQ(analysis.phase, analysis.analysis->kind() == "quantiles" ? 1 : 0);
  }
}

TEST(TransformGraph, LeavesOutWhatNoOutputNeedsButVocabularies) {
  const TransformGraph graph = traced([](const tft::Columns& in) {
    tft::mean(in["x"]);
    tft::vocabulary(in["text"]);
    return tft::Columns{{"x", in["x"]}};
  });
  ASSERT_EQ(graph.analyses.size(), 1);
  EXPECT_EQ(graph.analyses[0].vocabulary_name, "vocab_vocabulary");
}

TEST(TransformGraph, IsTheSameAfterWritingAndReading) {
  const TransformGraph graph = traced([](const tft::Columns& in) {
    tft::keep_statistic("quartiles", tft::quantiles(in["x"], 4));
    const auto [indices, weights] =
        tft::tfidf(tft::compute_and_apply_vocabulary(in["tags"], {.top_k = 5}), 6);
    return tft::Columns{
        {"z", tft::scale_to_z_score(tft::log1p(in["x"]) * 2)},
        {"h", tft::hash_strings(in["text"], 10, {{1, ~uint64_t{0}}})},
        {"bag", tft::bag_of_words(tft::split(tft::lower(in["text"])), {1, 2}, " ")},
        {"i", indices},
        {"w", weights},
        {"nan", tft::where(tft::is_nan(in["x"]), std::numeric_limits<double>::infinity(), in["x"])},
        {"is", in["text"] == "a\"b"}};
  });
  const std::string json = graph_json(graph);
  const TransformGraph read = read_graph(json, "test");
  EXPECT_EQ(graph_json(read), json);
  EXPECT_EQ(read.num_phases, graph.num_phases);
  EXPECT_EQ(graph_difference(read, graph), std::nullopt);
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    EXPECT_EQ(read.steps[i].node->type, graph.steps[i].node->type) << i;
    EXPECT_EQ(read.steps[i].phase, graph.steps[i].phase);
  }
}

TEST(TransformGraph, SaysWhereAFileIsWrong) {
  const std::string json = graph_json(traced([](const tft::Columns& in) {
    return tft::Columns{{"y", in["x"] + 1}};
  }));
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string changed = json;
    changed.erase(std::remove(changed.begin(), changed.end(), ' '), changed.end());
    const size_t place = changed.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    changed.replace(place, from.size(), to);
    return thrown<Error>([&] { read_graph(changed, "file"); });
  };
  EXPECT_THAT(error("\"add\"", "\"addd\""), HasSubstr("no operation 'addd'"));
  EXPECT_THAT(error("\"inputs\":[0,1]", "\"inputs\":[0,7]"), HasSubstr("no step 7 before it"));
  EXPECT_THAT(error("\"inputs\":[0,1]", "\"inputs\":[0]"), HasSubstr("takes 2 columns"));
  EXPECT_THAT(error("\"version\":1", "\"version\":2"), HasSubstr("reads version 1"));
  EXPECT_THAT(error("\"steps\"", "\"stepz\""), HasSubstr("'steps' is missing"));
}

TEST(TransformGraph, TwoVocabulariesHaveTwoFiles) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                traced([](const tft::Columns& in) {
                  tft::vocabulary(in["text"], {.vocab_filename = "a b"});
                  tft::vocabulary(in["tags"], {.vocab_filename = "a-b"});
                  return tft::Columns{{"x", in["x"]}};
                });
              }),
              HasSubstr("'a b' and 'a-b' have the same file 'a-b'"));
  EXPECT_EQ(vocabulary_file_name("my voc.txt"), "my-voc_txt");
  EXPECT_EQ(vocabulary_file_name("a/b:c  d-e_f.txt"), "a_b_c-d-e_f_txt");
  EXPECT_THAT(thrown<FailedPreconditionError>([] { tft::keep_statistic("x", 1); }),
              HasSubstr("outside of a preprocessing function"));
}

}  // namespace
}  // namespace cohort::internal
