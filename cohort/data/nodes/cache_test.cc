#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "cohort/core/observe/logging.h"
#include "cohort/data/generator.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Cache : public testing::TestWithParam<int> {
 protected:
  Dataset input(const Dataset& dataset) const {
    if (GetParam() == 1) return in_blocks(dataset);
    if (GetParam() == 2) return sequential(dataset);
    return dataset;
  }
  Dataset range(int64_t stop) const { return input(Dataset::range(stop)); }
  // Counts what is read.
  Dataset counted(int64_t stop, int64_t& reads) const {
    return range(stop).map([&reads](const Tensor& x) {
      ++reads;
      return x;
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Inputs, Cache, testing::Values(0, 1, 2));

TEST_P(Cache, ReadsItsInputOnce) {
  int64_t reads = 0;
  const Dataset cached = counted(20, reads).cache();
  EXPECT_EQ(cached.cardinality(), counted(20, reads).cardinality());
  for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(ints(cached), ints(Dataset::range(20)));
  EXPECT_EQ(ints(cached.repeat(2).batch(3)), ints(Dataset::range(20).repeat(2)));
  EXPECT_EQ(reads, 20);
}

TEST_P(Cache, APassThatIsNotReadToItsEndIsNoCache) {
  int64_t reads = 0;
  const Dataset cached = counted(20, reads).cache();
  EXPECT_EQ(ints(cached.take(5)).size(), 5u);
  EXPECT_EQ(ints(cached), ints(Dataset::range(20)));
  EXPECT_EQ(ints(cached), ints(Dataset::range(20)));
  EXPECT_LE(reads, 25);
}

TEST_P(Cache, APassWithErrorsIsNoCache) {
  int failures = 1;
  const Dataset cached = range(6)
                             .map([&](const Tensor& x) {
                               if (x.item<int64_t>() == 3 && failures-- > 0) {
                                 throw UnavailableError("try again");
                               }
                               return x;
                             })
                             .cache();
  auto iterator = cached.iterator();
  EXPECT_THAT(ints(cached.take(3)), ElementsAre(0, 1, 2));
  for (int i = 0; i < 3; ++i) iterator.get_next();
  EXPECT_THROW(iterator.next(), UnavailableError);
  EXPECT_THAT(ints(iterator), ElementsAre(4, 5));
  EXPECT_EQ(ints(cached), ints(Dataset::range(6)));
}

TEST_P(Cache, KeepsTheFirstPassOfAShuffle) {
  const Dataset shuffled = range(20).shuffle(20, {.seed = 1});
  const std::vector<int64_t> first = ints(shuffled);
  EXPECT_EQ(ints(range(20).shuffle(20, {.seed = 1}).cache().repeat(2).take(20)), first);
  const Dataset cached = range(20).shuffle(20, {.seed = 1}).cache();
  EXPECT_EQ(ints(cached), first);
  EXPECT_EQ(ints(cached), first);
}

TEST_P(Cache, ElementsOfSeveralShapes) {
  const Dataset cached =
      range(4).map([](int64_t x) { return Structure(at::ones({x}, at::kLong)); }).cache();
  const std::vector<int64_t> expected(6, 1);
  EXPECT_EQ(ints(cached), expected);
  EXPECT_EQ(ints(cached), expected);
}

// In the same process with and without the contents, and as another one would with a new dataset,
// whose shuffle has another seed.
TEST_P(Cache, ResumesInEveryPass) {
  const auto make = [&] { return range(30).shuffle(12).cache().repeat(3); };
  for (int position : {0, 1, 17, 29, 30, 31, 59, 60, 75, 90}) {
    const Dataset dataset = make();
    auto iterator = dataset.iterator();
    for (int i = 0; i < position; ++i) iterator.get_next();
    const IteratorState state = IteratorState::parse(iterator.state().serialize());
    auto here = dataset.iterator();
    here.restore(state);
    auto elsewhere = make().iterator();
    elsewhere.restore(state);
    const Dataset full = make();
    texts(full);
    auto beside = full.iterator();
    beside.restore(state);
    const std::vector<int64_t> expected = ints(iterator);
    EXPECT_EQ(ints(here), expected) << position;
    EXPECT_EQ(ints(elsewhere), expected) << position;
    EXPECT_EQ(ints(beside), expected) << position;
  }
}

TEST_P(Cache, RestoringReadsLittleAgain) {
  int64_t reads = 0;
  const auto make = [&] {
    return sequential(Dataset::range(5000))
        .map([&](const Tensor& x) {
          ++reads;
          return x;
        })
        .cache();
  };
  auto iterator = make().iterator();
  for (int i = 0; i < 4500; ++i) iterator.get_next();
  const IteratorState state = iterator.state();
  reads = 0;
  auto restored = make().iterator();
  restored.restore(state);
  EXPECT_LE(reads, 1024);
  EXPECT_EQ(ints(restored), ints(iterator));
}

class FileCache : public FilesTest {
 protected:
  FileCache() { logging::set_level(logging::Level::kError); }  // damaged files are warned of
  ~FileCache() override { logging::set_level(logging::Level::kInfo); }

  const std::string path_ = path("cache");

  Dataset cached(int64_t* reads = nullptr) const {
    return Dataset::range(10)
        .map([reads](const Tensor& x) {
          if (reads) ++*reads;
          return tuple(x, StringTensor::scalar("x"));
        })
        .cache(path_);
  }
  std::string contents() const { return read("cache"); }
  void put(const std::string& bytes) const { write("cache", bytes); }
};

TEST_F(FileCache, OutlivesTheDataset) {
  const std::vector<std::string> expected = texts(cached());
  int64_t reads = 0;
  EXPECT_EQ(texts(cached(&reads)), expected);
  EXPECT_EQ(texts(cached(&reads).skip(8)).size(), 2u);
  EXPECT_EQ(reads, 0);
  // Nothing but the file is left behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
}

TEST_F(FileCache, AppearsWhenItIsWhole) {
  auto iterator = cached().iterator();
  for (int i = 0; i < 10; ++i) iterator.get_next();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(iterator.next());
  EXPECT_TRUE(std::filesystem::exists(path_));
}

// Cut short anywhere: never read as whole, always written anew.
TEST_F(FileCache, AHalfWrittenFileIsWrittenAnew) {
  const std::vector<std::string> expected = texts(cached());
  const std::string whole = contents();
  for (size_t length = 0; length < whole.size(); length += 37) {
    put(whole.substr(0, length));
    int64_t reads = 0;
    EXPECT_EQ(texts(cached(&reads)), expected) << length;
    EXPECT_EQ(reads, 10) << length;
    EXPECT_EQ(contents(), whole);
  }
}

TEST_F(FileCache, DamageIsNamed) {
  texts(cached());
  const std::string whole = contents();
  int found = 0, rewritten = 0;
  for (size_t byte = 8; byte < whole.size(); byte += 7) {
    std::string damaged = whole;
    damaged[byte] ^= 0x10;
    put(damaged);
    int64_t reads = 0;
    const std::string text = thrown<DataLossError>([&] { texts(cached(&reads)); });
    if (reads > 0) {
      ++rewritten;  // the index and the trailer
    } else {
      EXPECT_THAT(text, HasSubstr("file '" + path_ + "', byte ")) << byte;
      ++found;
    }
  }
  EXPECT_GT(found, 20);
  EXPECT_GT(rewritten, 5);
}

TEST_F(FileCache, AnotherPipelinesFileIsRefused) {
  texts(cached());
  const Dataset other = Dataset::range(11).cache(path_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { texts(other); }),
                HasSubstr("holds the elements of another pipeline"));
  }
  put("somebody's notes");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { texts(cached()); }),
              HasSubstr("was not written by save() or cache()"));
  EXPECT_EQ(contents(), "somebody's notes");
}

TEST_F(FileCache, ResumesWithAndWithoutTheFile) {
  for (int position : {0, 4, 10, 13, 20}) {
    for (bool keep : {true, false}) {
      std::filesystem::remove(path_);
      auto iterator = cached().repeat(2).iterator();
      for (int i = 0; i < position; ++i) iterator.get_next();
      const IteratorState state = IteratorState::parse(iterator.state().serialize());
      const std::vector<std::string> expected = texts(iterator);
      if (!keep) std::filesystem::remove(path_);
      auto restored = cached().repeat(2).iterator();
      restored.restore(state);
      EXPECT_EQ(texts(restored), expected) << position;
    }
  }
}

TEST_F(FileCache, AFileThatCannotBeWrittenEndsThePass) {
  const Dataset dataset = Dataset::range(10).cache(path("no such directory/cache"));
  auto iterator = dataset.iterator();
  EXPECT_THROW(iterator.next(), Error);
  EXPECT_FALSE(iterator.next());
  EXPECT_THAT(thrown<Error>([&] { texts(dataset.batch(3)); }), HasSubstr("no such directory"));
  try {
    texts(dataset.map([](const Tensor& x) { return x; }, {.num_parallel_calls = 2})
              .ignore_errors({.log_warning = false}));
  } catch (const Error&) {
  }
}

// Of a pass over a shuffle whose seed is another than that of the file.
TEST_F(FileCache, AStateOfAnotherPassReadsTheInput) {
  int64_t reads = 0;
  const auto make = [&] {
    return Dataset::range(10)
        .shuffle(10)
        .map([&reads](const Tensor& x) {
          ++reads;
          return x;
        })
        .cache(path_)
        .repeat(3);
  };
  auto other = make().iterator();
  other.get_next();
  const IteratorState state = other.state();
  const std::vector<int64_t> expected = ints(other);
  std::filesystem::remove(path_);
  ints(make());
  reads = 0;
  auto restored = make().iterator();
  restored.restore(state);
  EXPECT_EQ(ints(restored), expected);
  EXPECT_GE(reads, 29);  // nothing is kept in memory
}

// The file is of a run with other seeds: a state that is taken before the first element, or by a
// stage that reads ahead, is of the file's pass, and stays so without the file.
TEST_F(FileCache, AStateBeforeTheFirstElementIsOfTheFilesPass) {
  const auto make = [&] { return sequential(Dataset::range(12)).shuffle(12).cache(path_); };
  const std::vector<int64_t> filled = ints(make());
  const std::vector<std::pair<const char*, std::function<Dataset(const Dataset&)>>> stages = {
      {"itself", [](const Dataset& dataset) { return dataset; }},
      {"shuffle", [](const Dataset& dataset) { return dataset.shuffle(6, {.seed = 3}); }},
      {"prefetch", [](const Dataset& dataset) { return dataset.prefetch(2); }},
      {"unbatch", [](const Dataset& dataset) { return dataset.batch(4).unbatch(); }},
      {"repeat", [](const Dataset& dataset) { return dataset.repeat(2); }},
  };
  const std::string file = contents();
  for (const auto& [name, stage] : stages) {
    for (int taken : {0, 1, 5, 11}) {
      for (bool keep : {true, false}) {
        put(file);
        auto iterator = stage(make()).iterator();
        for (int i = 0; i < taken; ++i) iterator.get_next();
        const IteratorState state = IteratorState::parse(iterator.state().serialize());
        const std::vector<int64_t> expected = ints(iterator);
        if (!keep) std::filesystem::remove(path_);
        auto restored = stage(make()).iterator();
        restored.restore(state);
        EXPECT_EQ(ints(restored), expected) << name << ", " << taken << ", " << keep;
      }
    }
  }
  put(file);
  EXPECT_EQ(ints(make()), filled);
}

// What a state says stays true where another run's file appears afterwards.
TEST_F(FileCache, AFileThatAppearsAfterAStateDoesNotChangeIt) {
  const auto make = [&] { return sequential(Dataset::range(12)).shuffle(12).cache(path_); };
  auto iterator = make().iterator();
  const IteratorState state = iterator.state();
  ints(make());
  const std::vector<int64_t> rest = ints(iterator);
  auto restored = make().iterator();
  restored.restore(state);
  EXPECT_EQ(ints(restored), rest);
}

// It is no error of an element: without it the dataset would seem to be empty.
TEST_F(FileCache, IgnoreErrorsLetsOutThatItCannotBegin) {
  put("somebody's notes");
  const auto lenient = [](const Dataset& dataset) {
    return dataset.ignore_errors({.log_warning = false});
  };
  for (const Dataset& dataset :
       {Dataset::range(3).cache(path_), Dataset::range(3).cache(path_).batch(2),
        Dataset::range(3).cache(path_).prefetch(2), Dataset::range(3).cache(path_).skip(1)}) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { texts(lenient(dataset)); }),
                HasSubstr("was not written by save() or cache()"))
        << dataset.explain();
  }
  EXPECT_EQ(contents(), "somebody's notes");
  EXPECT_THAT(thrown<NotFoundError>([&] {
                texts(lenient(Dataset::range(3).cache(path("no such directory/cache"))));
              }),
              HasSubstr("no such directory"));
}

TEST_F(FileCache, IgnoreErrorsStillLeavesOutElements) {
  const auto make = [&] {
    return Dataset::range(4)
        .map([](int64_t x) {
          if (x == 2) throw UnavailableError("not this one");
          return x;
        })
        .cache(path_)
        .ignore_errors({.log_warning = false});
  };
  EXPECT_THAT(ints(make()), ElementsAre(0, 1, 3));
}

TEST(CacheRestore, SaysWhereTheInputIsTooShort) {
  int64_t size = 10;
  const auto make = [&size] {
    return Dataset::from_generator([&size, i = int64_t{0}]() mutable -> std::optional<int64_t> {
             return i < size ? std::optional(i++) : std::nullopt;
           })
        .cache();
  };
  auto iterator = make().iterator();
  for (int i = 0; i < 8; ++i) iterator.get_next();
  size = 5;
  auto shorter = make().iterator();
  EXPECT_THAT(thrown<DataLossError>([&] { shorter.restore(iterator.state()); }),
              HasSubstr("of element 8, but there are only 5"));
}

}  // namespace
}  // namespace cohort::data
