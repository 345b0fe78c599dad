// Every handle that programs move: what is left behind says so, whatever is asked of it.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "cohort/cohort.h"
#include "cohort/data/testing_files.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::keras {
namespace {

using ::testing::HasSubstr;

template <class Handle>
using Uses = std::vector<std::function<void(Handle&)>>;

// Moves `handle` away, and back; what is moved from must refuse every use, and the rest work.
template <class Handle>
void expect_refused(Handle handle, const Uses<Handle>& uses) {
  Handle taken = std::move(handle);
  for (size_t i = 0; i < uses.size(); ++i) {
    try {
      uses[i](handle);
      ADD_FAILURE() << "use " << i << " was not refused";
    } catch (const FailedPreconditionError& error) {
      EXPECT_THAT(error.what(), HasSubstr("moved from")) << "use " << i;
    }
  }
  handle = std::move(taken);
  for (size_t i = 0; i < uses.size(); ++i) {
    try {
      uses[i](handle);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "use " << i << " after the move back: " << error.what();
    }
  }
}

data::Dataset batches() { return data::Dataset::range(8).batch(4); }

TEST(MovedFrom, Strategy) {
  expect_refused<distribute::OneDeviceStrategy>(
      distribute::OneDeviceStrategy("CPU:0"),
      {[](auto& s) { s.run([] { return 1; }); }, [](auto& s) { s.num_replicas_in_sync(); },
       [](auto& s) { auto scope = s.scope(); },
       [](auto& s) { s.reduce("SUM", distribute::PerReplica<Tensor>({at::ones({})})); },
       [](auto& s) { s.gather(distribute::PerReplica<Tensor>({at::ones({1})}), 0); },
       [](auto& s) { s.experimental_distribute_dataset(batches()); },
       [](auto& s) { s.extended().worker_devices(); }, [](auto& s) { s.trackable(); }});
}

TEST(MovedFrom, Dataset) {
  const distribute::MirroredStrategy two = distribute::mirrored(2);
  expect_refused<data::Dataset>(
      batches(),
      {[](auto& d) { d.iterator(); }, [](auto& d) { d.begin(); },
       [](auto& d) { d.map([](const Tensor& x) { return x; }); },
       [](auto& d) { d.unbatch().shuffle(2).repeat(); }, [](auto& d) { d.concatenate(batches()); },
       [](auto& d) { batches().concatenate(d); },
       [](auto& d) {
         data::Dataset::zip({batches(), d});
       },
       [](auto& d) { d.with_options({}); }, [](auto& d) { d.element_spec(); },
       [](auto& d) { d.cardinality(); }, [](auto& d) { d.explain(); },
       [&](auto& d) { two.experimental_distribute_dataset(d); }});
  auto dataset = batches();
  expect_refused<data::DatasetIterator>(
      dataset.iterator(), {[](auto& i) { i.next(); }, [](auto& i) { i.element_spec(); },
                           [](auto& i) { i.restore(i.state()); }, [](auto& i) { i.begin(); }});
}

TEST(MovedFrom, DistributedDataset) {
  const distribute::MirroredStrategy two = distribute::mirrored(2);
  auto dataset = two.experimental_distribute_dataset(batches());
  expect_refused<distribute::DistributedDataset>(
      dataset,
      {[](auto& d) { d.iterator(); }, [](auto& d) { d.begin(); }, [](auto& d) { d.element_spec(); },
       [](auto& d) { d.cardinality(); }, [](auto& d) { d.explain(); }});
  expect_refused<distribute::DistributedIterator>(
      dataset.iterator(), {[](auto& i) { i.next(); }, [](auto& i) { i.positions(); },
                           [](auto& i) { i.element_spec(); }, [](auto& i) { i.restore(i.state()); },
                           [](auto& i) { i.trackable(); }, [](auto& i) { i.begin(); }});
}

TEST(MovedFrom, Models) {
  const Tensor x = at::ones({2, 3});
  expect_refused<Sequential>(
      Sequential({layers::Dense(4)}),
      {[&](auto& m) { m(x); }, [](auto& m) { m.trainable_variables(); },
       [](auto& m) { m.losses(); }, [](auto& m) { m.summary(); }, [](auto& m) { m.layer_names(); },
       [](auto& m) { m.get_layer(0); }, [](auto& m) { m.add(layers::Dense(1)); },
       [](auto& m) {
         train::Checkpoint({{"model", m}});
       },
       [](auto& m) { m.name(); }});
  expect_refused<layers::LayerHandle>(
      layers::Dense(4), {[&](auto& l) { l(x); }, [](auto& l) { l->built(); },
                         [](auto& l) { l(Input({3})); }, [](auto& l) { Sequential({l}); }});
  expect_refused<SymbolicTensor>(
      Input({3}), {[](auto& t) { t.shape(); }, [](auto& t) { layers::Dense(1)(t); }});
  expect_refused<losses::Loss>(losses::MeanSquaredError(), {[&](auto& loss) { loss(x, x); }});
}

TEST(MovedFrom, OptimizersAndMetrics) {
  const Variable weight(at::ones({2}));
  expect_refused<optimizers::SGD>(
      optimizers::SGD(),
      {[&](auto& o) {
         o.apply_gradients({{at::ones({2}), weight}});
       },
       [&](auto& o) {
         GradientTape tape;
         o.minimize(weight.value().sum(), {weight}, tape);
       },
       [&](auto& o) { o.build({weight}); }, [](auto& o) { o.iterations(); },
       [](auto& o) { o.learning_rate(); }, [](auto& o) { o.set_learning_rate(0.5); },
       [](auto& o) { o.variables(); }, [](auto& o) { o.name(); },
       [](auto& o) {
         train::Checkpoint({{"optimizer", o}});
       }});
  expect_refused<metrics::Mean>(
      metrics::Mean(), {[](auto& m) { m.update_state(at::ones({2})); }, [](auto& m) { m.result(); },
                        [](auto& m) { m.reset_state(); }, [](auto& m) { m.variables(); },
                        [](auto& m) { m.name(); }, [](auto& m) { m.trackable(); }});
  expect_refused<Variable>(weight, {[](auto& v) { v.value(); }, [](auto& v) { v.assign(1.0); }});
}

struct MovedFromFiles : data::FilesTest {};

TEST_F(MovedFromFiles, CheckpointsGeneratorsWriters) {
  const std::string prefix = path("ckpt");
  const Variable weight(at::ones({2}));
  expect_refused<train::Checkpoint>(
      train::Checkpoint({{"weight", weight}}),
      {[&](auto& c) { c.save(prefix); }, [&](auto& c) { c.write(prefix); },
       [&](auto& c) { c.read(prefix); }, [&](auto& c) { c.restore(std::nullopt); },
       [](auto& c) { c.save_counter(); }, [](auto& c) { c.wait(); }});
  expect_refused<train::CheckpointManager>(
      train::CheckpointManager(train::Checkpoint({{"weight", weight}}), directory),
      {[](auto& m) { m.save(); }, [](auto& m) { m.latest_checkpoint(); },
       [](auto& m) { m.checkpoints(); }, [](auto& m) { m.directory(); }});
  expect_refused<random::RandomGenerator>(
      random::RandomGenerator::from_seed(1),
      {[](auto& g) { g.uniform({2}); }, [](auto& g) { g.restore(g.state()); },
       [](auto& g) {
         train::Checkpoint({{"generator", g}});
       }});
  expect_refused<io::TFRecordWriter>(
      io::TFRecordWriter(path("records")),
      {[](auto& w) { w.write("x"); }, [](auto& w) { w.flush(); }, [](auto& w) { w.close(); }});
}

}  // namespace
}  // namespace cohort::keras
