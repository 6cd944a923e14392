// reference/contract/subject/op_stream.hpp: where scripts come from, seen from the runner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/values/mark.hpp"

namespace kvo {

/// How a figure of several cases comes from theirs.
enum class Fold : std::uint8_t { kSum, kMost };
BOOST_DESCRIBE_ENUM(Fold, kSum, kMost)

/// A number that a stream tells of its case, beside what subjects are judged by: "tokens restored".
struct Figure {
  std::string name;
  std::int64_t value = 0;
  Fold fold = Fold::kSum;
  std::optional<std::string> of = std::nullopt;  ///< the figure, a sum too, that it is a share of
};
BOOST_DESCRIBE_STRUCT(Figure, (), (name, value, fold, of))

/// Operations of one case, one by one. The same feedback gives the same operations again.
class OpStream {
 public:
  virtual ~OpStream() = default;
  /// The next operation, or nothing at the end.
  [[nodiscard]] virtual std::optional<Op> next() = 0;
  /// What next() will give next, as far as that does not depend on what is observed: at most `most`
  /// operations, valid until next().
  [[nodiscard]] virtual std::span<const Op> ahead(std::size_t /*most*/) { return {}; }
  /// What must be observed of the operation that next() gave last, if the stream knows: it then
  /// judges every subject, the reference too. Valid until next().
  [[nodiscard]] virtual const Observation* expected() const { return nullptr; }
  /// What the judge observed of the operation that next() gave last.
  virtual void observe(const Op& op, const Observation& seen, Labels& labels) = 0;
  /// What the case came to in numbers, so far. All streams of a kind give the same names.
  [[nodiscard]] virtual std::vector<Figure> figures() const { return {}; }
};

/// The first operations of a stream.
class FirstOps final : public OpStream {
 public:
  FirstOps(std::unique_ptr<OpStream> all, std::uint64_t count)
      : all_(std::move(all)), left_(count) {}
  [[nodiscard]] std::optional<Op> next() override {
    if (left_ == 0) return std::nullopt;
    --left_;
    return all_->next();
  }
  [[nodiscard]] std::span<const Op> ahead(std::size_t most) override {
    return all_->ahead(std::min<std::size_t>(most, left_));
  }
  [[nodiscard]] const Observation* expected() const override { return all_->expected(); }
  void observe(const Op& op, const Observation& seen, Labels& labels) override {
    all_->observe(op, seen, labels);
  }
  [[nodiscard]] std::vector<Figure> figures() const override { return all_->figures(); }

 private:
  std::unique_ptr<OpStream> all_;
  std::uint64_t left_;
};

/// A list of operations as a stream.
class ListedOps final : public OpStream {
 public:
  explicit ListedOps(std::vector<Op> ops) : ops_(std::move(ops)) {}
  [[nodiscard]] std::optional<Op> next() override {
    if (at_ == ops_.size()) return std::nullopt;
    return ops_[at_++];
  }
  [[nodiscard]] std::span<const Op> ahead(std::size_t most) override {
    return std::span(ops_).subspan(at_, std::min(most, ops_.size() - at_));
  }
  void observe(const Op& /*op*/, const Observation& /*seen*/, Labels& /*labels*/) override {}

 private:
  std::vector<Op> ops_;
  std::size_t at_ = 0;
};

}  // namespace kvo
