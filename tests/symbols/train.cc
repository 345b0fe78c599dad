// A step of a convolutional network, linked as users link: through the shared library. So
// everything is loaded that a step loads, oneDNN too.
#include <cohort/cohort.h>

#include <iostream>

namespace tf = cohort;

int main() {
  const tf::Tensor images = tf::random::uniform({16, 28, 28, 1});
  const tf::Tensor labels = tf::zeros({16}, tf::int64);
  tf::keras::Sequential model({tf::keras::layers::Conv2D(32, 3, {.activation = "relu"}),
                               tf::keras::layers::Conv2D(64, 5, {.activation = "relu"}),
                               tf::keras::layers::MaxPooling2D(), tf::keras::layers::Flatten(),
                               tf::keras::layers::Dense(64, {.activation = "relu"}),
                               tf::keras::layers::Dense(10)});
  tf::keras::losses::SparseCategoricalCrossentropy loss_object({.from_logits = true});
  tf::GradientTape tape;
  const tf::Tensor loss = loss_object(labels, model(images, {.training = true}));
  const auto gradients = tape.gradient(loss, model.trainable_variables());
  std::cout << gradients.size() << " gradients\n";
  return gradients.size() == 8 ? 0 : 1;
}
