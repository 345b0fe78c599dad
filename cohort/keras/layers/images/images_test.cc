#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/layers/images/augmentation.h"
#include "cohort/keras/layers/images/random_colors.h"
#include "cohort/keras/layers/images/random_flip.h"
#include "cohort/keras/layers/images/random_transforms.h"
#include "cohort/keras/layers/images/resizing.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/sampling/stateless_random.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras::layers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor images_of(const std::vector<int64_t>& shape) {
  return random::stateless_uniform(shape, {1, 2}, {.maxval = 255});
}

TEST(RandomImages, AreDrawnInTrainingAndInCallsThatDoNotSay) {
  const Tensor images = images_of({4, 6, 6, 3});
  const RandomRotation rotation({0.1, 0.2});
  EXPECT_FALSE(rotation(images).equal(images));
  EXPECT_TRUE(rotation(images, {.training = false}).equal(images));
  const Sequential model({Rescaling(1), rotation});
  EXPECT_FALSE(model(images).equal(images));  // as in Keras
  EXPECT_FALSE(model(images, {.training = true}).equal(images));
  EXPECT_TRUE(model(images, {.training = false}).equal(images));
  EXPECT_TRUE(model.predict(images).tensor().equal(images));
  const auto input = Input({6, 6, 3});
  const Functional functional(input, rotation(input));
  EXPECT_FALSE(functional(images).equal(images));
  EXPECT_TRUE(functional(images, {.training = false}).equal(images));
}

TEST(RandomImages, FollowTheSeed) {
  const Tensor images = images_of({8, 6, 6, 1});
  const RandomZoom first(0.4, {.seed = 5});
  const RandomZoom second(0.4, {.seed = 5});
  const Tensor once = first(images);
  EXPECT_TRUE(once.equal(second(images)));
  const Tensor twice = first(images);
  EXPECT_FALSE(once.equal(twice));
  // Positions are in checkpoints.
  const std::string path =
      train::Checkpoint({{"layer", second}}).write(testing::TempDir() + "zoom");
  const RandomZoom third(0.4, {.seed = 5});
  train::Checkpoint({{"layer", third}}).restore(path);
  EXPECT_TRUE(third(images).equal(twice));
}

TEST(RandomImages, ReplicasDrawTheirOwn) {
  random::set_seed(3);
  const distribute::MirroredStrategy strategy = distribute::mirrored(2);
  const Tensor images = images_of({4, 6, 6, 1});
  for (const RandomBrightness& layer :
       {RandomBrightness(0.9), RandomBrightness(0.9, {.seed = 2})}) {
    const auto found = strategy.run([&] { return layer(images, {.training = true}); });
    EXPECT_FALSE(found.values()[0].equal(found.values()[1]));
  }
}

TEST(RandomImages, KeepShapesAndDtypes) {
  const Tensor bytes = images_of({2, 7, 5, 3}).to(uint8);
  for (const LayerHandle& layer :
       {LayerHandle(RandomFlip()), LayerHandle(RandomRotation(0.5)), LayerHandle(RandomZoom(0.5)),
        LayerHandle(RandomTranslation(0.5, {-0.1, 0.2})), LayerHandle(RandomContrast(0.5)),
        LayerHandle(RandomBrightness(0.5)), LayerHandle(RandomCrop(7, 5))}) {
    for (const Tensor& images : {bytes, bytes[0]}) {
      const Tensor changed = layer(images);
      EXPECT_EQ(changed.sizes(), images.sizes()) << layer.class_name();
      EXPECT_EQ(changed.scalar_type(), float32) << layer.class_name();
    }
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { layer(bytes[0][0]); }),
                HasSubstr("takes an image [height, width, channels] or a batch"));
  }
}

TEST(RandomImages, LetGradientsThrough) {
  const Tensor images = images_of({2, 4, 4, 1}).requires_grad_();
  const RandomFlip flip;
  flip(images).sum().backward();
  EXPECT_TRUE(images.grad().equal(at::ones({2, 4, 4, 1})));
}

TEST(RandomImages, RefuseWhatDoesNotFit) {
  const auto refused = [](auto make) { return thrown<InvalidArgumentError>(make); };
  EXPECT_THAT(refused([] { RandomFlip("diagonal"); }), HasSubstr("no mode is called 'diagonal'"));
  EXPECT_THAT(refused([] { RandomRotation({0.2, 0.1}); }), HasSubstr("factor"));
  EXPECT_THAT(refused([] { RandomRotation(0.1, {.fill_mode = "mirror"}); }), HasSubstr("'mirror'"));
  EXPECT_THAT(refused([] { RandomZoom(1.5); }), HasSubstr("height_factor"));
  EXPECT_THAT(refused([] { RandomTranslation(0.1, -0.1); }), HasSubstr("width_factor"));
  EXPECT_THAT(refused([] { RandomContrast(1.5); }), HasSubstr("[0, 1]"));
  EXPECT_THAT(refused([] { RandomBrightness(-1.5); }), HasSubstr("[-1, 1]"));
  EXPECT_THAT(refused([] { Resizing(0, 3); }), HasSubstr("height is 0"));
  EXPECT_THAT(refused([] { Resizing(3, 3, {.interpolation = "cubic"}); }), HasSubstr("'cubic'"));
}

// Elements of a dataset that is augmented on its way.
data::Dataset augmented(int64_t calls) {
  const Augmentation augment(
      Sequential({RandomFlip("horizontal"), RandomRotation(0.2, {.seed = 1}), RandomCrop(4, 4)}));
  return data::Dataset::from_tensor_slices(tuple(images_of({12, 6, 6, 1}), at::arange(12)))
      .map(augment, {.num_parallel_calls = calls, .seed = 7});
}

std::vector<Tensor> rest_of(data::DatasetIterator& iterator) {
  std::vector<Tensor> found;
  for (auto element = iterator.next(); element; element = iterator.next()) {
    found.push_back((*element)[0].tensor());
  }
  return found;
}

Tensor all_of(const data::Dataset& dataset) {
  data::DatasetIterator iterator = dataset.iterator();
  return at::stack(rest_of(iterator));
}

TEST(Augmentation, FollowsFromTheIndexOfAnElement) {
  const Tensor one_by_one = all_of(augmented(1));
  EXPECT_TRUE(all_of(augmented(4)).equal(one_by_one));
  const Tensor passes = all_of(augmented(2).repeat(2));
  EXPECT_TRUE(passes.slice(0, 0, 12).equal(one_by_one));
  EXPECT_FALSE(passes.slice(0, 12).equal(one_by_one));
  // Labels stay.
  const Structure element = *augmented(1).skip(3).iterator().next();
  EXPECT_EQ(element[1].tensor().item<int64_t>(), 3);
}

TEST(Augmentation, GoesOnExactlyWhereItStopped) {
  for (const int64_t calls : {1, 4}) {
    const data::Dataset dataset = augmented(calls);
    data::DatasetIterator iterator = dataset.iterator();
    for (int i = 0; i < 5; ++i) iterator.next();
    const auto state = iterator.state();
    const Tensor expected = at::stack(rest_of(iterator));
    data::DatasetIterator again = augmented(calls).iterator();
    again.restore(state);
    EXPECT_TRUE(at::stack(rest_of(again)).equal(expected)) << calls;
  }
}

TEST(Augmentation, IsTheSameOnAnyNumberOfReplicas) {
  const Tensor expected = all_of(augmented(1));
  for (const int replicas : {1, 2}) {
    const distribute::MirroredStrategy strategy = distribute::mirrored(replicas);
    std::vector<Tensor> found;
    for (const auto& batch : strategy.experimental_distribute_dataset(augmented(2).batch(6))) {
      const auto pieces =
          strategy.run([](const Tensor& images, const Tensor&) { return images; }, batch);
      for (const Tensor& piece : pieces.values()) found.push_back(piece);
    }
    EXPECT_TRUE(at::cat(found).equal(expected)) << replicas;
  }
}

TEST(Augmentation, TakesImagesAlone) {
  const Augmentation augment{RandomFlip()};
  auto random = random::RandomGenerator::from_seed(1);
  EXPECT_EQ(augment(random, images_of({2, 2, 1})).tensor().sizes(), at::IntArrayRef({2, 2, 1}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                augment(random, dict({{"image", images_of({2, 2, 1})}}));
              }),
              HasSubstr("an image, or a tuple whose first member is one"));
}

}  // namespace
}  // namespace cohort::keras::layers
