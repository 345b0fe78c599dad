// Row 36 of the fault matrix, on a disk: whatever happens to the files of the latest checkpoint, a
// restore ends in an error, and no object has changed.
#include <iostream>

#include "cohort/core/error.h"
#include "two_values.h"

namespace cohort::faults {
namespace {

constexpr const char* kIndex = "ckpt-2.index";
constexpr const char* kData = "ckpt-2.data-00000-of-00001";
constexpr const char* kState = "checkpoint";

class DamageTest : public testing::Test {
 protected:
  DamageTest() {
    TwoValues program(1);
    program.checkpoint.save(directory_.path("ckpt"));
    program.set(2);
    program.checkpoint.save(directory_.path("ckpt"));
  }
  ~DamageTest() override {
    if (tried_ == 0) return;
    std::cout << "row 36: " << tried_ << " tried, " << tried_ - undetected_ - partial_
              << " good, undetected " << undetected_ << ", partial restores " << partial_ << '\n';
  }

  // Restores the latest checkpoint, which must fail, with an error that names `file`'s checkpoint.
  void expect_found(const std::string& file, const std::string& what) {
    ++tried_;
    try {
      program_.checkpoint.restore(train::latest_checkpoint(directory_.path())).expect_partial();
      ++undetected_;
      ADD_FAILURE() << file << ", " << what << ": not detected";
    } catch (const Error& error) {
      const bool typed = error.code() == Code::kDataLoss || error.code() == Code::kNotFound ||
                         error.code() == Code::kUnimplemented;
      EXPECT_TRUE(typed) << file << ", " << what << ": " << code_name(error.code());
      const std::string name = file == kState ? "checkpoint'" : "ckpt-2";
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
    if (!program_.all(9) || program_.checkpoint.save_counter() != 0) {
      ++partial_;
      ADD_FAILURE() << file << ", " << what << ": an object has changed";
      program_.set(9);
    }
  }

  // With each byte of each file changed by `change`, which gets the content and the place.
  template <class Change>
  void damage_each_byte(const std::string& what, Change&& change) {
    program_ = TwoValues(9);
    for (const std::string file : {kIndex, kData, kState}) {
      const std::string good = directory_.content(file);
      ASSERT_GT(good.size(), 50u);
      for (size_t place = 0; place < good.size(); ++place) {
        std::string bytes = good;
        change(bytes, place);
        directory_.set_content(file, bytes);
        expect_found(file, internal::str(what, " at byte ", place));
      }
      directory_.set_content(file, good);
    }
    expect_restored(2);
  }

  void expect_restored(float value, const train::RestoreOptions& options = {}) {
    program_.checkpoint.restore(train::latest_checkpoint(directory_.path()), options)
        .assert_consumed();
    EXPECT_TRUE(program_.all(value));
  }

  ScratchDirectory directory_;
  TwoValues program_{9};
  int tried_ = 0;
  int undetected_ = 0;
  int partial_ = 0;
};

TEST_F(DamageTest, EveryFlippedBitIsFound) {
  for (int bit = 0; bit < 8; ++bit) {
    damage_each_byte(internal::str("bit ", bit, " flipped"), [&](std::string& bytes, size_t place) {
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << bit));
    });
  }
}

TEST_F(DamageTest, EveryOverwrittenByteIsFound) {
  damage_each_byte("inverted", [](std::string& bytes, size_t place) {
    bytes[place] = static_cast<char>(~bytes[place]);
  });
}

TEST_F(DamageTest, EveryTruncationIsFound) {
  damage_each_byte("cut", [](std::string& bytes, size_t place) { bytes.resize(place); });
}

TEST_F(DamageTest, MissingFilesAreFound) {
  for (const std::string file : {kIndex, kData}) {
    const std::string good = directory_.content(file);
    std::filesystem::remove(directory_.path(file));
    if (file == kIndex) {
      // The state names a checkpoint that is not there: there is no latest one.
      ++tried_;
      EXPECT_EQ(train::latest_checkpoint(directory_.path()), std::nullopt);
      EXPECT_THROW(program_.checkpoint.restore(directory_.path("ckpt-2")), NotFoundError);
      EXPECT_TRUE(program_.all(9));
    } else {
      expect_found(file, "missing");
    }
    directory_.set_content(file, good);
  }
}

TEST_F(DamageTest, FilesOfAnotherStepAreFound) {
  const std::string old_data = "ckpt-1.data-00000-of-00001";
  for (const auto& [file, other] :
       {std::pair<std::string, std::string>{kIndex, "ckpt-1.index"}, {kData, old_data}}) {
    const std::string good = directory_.content(file);
    directory_.set_content(file, directory_.content(other));
    expect_found(file, "of another step");
    directory_.set_content(file, good);
  }
  const std::string good = directory_.content(kData);
  directory_.set_content(kData, directory_.content(old_data));
  directory_.set_content(old_data, good);
  expect_found(kData, "swapped");
}

TEST_F(DamageTest, FallsBackToTheCheckpointBefore) {
  const std::string good = directory_.content(kData);
  for (size_t place = 0; place < good.size(); place += 16) {
    std::string bytes = good;
    bytes[place] = static_cast<char>(~bytes[place]);
    directory_.set_content(kData, bytes);
    program_.set(9);
    expect_restored(1, {.fall_back = true});
  }
}

}  // namespace
}  // namespace cohort::faults
