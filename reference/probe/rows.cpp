#include "reference/probe/rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

namespace kvo::probe {
namespace {

std::uint16_t cell_bit(std::size_t layer, std::size_t head) {
  return static_cast<std::uint16_t>(1U << (Shape::kHeads * layer + head));
}

// Calls `visit` with layer and head of each cell of a part.
template <class Visit>
void each_cell(const Part& part, const Visit& visit) {
  for (std::size_t layer = 0; layer < Shape::kLayers; ++layer)
    for (std::size_t head = 0; head < Shape::kHeads; ++head)
      if (part.layer.value_or(layer) == layer && part.head.value_or(head) == head)
        visit(layer, head);
}

}  // namespace

void Coverage::add(std::size_t layer, std::size_t head, std::size_t position) {
  if (position >= heads_.size()) heads_.resize(position + 1);
  heads_[position] |= cell_bit(layer, head);
}

bool Coverage::has(std::size_t layer, std::size_t head, std::size_t position) const {
  return position < heads_.size() && (heads_[position] & cell_bit(layer, head)) != 0;
}

std::size_t Coverage::cells() const {
  std::size_t count = 0;
  for (const std::uint16_t heads : heads_) count += static_cast<std::size_t>(std::popcount(heads));
  return count;
}

void FoundCells::add(Bit sign, const Read& values) {
  if (sign == 0) return;
  std::optional<Read>& found = by_sign_[sign > 0 ? 1 : 0];
  if (!found) found = values;
  for (std::size_t bit = 0; bit < Shape::kBits; ++bit)
    if ((*found)[bit] != values[bit]) (*found)[bit] = kUnknown;
}

Read FoundCells::read(bool sees_sink) const {
  constexpr int kMost = 127;
  Read read{};
  for (std::size_t bit = 0; bit < Shape::kBits; ++bit) {
    const int plus = by_sign_[1].value_or(Read{})[bit];
    const int minus = by_sign_[0].value_or(Read{})[bit];
    const int both = std::clamp(plus - minus, -kMost, kMost);
    const bool known = plus != kUnknown && minus != kUnknown;
    read[bit] = static_cast<std::int8_t>(known && (sees_sink || both <= -kWhole) ? both : kUnknown);
  }
  return read;
}

PerHead<Read> values_of(const Meaning& meaning, std::size_t layer, const PerHead<Read>& reads) {
  PerHead<Read> values{};
  for (std::size_t head = 0; head < Shape::kHeads; ++head)
    for (std::size_t bit = 0; bit < Shape::kBits; ++bit)
      values[head][bit] = layer == 0 ? static_cast<std::int8_t>(kWhole * meaning.bits[head][bit])
                                     : reads[(head + 1) % Shape::kHeads][bit];
  return values;
}

Token token_after(const Meaning& meaning, const PerHead<Read>& reads) {
  Token value = 0;
  for (std::size_t head = 0; head < Shape::kHeads; ++head)
    for (std::size_t bit = 0; bit < Shape::kBits; ++bit)
      if (reads[head][bit] > kWhole / 2) value |= 1U << (Shape::kBits * head + bit);
  return kFirstValue + kValues * meaning.token_class + value;
}

Rows::Rows(const Rows& from, std::size_t count)
    : tables_(from.tables_),
      window_(from.window_),
      rows_(from.rows_.begin(),
            from.rows_.begin() + static_cast<std::ptrdiff_t>(std::min(count, from.size()))),
      sinks_(from.sinks_),
      strays_(from.strays_) {
  crop(count);
}

bool Rows::sees(std::size_t position, std::size_t place) const {
  return place <= position && (!window_ || position - place < *window_);
}

Read Rows::read(std::size_t layer, std::size_t head, std::size_t position,
                std::size_t distance) const {
  FoundCells found;
  const auto find = [&](std::size_t place, Bit sign) {
    if (sees(position, place)) found.add(sign, rows_[place].values[layer][head]);
  };
  if (distance <= position) find(position - distance, rows_[position - distance].sign[layer][head]);
  for (auto [one, end] = strays_.equal_range(position - distance); one != end; ++one)
    if (one->second.layer == layer && one->second.head == head)
      find(one->second.place, one->second.sign);
  return found.read(rows_[position].sees_sink);
}

void Rows::extend(std::span<const Token> tokens, Coverage* coverage) {
  for (const Token token : tokens) {
    const Meaning& meaning = (*tables_)[token];
    const std::size_t position = rows_.size();
    if (is_sink(token)) sinks_.push_back(position);
    rows_.push_back({.values = {},
                     .sign = meaning.sign,
                     .last_reads = {},
                     .token = token,
                     .sees_sink = !sinks_.empty() && sees(position, sinks_.back()),
                     .has_stray = false});
    PerHead<Read> reads{};
    for (std::size_t layer = 0; layer < Shape::kLayers; ++layer) {
      rows_.back().values[layer] = values_of(meaning, layer, reads);
      for (std::size_t head = 0; head < Shape::kHeads; ++head) {
        const std::size_t distance = meaning.look_back[head];
        reads[head] = {};
        if (!meaning.is_value) continue;
        reads[head] = read(layer, head, position, distance);
        if (coverage != nullptr && distance <= position && sees(position, position - distance) &&
            rows_[position - distance].sign[layer][head] != 0)
          coverage->add(layer, head, position - distance);
      }
    }
    rows_.back().last_reads = reads;
  }
}

Token Rows::next() const {
  return token_after((*tables_)[rows_.back().token], rows_.back().last_reads);
}

Token Rows::certain_bits() const {
  const Row& last = rows_.back();
  Token certain = 0;
  for (std::size_t head = 0; head < Shape::kHeads; ++head)
    for (std::size_t bit = 0; bit < Shape::kBits; ++bit) {
      const int read = last.last_reads[head][bit];
      if (read != kUnknown && std::abs(read - kWhole / 2) > kWhole / 8)
        certain |= 1U << (Shape::kBits * head + bit);
    }
  return certain;
}

std::vector<Token> Rows::generate(std::size_t count, Coverage* coverage) {
  std::vector<Token> generated(count);
  for (Token& token : generated) {
    token = next();
    extend({&token, 1}, coverage);
  }
  return generated;
}

void Rows::crop(std::size_t count) {
  if (count < rows_.size()) rows_.resize(count);
  std::erase_if(sinks_, [&](std::size_t place) { return place >= count; });
  std::erase_if(strays_, [&](const auto& stray) { return stray.second.place >= count; });
}

void Rows::shift_out(std::size_t first, std::size_t last) {
  evict(first, last);
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(first),
              rows_.begin() + static_cast<std::ptrdiff_t>(last));
  for (std::size_t& place : sinks_)
    if (place >= last) place -= last - first;
  std::multimap<std::size_t, Stray> turned;
  for (const auto& [position, stray] : strays_) {
    const std::size_t down = stray.place >= last ? last - first : 0;
    Stray moved = stray;
    moved.place -= down;
    turned.emplace(position - std::min(position, down), moved);
  }
  strays_ = std::move(turned);
}

void Rows::evict(std::size_t first, std::size_t last) {
  for (std::size_t place = first; place < last; ++place) {
    lose_keys(place, {});
    rows_[place].values = {};
  }
}

// A row without K is found by no head.
void Rows::lose_keys(std::size_t place, const Part& part) {
  each_cell(part, [&](std::size_t layer, std::size_t head) { rows_[place].sign[layer][head] = 0; });
  if (rows_[place].has_stray)
    std::erase_if(strays_, [&](const auto& one) {
      const Stray& stray = one.second;
      return stray.place == place && part.layer.value_or(stray.layer) == stray.layer &&
             part.head.value_or(stray.head) == stray.head;
    });
  if (!part.layer && !part.head) std::erase(sinks_, place);
}

void Rows::overwrite(std::size_t position, const Rows& from, std::size_t source, const Part& part) {
  const Row row = from.rows_[source];
  const bool stays = part.key_position.value_or(position) == position;
  const bool is_sink = std::ranges::binary_search(from.sinks_, source);
  if (part.keys) lose_keys(position, part);
  if (part.keys && is_sink && !part.layer && !part.head)
    sinks_.insert(std::ranges::lower_bound(sinks_, position), position);
  Row& to = rows_[position];
  each_cell(part, [&](std::size_t layer, std::size_t head) {
    const std::size_t from_layer = part.from_layer.value_or(layer);
    const std::size_t from_head = part.from_head.value_or(head);
    if (const Bit sign = row.sign[from_layer][from_head]; part.keys && sign != 0) {
      if (stays) to.sign[layer][head] = sign;
      if (!stays) strays_.emplace(*part.key_position, Stray{position, layer, head, sign});
      to.has_stray |= !stays;
    }
    if (!part.values) return;
    for (std::size_t bit = 0; bit < Shape::kBits; ++bit) {
      const float overlap = tables_->overlap(Shape::kHeads * layer + head,
                                             Shape::kHeads * from_layer + from_head, bit);
      const std::int8_t value = row.values[from_layer][from_head][bit];
      if (value != kUnknown)
        to.values[layer][head][bit] =
            static_cast<std::int8_t>(std::lround(overlap * static_cast<float>(value)));
      else
        to.values[layer][head][bit] = kUnknown;
    }
  });
}

}  // namespace kvo::probe
