// Vocabularies, indices and output modes of StringLookup; its learning is in
// string_lookup_adapt_test.cc.
#include "cohort/keras/layers/lookup/string_lookup.h"

#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/keras/testing_keras.h"
#include "cohort/ops/lookup/testing_text_file.h"
#include "cohort/ops/vocabulary/mapped_vocabulary.h"

namespace cohort::keras::layers {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

StringTensor abc() { return {"a", "b", "c"}; }

std::vector<double> lookup_words(const StringLookup& layer, const StringTensor& words) {
  return elements(layer(words).tensor());
}

std::string construction_error(StringLookupOptions options) {
  return thrown<InvalidArgumentError>([&] { StringLookup layer(options); });
}

TEST(StringLookup, GivesIndicesAfterTheOneForOutOfVocabulary) {
  const StringLookup layer({.vocabulary = {"a", "b", "c"}});
  const Tensor ids = layer(Structure(StringTensor({"c", "z", "a", ""}, {2, 2}))).tensor();
  EXPECT_EQ(ids.scalar_type(), int64);
  EXPECT_THAT(ids.sizes(), ElementsAre(2, 2));
  EXPECT_THAT(elements(ids), ElementsAre(3, 0, 1, 0));
  EXPECT_EQ(layer(StringTensor::scalar("b")).tensor().dim(), 0);
  EXPECT_EQ(layer.name().substr(0, 13), "string_lookup");
}

TEST(StringLookup, TheMaskTokenComesFirst) {
  const StringLookup layer({.vocabulary = {"a", "b"}, .mask_token = ""});
  EXPECT_THAT(lookup_words(layer, {"a", "", "z", "b"}), ElementsAre(2, 0, 1, 3));
  EXPECT_THAT(layer.get_vocabulary(), ElementsAre("", "[UNK]", "a", "b"));
  EXPECT_THAT(layer.get_vocabulary(/*include_special_tokens=*/false), ElementsAre("a", "b"));
  EXPECT_EQ(layer.vocabulary_size(), 4);
}

// Indices as tf.strings.to_hash_bucket_fast gives them.
TEST(StringLookup, SeveralIndicesForOutOfVocabulary) {
  const StringLookup layer({.vocabulary = {"a"}, .num_oov_indices = 3, .mask_token = "m"});
  EXPECT_THAT(lookup_words(layer, {"a", "m", "zz", "y", "hello", "[UNK]"}),
              ElementsAre(4, 0, 2, 3, 2, 1));
  EXPECT_THAT(layer.get_vocabulary(), ElementsAre("m", "[UNK]", "[UNK]", "[UNK]", "a"));
}

TEST(StringLookup, WithoutAnIndexOutOfVocabularyIsAnError) {
  const StringLookup layer({.vocabulary = {"no", "yes"}, .num_oov_indices = 0, .name = "answer"});
  EXPECT_THAT(lookup_words(layer, {"yes", "no"}), ElementsAre(1, 0));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                lookup_words(layer, {"yes", "perhaps", "no", "never"});
              }),
              AllOf(HasSubstr("'answer'"), HasSubstr("2 are not: ['perhaps', 'never']"),
                    HasSubstr("num_oov_indices")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                lookup_words(layer, {"1", "2", "3", "4", "5", "6"});
              }),
              HasSubstr("'5'] and others"));
}

TEST(StringLookup, Inverts) {
  const StringLookup layer({.vocabulary = {"a", "b"}, .mask_token = "", .invert = true});
  const StringTensor words = layer(at::arange(-1, 5, at::kLong).view({3, 2})).strings();
  EXPECT_EQ(words, StringTensor({"[UNK]", "", "[UNK]", "a", "b", "[UNK]"}, {3, 2}));
  EXPECT_THROW(layer(StringTensor({"a"})), InvalidArgumentError);
  EXPECT_THROW(layer(numbers({1})), InvalidArgumentError);
}

TEST(StringLookup, VocabulariesMayComeAsAnything) {
  const TextFile file("a\nb\r\nc");
  const std::vector<std::string> list = {"a", "b", "c"};
  for (const StringVocabulary& vocabulary :
       {StringVocabulary(list), StringVocabulary(abc()), StringVocabulary(file.path()),
        StringVocabulary({"a", "b", "c"})}) {
    const StringLookup layer({.vocabulary = vocabulary});
    EXPECT_THAT(layer.get_vocabulary(), ElementsAre("[UNK]", "a", "b", "c"));
    EXPECT_THAT(lookup_words(layer, {"c", "d"}), ElementsAre(3, 0));
  }
}

// A small file is mapped if somebody has built its index.
TEST(StringLookup, OfAMappedFileAllIsAsOfOneThatIsRead) {
  const std::string text = "the\ncat\r\nsat\non\nmat\n";
  const TextFile file(text), mapped(text);
  ASSERT_NE(internal::MappedVocabulary::open(mapped.path(), {.least_bytes = 1}), nullptr);
  const StringTensor words({"on", "dog", "", "the", "cat\r", "mat"}, {2, 3});
  for (StringLookupOptions options :
       {StringLookupOptions{}, StringLookupOptions{.num_oov_indices = 3, .mask_token = ""},
        StringLookupOptions{.output_mode = "multi_hot"},
        StringLookupOptions{.mask_token = "", .output_mode = "count"}}) {
    options.name = "lookup";
    options.vocabulary = file.path();
    const StringLookup a(options);
    options.vocabulary = mapped.path();
    const StringLookup b(options);
    EXPECT_TRUE(a(words).tensor().equal(b(words).tensor()));
    EXPECT_EQ(a.vocabulary_size(), b.vocabulary_size());
    EXPECT_EQ(a.get_vocabulary(), b.get_vocabulary());
    EXPECT_EQ(a.get_vocabulary(false), b.get_vocabulary(false));
    EXPECT_EQ(a.get_config()->json(), b.get_config()->json());
  }
  const Tensor indices = at::arange(-1, 8, at::kLong).view({3, 3});
  const StringLookup a({.vocabulary = file.path(), .mask_token = "m", .invert = true});
  const StringLookup b({.vocabulary = mapped.path(), .mask_token = "m", .invert = true});
  EXPECT_EQ(a(indices).strings(), b(indices).strings());
  EXPECT_THAT(construction_error({.vocabulary = mapped.path(), .mask_token = "cat"}),
              AllOf(HasSubstr("mask token 'cat'"), HasSubstr("line 2 (byte offset 4)")));
  EXPECT_THAT(construction_error({.vocabulary = mapped.path(), .max_tokens = 3}),
              HasSubstr("6 tokens"));
  const StringLookup strict({.vocabulary = mapped.path(), .num_oov_indices = 0});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { strict(words); }), HasSubstr("'dog'"));
}

// A large one is mapped without being asked for, and its errors are those of one that is read.
TEST(StringLookup, MapsLargeFiles) {
  std::string text;
  for (int i = 0; text.size() < (size_t{16} << 20); ++i) {
    text += "a word of some length " + std::to_string(i) + std::string(100, 'x') + "\n";
  }
  const TextFile file(text);
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  const StringLookup layer({.vocabulary = file.path()});
  EXPECT_THAT(lookup_words(layer, {last.substr(0, last.size() - 1), "?"}),
              ElementsAre(layer.vocabulary_size() - 1, 0));
  EXPECT_NE(internal::MappedVocabulary::open(file.path(), {.least_bytes = UINT64_MAX}), nullptr);
  const TextFile twice(text + "b\nc\nb\n");
  EXPECT_THAT(construction_error({.vocabulary = twice.path()}),
              AllOf(HasSubstr("a vocabulary has each token once, but 'b' is at '" + twice.path()),
                    HasSubstr("(byte offset " + std::to_string(text.size() + 4) + ")")));
}

TEST(StringLookup, SpecialTokensMayStandAtTheStartOfAList) {
  const StringLookup layer(
      {.vocabulary = {"", "[UNK]", "[UNK]", "a"}, .num_oov_indices = 2, .mask_token = ""});
  EXPECT_THAT(layer.get_vocabulary(false), ElementsAre("a"));
  EXPECT_THAT(lookup_words(layer, {"a", ""}), ElementsAre(3, 0));
  // Not in their order: an ordinary token, where it does no harm.
  EXPECT_THAT(lookup_words(StringLookup({.vocabulary = {"a", "[UNK]"}}), {"[UNK]", "z"}),
              ElementsAre(2, 0));
}

TEST(StringLookup, RefusesWrongVocabularies) {
  EXPECT_THAT(construction_error({.vocabulary = {"a", "b", "c", "b"}}),
              AllOf(HasSubstr("'b'"), HasSubstr("index 1"), HasSubstr("index 3")));
  EXPECT_THAT(construction_error({.vocabulary = std::vector<std::string>()}), HasSubstr("empty"));
  EXPECT_THAT(
      construction_error({.vocabulary = {"a", "m"}, .mask_token = "m"}),
      AllOf(HasSubstr("mask token 'm'"), HasSubstr("index 1"), HasSubstr("['m', '[UNK]']")));
  EXPECT_THAT(construction_error({.vocabulary = {"a", "[UNK]"}, .invert = true}),
              AllOf(HasSubstr("OOV token '[UNK]'"), HasSubstr("index 1")));
  EXPECT_THAT(construction_error({.vocabulary = StringTensor({"a", "b"}, {1, 2})}),
              HasSubstr("one dimension"));
  EXPECT_THAT(construction_error({.vocabulary = {"a", "b"}, .max_tokens = 2}),
              AllOf(HasSubstr("3 tokens"), HasSubstr("max_tokens is 2")));
}

TEST(StringLookup, RefusesWrongFiles) {
  EXPECT_THAT(construction_error({.vocabulary = "/nowhere/words.txt"}),
              AllOf(HasSubstr("/nowhere/words.txt"), HasSubstr("does not exist")));
  const TextFile twice("b\nc\nbb\nb\n");
  EXPECT_THAT(construction_error({.vocabulary = twice.path()}),
              AllOf(HasSubstr("'b'"), HasSubstr("line 1 (byte offset 0)"),
                    HasSubstr("line 4 (byte offset 7)")));
  const TextFile gap("b\n\nc\n");
  EXPECT_THAT(construction_error({.vocabulary = gap.path()}), HasSubstr("line 2 (byte offset 2)"));
  const TextFile empty("");
  EXPECT_THAT(construction_error({.vocabulary = empty.path()}), HasSubstr("is empty"));
  const TextFile mask("a\nm\n");
  EXPECT_THAT(construction_error({.vocabulary = mask.path(), .mask_token = "m"}),
              AllOf(HasSubstr("mask token 'm'"), HasSubstr("remove that line")));
  EXPECT_THROW(StringLookup({.vocabulary = testing::TempDir()}), InvalidArgumentError);
}

TEST(StringLookup, RefusesOptionsThatContradictEachOther) {
  EXPECT_THAT(construction_error({.num_oov_indices = -1}), HasSubstr("num_oov_indices is -1"));
  EXPECT_THAT(construction_error({.max_tokens = 1}), HasSubstr("max_tokens is 1"));
  EXPECT_THAT(construction_error({.output_mode = "hot"}),
              AllOf(HasSubstr("'hot'"), HasSubstr("'multi_hot'")));
  EXPECT_THAT(construction_error({.invert = true, .output_mode = "count"}), HasSubstr("'count'"));
  EXPECT_THAT(construction_error({.output_mode = "count", .pad_to_max_tokens = true}),
              HasSubstr("needs max_tokens"));
  EXPECT_THAT(construction_error({.vocabulary = {"a"}, .idf_weights = {1}}), HasSubstr("tf_idf"));
  EXPECT_THAT(construction_error({.idf_weights = {1}, .output_mode = "tf_idf"}),
              HasSubstr("without the vocabulary"));
  EXPECT_THAT(construction_error({.vocabulary = {"a"}, .output_mode = "tf_idf"}),
              HasSubstr("needs idf_weights"));
  EXPECT_THAT(
      construction_error({.vocabulary = {"a"}, .idf_weights = {1, 2}, .output_mode = "tf_idf"}),
      HasSubstr("2 idf_weights for 1 tokens"));
  EXPECT_THAT(construction_error({.dtype = float32}), HasSubstr("float32"));
  EXPECT_THAT(construction_error({.output_mode = "count", .dtype = int64}), HasSubstr("int64"));
}

TEST(StringLookup, NeedsAVocabularyAndStrings) {
  const StringLookup none;
  EXPECT_THAT(none.get_vocabulary(), ElementsAre("[UNK]"));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { lookup_words(none, {"a"}); }),
              HasSubstr("no vocabulary"));
  none.set_vocabulary({"a"});
  EXPECT_THAT(lookup_words(none, {"a"}), ElementsAre(1));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { none(numbers({1})); }), HasSubstr("float32 [1]"));
  EXPECT_THROW(none(tuple(abc(), abc())), InvalidArgumentError);
  EXPECT_THROW(none.set_vocabulary(StringVocabulary()), InvalidArgumentError);
}

TEST(StringLookup, AWrongVocabularyLeavesTheOldOne) {
  const StringLookup layer({.vocabulary = {"a"}});
  EXPECT_THROW(layer.set_vocabulary({"b", "b"}), InvalidArgumentError);
  EXPECT_THAT(layer.get_vocabulary(), ElementsAre("[UNK]", "a"));
  layer.set_vocabulary({"b", "c"});
  EXPECT_THAT(layer.get_vocabulary(), ElementsAre("[UNK]", "b", "c"));
}

TEST(StringLookup, OneHot) {
  const StringLookup layer({.vocabulary = {"a", "b"}, .mask_token = "", .output_mode = "one_hot"});
  const Tensor rows = layer(Structure(StringTensor({"b", "z", ""}))).tensor();
  EXPECT_EQ(rows.scalar_type(), float32);
  EXPECT_THAT(rows.sizes(), ElementsAre(3, 3));
  EXPECT_THAT(elements(rows), ElementsAre(0, 0, 1, 1, 0, 0, 0, 0, 0));
  EXPECT_THAT(layer(Structure(StringTensor({"b", "a"}, {2, 1}))).tensor().sizes(),
              ElementsAre(2, 3));
  EXPECT_THAT(layer(Structure(StringTensor({"b"}))).tensor().sizes(), ElementsAre(1, 3));
  EXPECT_THAT(elements(layer(StringTensor::scalar("b")).tensor()), ElementsAre(0, 0, 1));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(Structure(StringTensor({"a", "b"}, {1, 2})));
              }),
              HasSubstr("[1,2]"));
}

TEST(StringLookup, MultiHotAndCount) {
  const StringTensor words({"a", "a", "", "b", "z", "y"}, {2, 3});
  const auto encode = [&](const std::string& mode) {
    return elements(StringLookup({.vocabulary = {"a", "b"}, .mask_token = "", .output_mode = mode})(
                        Structure(words))
                        .tensor());
  };
  EXPECT_THAT(encode("multi_hot"), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(encode("count"), ElementsAre(0, 2, 0, 2, 0, 1));
  EXPECT_THAT(encode("binary"), ElementsAre(0, 1, 0, 1, 0, 1));
  const StringLookup layer({.vocabulary = {"a", "b"}, .output_mode = "count"});
  EXPECT_THAT(lookup_words(layer, {"a", "a", "z"}), ElementsAre(1, 2, 0));
  EXPECT_THROW(layer(Structure(words.reshape({1, 2, 3}))), InvalidArgumentError);
}

TEST(StringLookup, TfIdf) {
  const StringLookup layer(
      {.vocabulary = {"a", "b"}, .idf_weights = {0.25, 0.75}, .output_mode = "tf_idf"});
  // What is out of vocabulary weighs as much as the tokens on average.
  EXPECT_THAT(lookup_words(layer, {"a", "a", "z", "b", "a"}), ElementsAre(0.5, 0.75, 0.75));
  const StringLookup with_special(
      {.vocabulary = {"[UNK]", "a"}, .idf_weights = {0.125, 2}, .output_mode = "tf_idf"});
  EXPECT_THAT(lookup_words(with_special, {"a", "z"}), ElementsAre(0.125, 2));
}

TEST(StringLookup, PadsToMaxTokens) {
  const StringLookup layer(
      {.vocabulary = {"a"}, .max_tokens = 4, .output_mode = "count", .pad_to_max_tokens = true});
  EXPECT_THAT(lookup_words(layer, {"a", "z", "a"}), ElementsAre(1, 2, 0, 0));
  layer.set_vocabulary({"z", "a"});
  EXPECT_THAT(lookup_words(layer, {"a", "z", "a"}), ElementsAre(0, 1, 2, 0));
}

TEST(StringLookup, VectorsKeepTheirLength) {
  const StringLookup layer({.vocabulary = {"a"}, .output_mode = "count"});
  layer.set_vocabulary({"b"});
  EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                layer.set_vocabulary({"a", "b"});
              }),
              AllOf(HasSubstr("2 columns"), HasSubstr("3 tokens")));
  EXPECT_THAT(layer.get_vocabulary(false), ElementsAre("b"));
}

TEST(StringLookup, OutputsHaveTheDtypeAskedFor) {
  EXPECT_EQ(StringLookup({.vocabulary = {"a"}, .dtype = int32})(Structure(abc())).tensor().dtype(),
            at::kInt);
  EXPECT_EQ(StringLookup({.vocabulary = {"a"}, .output_mode = "count", .dtype = float64})(
                Structure(abc()))
                .tensor()
                .dtype(),
            at::kDouble);
}

TEST(StringLookup, HasNoVariables) {
  const StringLookup layer({.vocabulary = {"a"}});
  EXPECT_THAT(layer.variables(), IsEmpty());
  EXPECT_EQ(layer.count_params(), 0);
}

}  // namespace
}  // namespace cohort::keras::layers
