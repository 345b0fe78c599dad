// Checkpoints of values that other processes have.
#include "cohort/train/objects/remote_values.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/testing_files.h"
#include "cohort/train/bundle/bundle_data_file.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/bundle/value_bytes.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/objects/pending_value.h"

namespace cohort::train {
namespace {

using internal::posix_file_system;
using ::testing::HasSubstr;

enum class Other { kWrites, kDoesNotSeeTheDirectory, kFails };

// Another process that has the rows of a table, two parts of it.
class OtherProcess final : public RemoteKeeper {
 public:
  Tensor table = at::arange(6).reshape({3, 2});
  Other does = Other::kWrites;
  int kept = 0;
  int fetched = 0;
  int read_parts = 0;
  bool takes_values = false;  // that are sent
  int sent_parts = 0;
  std::optional<uint32_t> expects_crc;  // of the index that it is asked for; else that of the file

  std::unique_ptr<RemoteValues> keep(const std::vector<std::shared_ptr<const RemotePart>>& parts,
                                     std::chrono::milliseconds) override;
  std::unique_ptr<RemoteReads> read(const std::string& prefix, uint32_t index_crc,
                                    const std::vector<RemoteRead>& wanted) override;
  std::unique_ptr<RemoteReads> send(const std::vector<RemoteRead>& wanted,
                                    FunctionRef<Tensor(const RemoteRead&)> value_of) override;
};

class Part final : public RemotePart {
 public:
  Part(const std::shared_ptr<OtherProcess>& process, int64_t begin, int64_t rows)
      : RemotePart(process, {rows, 2}, int64), begin_(begin) {}
  Tensor of(const Tensor& table) const { return table.narrow(0, begin_, shape()[0]); }

 private:
  const int64_t begin_;
};

class Values final : public RemoteValues {
 public:
  Values(OtherProcess& process, std::vector<Tensor> values)
      : process_(process), values_(std::move(values)) {
    ++process_.kept;
  }
  ~Values() override { --process_.kept; }

  std::optional<std::vector<File>> write(const Target& target) override {
    if (process_.does == Other::kDoesNotSeeTheDirectory) return std::nullopt;
    if (process_.does == Other::kFails) throw UnavailableError("the other process is gone");
    const std::string name = target.file_prefix + "0";
    EXPECT_TRUE(posix_file_system().exists(internal::join_path(target.directory, target.probe)));
    internal::BundleDataFile out(posix_file_system(), internal::join_path(target.directory, name),
                                 0);
    File file{.name = name, .parts = {}};
    for (size_t i = values_.size(); i-- > 0;) {  // in any order
      const uint64_t offset = out.size();
      const uint32_t crc = out.append(internal::bytes_of(values_[i]));
      file.parts.push_back({i, offset, values_[i].nbytes(), internal::mask_crc(crc)});
    }
    out.finish();
    out.let_go();
    return std::vector<File>{file};
  }
  Tensor fetch(size_t part) override {
    ++process_.fetched;
    return values_.at(part);
  }

 private:
  OtherProcess& process_;
  const std::vector<Tensor> values_;
};

std::unique_ptr<RemoteValues> OtherProcess::keep(
    const std::vector<std::shared_ptr<const RemotePart>>& parts, std::chrono::milliseconds) {
  std::vector<Tensor> values;
  for (const auto& part : parts) {
    values.push_back(static_cast<const Part&>(*part).of(table).clone());
  }
  return std::make_unique<Values>(*this, std::move(values));
}

class Reads final : public RemoteReads {
 public:
  Reads(OtherProcess& process, Tensor table) : process_(process), table_(std::move(table)) {}
  void commit() override { process_.table = table_; }

 private:
  OtherProcess& process_;
  const Tensor table_;
};

std::unique_ptr<RemoteReads> OtherProcess::read(const std::string& prefix, uint32_t index_crc,
                                                const std::vector<RemoteRead>& wanted) {
  if (does == Other::kDoesNotSeeTheDirectory) return nullptr;
  if (does == Other::kFails) throw UnavailableError("the other process is gone");
  const uint32_t found = internal::bundle_index_crc(posix_file_system(), prefix);
  EXPECT_EQ(index_crc, expects_crc.value_or(found));
  if (index_crc != found) return nullptr;
  const internal::BundleReader bundle(posix_file_system(), prefix);
  const Tensor values = at::zeros({3, 2}, int64);
  for (const RemoteRead& one : wanted) {
    const Tensor part = static_cast<const Part&>(*one.part).of(values);
    bundle.read_slice(one.key, one.slice.value(), part.data_ptr());
    ++read_parts;
  }
  return std::make_unique<Reads>(*this, values);
}

std::unique_ptr<RemoteReads> OtherProcess::send(const std::vector<RemoteRead>& wanted,
                                                FunctionRef<Tensor(const RemoteRead&)> value_of) {
  if (!takes_values) return nullptr;
  const Tensor values = at::zeros({3, 2}, int64);
  for (const RemoteRead& one : wanted) {
    static_cast<const Part&>(*one.part).of(values).copy_(value_of(one));
    ++sent_parts;
  }
  return std::make_unique<Reads>(*this, values);
}

class Table final : public Trackable {
 public:
  explicit Table(std::shared_ptr<OtherProcess> process) : process_(std::move(process)) {}

  bool has_checkpoint_values() const override { return true; }
  std::vector<CheckpointValue> checkpoint_values() override {
    CheckpointValue value{
        .attribute = kVariableValue, .full_name = "table", .full_shape = {3, 2}, .parts = {}};
    const auto add = [&](int64_t begin, int64_t rows) {
      value.parts.push_back({.value = Leaf(Tensor()),
                             .slice = TensorSlice{{begin, 0}, {rows, 2}},
                             .remote = std::make_shared<Part>(process_, begin, rows)});
    };
    add(0, 2);
    add(2, 1);
    return {value};
  }
  void prepare_restore(RestoreSource& source) override {
    for (const auto& [begin, rows] : {std::pair<int64_t, int64_t>{0, 2}, {2, 1}}) {
      const auto part = std::make_shared<Part>(process_, begin, rows);
      source.read_remote(
          kVariableValue, {3, 2}, TensorSlice{{begin, 0}, {rows, 2}}, part,
          [this, part](const Tensor& value) { part->of(process_->table).copy_(value); });
    }
  }

 private:
  const std::shared_ptr<OtherProcess> process_;
};

class RemoteValuesTest : public data::FilesTest {
 protected:
  // What is left in the directory beside the lock.
  std::vector<std::string> left() const {
    std::vector<std::string> names = posix_file_system().list(directory + "/saved");
    std::erase_if(names, [](const std::string& name) { return name == ".cohort-writer.lock"; });
    return names;
  }
  void expect_restores(const std::string& path) {
    const Tensor saved = process_->table.clone();
    process_->table = at::zeros({3, 2}, int64);
    checkpoint_.restore(path).assert_consumed();
    EXPECT_TRUE(at::equal(process_->table, saved));
    process_->table = saved;
  }

  const std::shared_ptr<OtherProcess> process_ = std::make_shared<OtherProcess>();
  Checkpoint checkpoint_{{{"table", std::make_shared<Table>(process_)}}};
};

TEST_F(RemoteValuesTest, OthersWriteFilesOfTheirOwn) {
  const std::string path = checkpoint_.write(directory + "/saved/ckpt");
  EXPECT_THAT(left(), ::testing::ElementsAre("ckpt.data-00000-of-00002", "ckpt.data-00001-of-00002",
                                             "ckpt.index"));
  EXPECT_EQ(process_->fetched, 0);
  EXPECT_EQ(process_->kept, 0);
  expect_restores(path);
  process_->table += 10;
  expect_restores(checkpoint_.write(directory + "/saved/ckpt"));  // in the same place
  EXPECT_EQ(left().size(), 3u);
}

TEST_F(RemoteValuesTest, WhereTheyDoNotSeeTheDirectoryTheirValuesAreFetched) {
  process_->does = Other::kDoesNotSeeTheDirectory;
  const std::string path = checkpoint_.write(directory + "/saved/ckpt");
  EXPECT_THAT(left(), ::testing::ElementsAre("ckpt.data-00000-of-00001", "ckpt.index"));
  EXPECT_EQ(process_->fetched, 2);
  expect_restores(path);
}

TEST_F(RemoteValuesTest, OthersReadTheirPartsThemselves) {
  const std::string path = checkpoint_.write(directory + "/saved/ckpt");
  expect_restores(path);
  EXPECT_EQ(process_->read_parts, 2);
  process_->does = Other::kDoesNotSeeTheDirectory;
  expect_restores(path);
  EXPECT_EQ(process_->read_parts, 2);
  process_->takes_values = true;
  expect_restores(path);
  EXPECT_EQ(process_->sent_parts, 2);
  process_->does = Other::kFails;
  const Tensor before = process_->table.clone();
  EXPECT_THAT(thrown<UnavailableError>([&] { checkpoint_.restore(path); }), HasSubstr("is gone"));
  EXPECT_TRUE(at::equal(process_->table, before));
}

// What was sent is not taken before all of the checkpoint was verified.
TEST_F(RemoteValuesTest, OfADamagedCheckpointNothingThatWasSentCounts) {
  const std::string path = checkpoint_.write(directory + "/saved/ckpt");
  {
    std::fstream file(path + ".data-00001-of-00002",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.put('x');
  }
  process_->does = Other::kDoesNotSeeTheDirectory;
  process_->takes_values = true;
  process_->table = at::zeros({3, 2}, int64);
  EXPECT_THROW(checkpoint_.restore(path), DataLossError);
  EXPECT_TRUE(at::equal(process_->table, at::zeros({3, 2}, int64)));
}

// An object that is made after the restore.
TEST_F(RemoteValuesTest, OthersReadAValueThatWaitsForItsObject) {
  const auto table = std::make_shared<Table>(process_);
  const auto saved = std::make_shared<TrackableList>();
  saved->add(*table, table);
  const std::string path = Checkpoint({{"list", saved}}).write(directory + "/saved/ckpt");
  const Tensor values = process_->table.clone();
  process_->table = at::zeros({3, 2}, int64);

  const auto list = std::make_shared<TrackableList>();
  const auto status = Checkpoint({{"list", list}}).read(path);
  const auto pending = list->pending_value(0, {3, 2}, int64);
  ASSERT_NE(pending, nullptr);
  const std::vector<RemoteRead> parts = {{.part = std::make_shared<Part>(process_, 0, 2),
                                          .key = "",
                                          .slice = TensorSlice{{0, 0}, {2, 2}}},
                                         {.part = std::make_shared<Part>(process_, 2, 1),
                                          .key = "",
                                          .slice = TensorSlice{{2, 0}, {1, 2}}}};
  process_->does = Other::kDoesNotSeeTheDirectory;
  EXPECT_FALSE(pending->read_elsewhere(parts));
  process_->does = Other::kFails;
  EXPECT_THROW(pending->read_elsewhere(parts), UnavailableError);
  EXPECT_EQ(process_->read_parts, 0);
  process_->does = Other::kWrites;
  EXPECT_TRUE(pending->read_elsewhere(parts));
  EXPECT_EQ(process_->read_parts, 2);
  EXPECT_TRUE(at::equal(process_->table, values));
  pending->hand_over(*table);
  list->add(*table, table);
  EXPECT_EQ(process_->read_parts, 2);
  status.assert_consumed();
}

// Which others would find there: the one that was restored is meant.
TEST_F(RemoteValuesTest, OfAnotherCheckpointOfThatNameNothingIsRead) {
  const auto table = std::make_shared<Table>(process_);
  const auto saved = std::make_shared<TrackableList>();
  saved->add(*table, table);
  const Checkpoint checkpoint({{"list", saved}});
  const std::string path = checkpoint.write(directory + "/saved/ckpt");
  const auto list = std::make_shared<TrackableList>();
  Checkpoint({{"list", list}}).read(path).expect_partial();
  const uint32_t restored = internal::bundle_index_crc(posix_file_system(), path);
  process_->table += 1;
  checkpoint.write(directory + "/saved/ckpt");
  process_->expects_crc = restored;
  const auto pending = list->pending_value(0, {3, 2}, int64);
  ASSERT_NE(pending, nullptr);
  EXPECT_FALSE(pending->read_elsewhere({{.part = std::make_shared<Part>(process_, 0, 2),
                                         .key = "",
                                         .slice = TensorSlice{{0, 0}, {2, 2}}}}));
}

TEST_F(RemoteValuesTest, AnErrorOfTheirsIsThatOfTheSave) {
  const std::string path = checkpoint_.write(directory + "/saved/ckpt");
  process_->does = Other::kFails;
  EXPECT_THAT(thrown<UnavailableError>([&] { checkpoint_.write(directory + "/saved/ckpt"); }),
              HasSubstr("is gone"));
  EXPECT_EQ(process_->kept, 0);
  EXPECT_EQ(left().size(), 3u);
  process_->does = Other::kWrites;
  expect_restores(path);
}

TEST_F(RemoteValuesTest, AnAsynchronousSaveHasTheValuesOfItsCall) {
  const std::string path = checkpoint_.write(directory + "/saved/ckpt", {.enable_async = true});
  const Tensor saved = process_->table.clone();
  process_->table += 1;
  checkpoint_.wait();
  EXPECT_EQ(process_->kept, 0);
  checkpoint_.restore(path).assert_consumed();
  EXPECT_TRUE(at::equal(process_->table, saved));
}

}  // namespace
}  // namespace cohort::train
