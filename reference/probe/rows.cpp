#include "reference/probe/rows.hpp"

#include <algorithm>
#include <bit>

namespace kvo::probe {
namespace {

std::uint16_t cell_bit(std::size_t layer, std::size_t head) {
  return static_cast<std::uint16_t>(1U << (Shape::kHeads * layer + head));
}

template <class PerCell>
void copy_cells(const PerCell& from, PerCell& to, const Part& part) {
  for (std::size_t layer = 0; layer < Shape::kLayers; ++layer)
    for (std::size_t head = 0; head < Shape::kHeads; ++head)
      if (part.layer.value_or(layer) == layer && part.head.value_or(head) == head)
        to[layer][head] = from[layer][head];
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

bool Rows::can_read(std::size_t position, std::size_t distance) const {
  return distance <= position && (!window_ || distance < *window_);
}

void Rows::extend(std::span<const Token> tokens, Coverage* coverage) {
  for (const Token token : tokens) {
    const Meaning& meaning = (*tables_)[token];
    const std::size_t position = rows_.size();
    Row& row =
        rows_.emplace_back(Row{.bits = {}, .sign = meaning.sign, .last_reads = {}, .token = token});
    PerHead<Bits> reads{};
    for (std::size_t layer = 0; layer < Shape::kLayers; ++layer) {
      for (std::size_t head = 0; head < Shape::kHeads; ++head)
        row.bits[layer][head] = layer == 0 ? meaning.bits[head] : reads[(head + 1) % Shape::kHeads];
      for (std::size_t head = 0; head < Shape::kHeads; ++head) {
        const std::size_t distance = meaning.look_back[head];
        reads[head] = {};
        if (!meaning.is_value || !can_read(position, distance)) continue;
        const Row& read = rows_[position - distance];
        for (std::size_t bit = 0; bit < Shape::kBits; ++bit)
          reads[head][bit] = static_cast<Bit>(read.sign[layer][head] * read.bits[layer][head][bit]);
        if (coverage != nullptr && read.sign[layer][head] != 0)
          coverage->add(layer, head, position - distance);
      }
    }
    row.last_reads = reads;
  }
}

Token Rows::next() const {
  const Row& last = rows_.back();
  Token value = 0;
  for (std::size_t head = 0; head < Shape::kHeads; ++head)
    for (std::size_t bit = 0; bit < Shape::kBits; ++bit)
      if (last.last_reads[head][bit] > 0) value |= 1U << (Shape::kBits * head + bit);
  return kFirstValue + kValues * (*tables_)[last.token].token_class + value;
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
}

void Rows::shift_out(std::size_t first, std::size_t last) {
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(first),
              rows_.begin() + static_cast<std::ptrdiff_t>(last));
}

void Rows::evict(std::size_t first, std::size_t last) {
  for (std::size_t position = first; position < last; ++position) {
    rows_[position].sign = {};  // a row without K is found by no head
    rows_[position].bits = {};
  }
}

void Rows::overwrite(std::size_t position, const Rows& from, std::size_t source, const Part& part) {
  if (part.keys) copy_cells(from.rows_[source].sign, rows_[position].sign, part);
  if (part.values) copy_cells(from.rows_[source].bits, rows_[position].bits, part);
}

}  // namespace kvo::probe
