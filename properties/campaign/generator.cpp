#include "properties/campaign/generator.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "properties/campaign/script_generator.hpp"
#include "properties/runner/pulse.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo {

std::size_t Draw::weighted(const std::vector<std::uint64_t>& weights) {
  std::uint64_t total = 0;
  for (const std::uint64_t weight : weights) total += weight;
  if (total == 0) return weights.size() - 1;
  std::uint64_t at = below(total);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (at < weights[i]) return i;
    at -= weights[i];
  }
  return weights.size() - 1;
}

std::int64_t Draw::size(std::int64_t low, std::int64_t most) {
  constexpr std::uint64_t kFewPercent = 75;
  constexpr std::int64_t kFew = 5;
  if (percent(kFewPercent) || most - low <= kFew) return between(low, std::min(most, low + kFew));
  return edge(low, most);
}

std::int64_t Draw::edge(std::int64_t low, std::int64_t most) {
  std::int64_t first = 2;
  while ((std::int64_t{2} << first) <= low) ++first;
  std::int64_t last = first;
  while ((std::int64_t{2} << last) <= most) ++last;
  constexpr std::uint64_t kFartherPercent = 20;
  const std::int64_t scale = between(first, last);
  const std::int64_t beyond =
      percent(kFartherPercent) ? std::int64_t{1} << (scale / 2) : between(-1, 1);
  return std::clamp((std::int64_t{1} << scale) + beyond, std::min(low, most), most);
}

void DrawnOps::follow(const Subject& reference, const Setup& setup, Scale scale) {
  reference_ = &reference;
  setup_ = setup;
  is_long_ = scale == Scale::kLong;
}

std::optional<Op> DrawnOps::of_long_life() {
  if (again_ == 0) {
    auto op = operations_ + kAskedAgain < kLongLife ? choose() : std::nullopt;
    if (op && first_.size() < kAskedAgain) first_.push_back(*op);
    if (op) return op;
    std::stable_partition(first_.begin(), first_.end(),
                          [](const Op& one) { return !one.kind().returns->fields.empty(); });
  }
  return again_ < first_.size() ? std::optional(first_[again_++]) : std::nullopt;
}

std::optional<Op> DrawnOps::next() {
  return given_ < ahead_.size() ? ahead_[given_++] : next_drawn();
}

std::span<const Op> DrawnOps::ahead(std::size_t most) {
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(given_));
  given_ = 0;
  while (ahead_.size() < most) {
    auto op = next_drawn();
    if (!op) break;
    ahead_.push_back(*std::move(op));
  }
  return std::span(ahead_).first(std::min(most, ahead_.size()));
}

std::optional<Op> DrawnOps::next_drawn() {
  KVO_CHECK(reference_ != nullptr);
  if (session_ == nullptr && !ended_) {
    tell(*reference_, 0);
    if (auto opened = reference_->open(setup_))
      session_ = std::move(*opened);
    else
      ended_ = true;
  }
  constexpr int kMostLeftOut = 64;  // one after the other
  for (int left_out = 0; !ended_; ++left_out) {
    bool leaves_out = false;
    auto op = drawn(leaves_out);
    if (!op || !leaves_out || left_out == kMostLeftOut) return op;
  }
  return std::nullopt;
}

std::optional<Op> DrawnOps::drawn(bool& leaves_out) {
  auto op = is_long_ ? of_long_life() : choose();
  if (!op) return op;
  leaves_out = outside_ && outside_(*op, nullptr);
  if (leaves_out) return op;
  tell(*reference_, operations_++, &op->kind());
  recorded_marks = &labels_;
  const Observation seen = session_->apply(*op, probe_);
  recorded_marks = nullptr;
  ended_ = seen.failed_with(Code::kOutOfMemory) || seen.failed_with(Code::kThrew) ||
           seen.failed_with(Code::kDied);
  learn(*op, seen);
  leaves_out = outside_ && seen.error && outside_(*op, &*seen.error);
  return op;
}

void DrawnOps::observe(const Op& /*op*/, const Observation& /*seen*/, Labels& labels) {
  if (std::exchange(shown_, labels_.size()) == labels_.size()) return;
  labels.insert(labels_.begin(), labels_.end());
}

OddValues::OddValues(std::uint64_t seed)
    : draw_(case_seed(seed, 0)), percent_(draw_.one_of<std::uint64_t>({0, 40})) {}

void OddValues::put_into(std::span<float> cells) {
  if (!cells.empty() && draw_.percent(percent_)) cells[draw_.below(cells.size())] = next();
}

float OddValues::next() {
  constexpr std::uint32_t kQuietNan = 0x7FC00000U;
  if (draw_.percent(40)) return -0.0F;
  if (draw_.percent(80)) return std::bit_cast<float>(kQuietNan + ++nans_);
  return draw_.one_of(
      {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::denorm_min()});
}

std::vector<std::uint64_t> swarm(Draw& draw, std::vector<std::uint64_t> usual,
                                 std::uint64_t always_first) {
  std::vector<bool> always(usual.size());
  for (std::size_t i = 0; i < usual.size(); ++i) always[i] = i < always_first;
  return swarm(draw, std::move(usual), always);
}

std::vector<std::uint64_t> swarm(Draw& draw, std::vector<std::uint64_t> usual,
                                 const std::vector<bool>& always) {
  constexpr std::uint64_t kOffPercent = 20;
  constexpr std::uint64_t kWildPercent = 15;
  constexpr std::uint64_t kWild = 6;
  for (std::size_t i = 0; i < usual.size(); ++i) {
    if (draw.percent(kWildPercent)) usual[i] *= kWild;
    if (draw.percent(kOffPercent) && !always[i]) usual[i] = 0;
  }
  return usual;
}

std::uint64_t case_seed(std::uint64_t seed, std::uint64_t index) {
  // splitmix64: neighbouring indices give unrelated seeds.
  std::uint64_t x = seed + (index + 1) * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

Schedule schedule_of(std::uint64_t own_seed) {
  return Schedule(own_seed >> 33U);
}

Generator with_storage_labels(Generator made) {
  const auto labels = label_texts_but<StorageLabel>({});
  for (auto* all : {&made.original_labels, &made.documented_labels})
    all->insert(all->end(), labels.begin(), labels.end());
  return made;
}

StorageFormat draw_narrow_storage(Draw& draw) {
  StorageFormat format{draw.one_of({StorageType::kF16, StorageType::kBf16, StorageType::kF8E4m3,
                                    StorageType::kF8E5m2, StorageType::kQ8, StorageType::kQ8,
                                    StorageType::kQ4, StorageType::kQ4})};
  if (!in_groups(format.type)) return format;
  if (draw.percent(50)) format.group = draw.one_of({64, 128});
  format.offset = draw.percent(40);
  return format;
}

void fill_oddly(Draw& draw, std::span<float> row) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::size_t kind = draw.weighted({3, 2, 1, 2, 2, 2});
  for (float& value : row) {
    const float unit = static_cast<float>(draw.below(1U << 12U)) * 0x1p-12F;
    if (kind == 0) value = 100 + unit;
    if (kind == 1) value = (2 * unit - 1) * 0x1p-18F;
    if (kind == 2) value = (2 * unit - 1) * 0x1p-130F;
    if (kind == 3) value = draw.one_of({0.0F, -0.0F, 0.0F, -0.0F, 1.0F, -0.5F});
    if (kind >= 4) value = 2 * unit - 1;
  }
  if (row.empty() || kind < 4) return;
  float& one = row[draw.below(row.size())];
  if (kind == 4) one = draw.one_of({-500.0F, 70'000.0F, 1e7F, -1e7F});
  if (kind == 5)
    one = draw.one_of({std::bit_cast<float>(0x7FC12345U), std::bit_cast<float>(0xFF812345U),
                       kInfinity, -kInfinity});
}

void fill_oddly(Draw& draw, Tensor& rows) {
  const auto size = static_cast<std::size_t>(rows.shape.back());
  const std::span<float> all = rows.floats();
  for (std::size_t i = 0; i < all.size(); i += size) fill_oddly(draw, all.subspan(i, size));
}

}  // namespace kvo
