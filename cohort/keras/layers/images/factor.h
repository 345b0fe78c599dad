// How far a random layer changes its images.
#pragma once

namespace cohort::keras::layers {

// One number, whose meaning the layer says (mostly from -factor to factor), or a range.
//
//   RandomRotation(0.1), RandomRotation({-0.05, 0.2})
class Factor {
 public:
  Factor() = default;
  Factor(double factor) : lower_(factor), upper_(factor) {}
  Factor(double lower, double upper) : is_range_(true), lower_(lower), upper_(upper) {}

  bool is_range() const { return is_range_; }
  // The number itself where it is no range.
  double lower() const { return lower_; }
  double upper() const { return upper_; }

 private:
  bool is_range_ = false;
  double lower_ = 0;
  double upper_ = 0;
};

}  // namespace cohort::keras::layers
