// Scripts for a kind that says nothing but what its operations are.
#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/campaign/generator.hpp"
#include "reference/contract/describe/handles.hpp"
#include "reference/contract/values/tags.hpp"

namespace kvo {
namespace {

/// Draws values of any described type.
class PlainValues {
 public:
  PlainValues(std::uint64_t seed, Scale scale)
      : draw_(seed), most_(scale == Scale::kSmall ? 20 : 300) {}

  [[nodiscard]] Draw& draw() { return draw_; }
  [[nodiscard]] Record record(const Type& type) {
    std::shared_ptr<void> made = type.made();
    fill_fields(type, made.get());
    return {type, std::move(made)};
  }
  /// Handles that were returned are what handles are drawn from, mostly.
  void learn(const Record& returned) {
    constexpr std::size_t kMostKnown = 64;
    for (const Handle& handle : handles_of(returned)) {
      std::vector<std::int64_t>& known = handles_[handle.of];
      if (known.size() == kMostKnown) known.erase(known.begin());
      known.push_back(handle.value);
    }
  }

 private:
  void fill_fields(const Type& type, void* record) {
    constexpr std::uint64_t kDefaultPercent = 30;
    for (const Field& field : type.fields)
      if (!field.has_default || !draw_.percent(kDefaultPercent))
        fill(field, *field.type, field.of(record));
  }

  // `field`: what the value is part of.
  void fill(const Field& field, const Type& type, void* value) {
    switch (type.type_class) {
      case TypeClass::kBool:
        *static_cast<bool*>(value) = draw_.percent(50);
        return;
      case TypeClass::kInteger:
        return set_integer(type, value, integer(field, type));
      case TypeClass::kFloat:
        *static_cast<float*>(value) = static_cast<float>(eighths());
        return;
      case TypeClass::kDouble:
        *static_cast<double*>(value) = eighths();
        return;
      case TypeClass::kString:
        static_cast<std::string*>(value)->assign(draw_.below(4), 'a');
        return;
      case TypeClass::kTensor:
        *static_cast<Tensor*>(value) = tensor(field.axes.size());
        return;
      case TypeClass::kEnum:
        return set_integer(type, value,
                           type.enumerators[draw_.below(type.enumerators.size())].value);
      case TypeClass::kRecord:
        return fill_fields(type, value);
      case TypeClass::kList:
        type.resize(value, static_cast<std::size_t>(draw_.size(0, most_)));
        for (std::size_t i = 0; i < type.length(value); ++i)
          fill(field, *type.element, type.at(value, i));
        return;
      case TypeClass::kOptional:
      case TypeClass::kNullable:
        if (draw_.percent(30)) return type.reset(value);
        return fill(field, *type.element, type.emplace(value));
      case TypeClass::kCustom:
        return;
    }
  }

  // From the lower bound of its domain up, which is 0 where there is none; now and then one step
  // outside, or where narrow integers end.
  std::int64_t integer(const Field& field, const Type& type) {
    constexpr std::uint64_t kEdgePercent = 4;
    constexpr std::int64_t kHandles = 3;
    static constexpr Domain kAny;
    const Domain& domain = field.domain != nullptr ? *field.domain : kAny;
    const std::int64_t first = least_of(type);
    const std::int64_t last = most_of(type);
    const std::int64_t most = std::min(domain.most, last);
    const std::int64_t least = domain.least < 0 && most >= 0
                                   ? std::max<std::int64_t>(domain.least, 0)
                                   : std::max(domain.least, first);
    if (!domain.handle_of.empty()) {
      const auto known = handles_.find(domain.handle_of);
      if (known != handles_.end() && draw_.percent(80))
        return known->second[draw_.below(known->second.size())];
      return std::min(least + draw_.between(0, kHandles), most);
    }
    if (!draw_.percent(kEdgePercent)) return std::min(least + draw_.size(0, most_), most);
    if (draw_.percent(50)) return least > first ? least - 1 : least;
    if (domain.is_bounded()) return most < last ? most + 1 : most;
    return std::min(draw_.one_of<std::int64_t>({255, 256, 257, 65'535, 65'536, 65'537}), most);
  }
  static std::int64_t most_of(const Type& type) {
    const std::size_t bits = 8 * type.size - (type.is_signed ? 1 : 0);
    return bits >= 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1;
  }
  static std::int64_t least_of(const Type& type) { return type.is_signed ? -most_of(type) - 1 : 0; }

  double eighths() { return static_cast<double>(draw_.between(-64, 64)) / 8; }

  // A tag in each cell; few cells where there are many axes.
  Tensor tensor(std::size_t axes) {
    constexpr std::int64_t kMostCells = 4096;
    Shape shape(axes);
    std::int64_t cells = 1;
    for (std::int64_t& size : shape) {
      size = draw_.size(0, std::max<std::int64_t>(1, std::min(most_, kMostCells / cells)));
      cells *= std::max<std::int64_t>(size, 1);
    }
    return tagger_.pair(shape).first;
  }

  Draw draw_;
  std::int64_t most_;  // of a size
  Tagger tagger_;
  std::map<std::string_view, std::vector<std::int64_t>> handles_;  // returned, by what they are of
};

class PlainScript final : public DrawnOps {
 public:
  PlainScript(const CacheKind& kind, const PlainValues& values) : kind_(kind), values_(values) {
    weights_ = swarm(values_.draw(), std::vector<std::uint64_t>(kind.operations.size(), 10));
  }

 private:
  std::optional<Op> choose() override {
    const OpKind& kind = *kind_.operations[values_.draw().weighted(weights_)];
    return Op(kind, values_.record(*kind.arguments));
  }
  void learn(const Op& /*op*/, const Observation& seen) override { values_.learn(seen.returns); }

  const CacheKind& kind_;
  PlainValues values_;
  std::vector<std::uint64_t> weights_;
};

}  // namespace

Generator plain_generator(const CacheKind& kind) {
  return {.kind = &kind, .make = [&kind](const CaseTerms& terms) {
            PlainValues values(terms.seed, terms.scale);
            Setup setup{.profile = terms.profile, .config = values.record(*kind.config)};
            return GeneratedCase{std::move(setup), std::make_unique<PlainScript>(kind, values)};
          }};
}

}  // namespace kvo
