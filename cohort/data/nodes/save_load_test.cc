#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cohort/data/storage/element_codec.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"
#include "cohort/ops/philox.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Every kind of structure and leaf.
std::vector<Structure> samples() {
  return {at::arange(6, at::kLong).view({2, 3}),
          at::ones({2}, at::kBool),
          at::zeros({0, 3}, at::kFloat),
          at::arange(3, at::kHalf),
          StringTensor({"", "ab", std::string_view("\0c", 2)}),
          StringTensor::scalar("x"),
          Structure(),
          tuple(1.5, dict({{"a", at::ones({}, at::kByte)}, {"b", tuple()}}))};
}

TEST(ElementCodec, WritesEveryKind) {
  for (const Structure& element : samples()) {
    const Structure read = internal::decode_element(internal::encode_element(element), "test");
    EXPECT_EQ(internal::str(read), internal::str(element));
    EXPECT_EQ(StructureSpec::of(read), StructureSpec::of(element));
    const StructureSpec spec = StructureSpec::of(element);
    EXPECT_EQ(internal::structure_to_spec(internal::spec_to_structure(spec)), spec);
  }
}

TEST(ElementCodec, WritesConjugatesAsTheyAre) {
  const Tensor numbers = at::complex(at::arange(3, float32), at::ones({3}));
  const Structure read =
      internal::decode_element(internal::encode_element(Structure(numbers.conj())), "test");
  EXPECT_TRUE(at::equal(read.tensor(), numbers.conj().resolve_conj()));
}

// Cut short at every byte, and with random bytes changed: an element or DataLoss, nothing else.
TEST(ElementCodec, SurvivesDamage) {
  internal::Philox random(1);
  for (const Structure& element : samples()) {
    const std::string bytes = internal::encode_element(element);
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_THROW(internal::decode_element(bytes.substr(0, length), "test"), DataLossError);
    }
    EXPECT_THROW(internal::decode_element(bytes + '\0', "test"), DataLossError);
    for (int i = 0; i < 500; ++i) {
      std::string damaged = bytes;
      damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
      try {
        internal::decode_element(damaged, "test");
      } catch (const DataLossError& error) {
        EXPECT_THAT(error.what(), HasSubstr("test: at byte "));
      }
    }
  }
}

TEST(ElementCodec, TakesNoMemoryForClaims) {
  // A leaf of int64 [2^40], one of 2^40 strings, a tuple of 2^60 members, sizes that overflow.
  for (const char* bytes : {"\0\4\1\x80\x80\x80\x80\x80\x20", "\0\xff\1\1\x80\x80\x80\x80\x80\x20",
                            "\1\xff\xff\xff\xff\xff\xff\xff\xff\x0f",
                            "\0\4\3\0\x80\x80\x80\x80\x80\x20\x80\x80\x80\x80\x80\x20"}) {
    std::string text(bytes, 1);
    text += bytes + 1;
    if (text[1] == 4 && text[2] == 3) text = std::string(bytes, 16);
    EXPECT_THROW(internal::decode_element(text, "test"), DataLossError);
  }
}

TEST(ElementCodec, RefusesWhatIsNotPlainNumbers) {
  EXPECT_THROW(internal::encode_element(Structure(Tensor())), UnimplementedError);
}

class SaveLoad : public FilesTest {
 protected:
  const std::string path_ = path("saved/here");
};

TEST_F(SaveLoad, GivesTheSameElements) {
  const Dataset dataset = Dataset::range(7).map([](int64_t x) {
    return dict({{"x", at::arange(x, at::kFloat)}, {"s", StringTensor::scalar(std::to_string(x))}});
  });
  dataset.save(path_);
  const Dataset loaded = Dataset::load(path_);
  EXPECT_EQ(texts(loaded), texts(dataset));
  EXPECT_EQ(loaded.cardinality(), 7);
  EXPECT_EQ(loaded.element_spec(), dataset.element_spec());
  EXPECT_THAT(loaded.explain(), HasSubstr("load(path=" + path_ + ")"));
}

// What is read again has a limit, which hostile files do not pass: neither does what is written.
TEST_F(SaveLoad, WhatIsNestedTooDeepIsNotWritten) {
  Structure element = StringTensor::scalar("x");
  for (int i = 0; i < 63; ++i) element = tuple(element);
  const Dataset dataset = Dataset::from_tensors(element);
  dataset.save(path_);
  EXPECT_EQ(texts(Dataset::load(path_)), texts(dataset));
  const Dataset deeper = Dataset::from_tensors(tuple(tuple(element)));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { deeper.save(path_ + "/deeper"); }),
              HasSubstr("more than 64 deep"));
}

TEST_F(SaveLoad, KeepsUnknownDimensions) {
  const Dataset batches = Dataset::range(7).batch(3);
  batches.save(path_);
  EXPECT_EQ(Dataset::load(path_).element_spec(), batches.element_spec());
}

TEST_F(SaveLoad, SavingAgainReplacesInOneStep) {
  Dataset::range(3).save(path_);
  const Dataset old = Dataset::load(path_);
  Dataset::range(5).save(path_);
  EXPECT_EQ(ints(old).size(), 3u);
  EXPECT_EQ(ints(Dataset::load(path_)).size(), 5u);
  const Dataset failing = Dataset::range(3).map([](int64_t x) {
    if (x == 2) throw UnavailableError("no");
    return x;
  });
  EXPECT_THROW(failing.save(path_), UnavailableError);
  EXPECT_EQ(ints(Dataset::load(path_)).size(), 5u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path_), {}), 1);
}

TEST_F(SaveLoad, ReadsAtAnyPosition) {
  Dataset::range(100).save(path_);
  const Dataset loaded = Dataset::load(path_);
  EXPECT_THAT(ints(loaded.skip(97)), ElementsAre(97, 98, 99));
  auto iterator = loaded.shuffle(100, {.seed = 1}).iterator();
  for (int i = 0; i < 50; ++i) iterator.get_next();
  auto restored = Dataset::load(path_).shuffle(100, {.seed = 1}).iterator();
  restored.restore(IteratorState::parse(iterator.state().serialize()));
  EXPECT_EQ(ints(restored), ints(iterator));
}

TEST_F(SaveLoad, NoElements) {
  Dataset::range(0).save(path_);
  EXPECT_EQ(Dataset::load(path_).cardinality(), 0);
  EXPECT_EQ(texts(Dataset::load(path_)).size(), 0u);
}

TEST_F(SaveLoad, DamageIsNamed) {
  EXPECT_THROW(Dataset::load(path_), NotFoundError);
  Dataset::range(4).save(path_);
  const std::string file = path_ + "/elements";
  const std::string whole = read("saved/here/elements");
  const auto put = [&](const std::string& bytes) { write("saved/here/elements", bytes); };
  for (size_t length = 0; length < whole.size(); length += 5) {
    put(whole.substr(0, length));
    EXPECT_THAT(thrown<DataLossError>([&] { Dataset::load(path_); }),
                HasSubstr("file '" + file + "', byte "))
        << length;
  }
  for (size_t byte = 8; byte < whole.size(); byte += 3) {
    std::string damaged = whole;
    damaged[byte] ^= 1;
    put(damaged);
    EXPECT_THROW(texts(Dataset::load(path_)), DataLossError) << byte;
  }
}

}  // namespace
}  // namespace cohort::data
