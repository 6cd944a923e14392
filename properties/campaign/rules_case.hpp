// properties/campaign/rules_case.hpp: what tests of single rules are written with.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "reference/contract/subject/subject.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo {

/// One case against one subject.
class RulesCase {
 public:
  RulesCase(const Subject& subject, Profile profile, Record config = {})
      : session_(*subject.open({.profile = profile, .config = std::move(config)})) {}

  /// Carries out an operation; the answer has an error or the values.
  template <class T>
  Observation run(T op) {
    Observation seen = session_->apply(Op::of(std::move(op)), probe_);
    EXPECT_EQ(session_->broken_invariant(), std::nullopt);
    return seen;
  }
  /// "ok", or the code of the error.
  template <class T>
  std::string code(T op) {
    const Observation seen = run(std::move(op));
    return seen.error ? seen.error->code_text() : "ok";
  }
  /// The values of an operation that must succeed.
  template <class T>
  typename T::Returns values(T op) {
    const Observation seen = run(std::move(op));
    EXPECT_FALSE(seen.error) << seen.error->text();
    return seen.error ? typename T::Returns{} : seen.as<typename T::Returns>();
  }

 private:
  std::unique_ptr<Session> session_;
  Probe probe_;
};

/// first, first + 1, ... in an f32 tensor.
inline Tensor counting(const Shape& shape, float first) {
  Tensor tensor = make_tensor(shape);
  for (float& cell : tensor.floats()) cell = first++;
  return tensor;
}

/// The elements of a tensor; nothing without one.
inline std::vector<float> elements_of(const std::optional<Tensor>& tensor) {
  if (!tensor) return {};
  return {tensor->floats().begin(), tensor->floats().end()};
}

/// The variant as the suffix of a test's name.
inline std::string variant_name(const testing::TestParamInfo<const Subject*>& info) {
  std::string name = info.param->variant;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

}  // namespace kvo
