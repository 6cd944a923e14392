// A map from position to row for each sequence: no cells, so a get shows the rows of the sequences
// of its pass, in order of sequences and positions, and nothing else.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "examples/own_caches/own_caches.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {
namespace {

enum Fault {
  kNone,
  kSelfUnseenFromSixteen,
  kKeyWrongAtEight,
  kCopyTakesOneMore,
  kTruncateLeavesOne,
  kFirstLayerMovesAlone,
  kLongTailNotMoved,
  kValueRepeatsItsFirstHead,
  kForeignSequenceSeen,
  kSharedRowsCountTwice,
  kLateBatchRowLost,
};

using Bytes = std::vector<std::byte>;
/// K and V of a layer, as they are shown.
using Sides = std::array<Bytes, 2>;
/// The rows of one token, by layer. Sequences may share it.
using Row = std::map<std::int64_t, Sides>;
using RowPtr = std::shared_ptr<Row>;
using Sequence = std::multimap<std::int32_t, RowPtr>;

class MapCache final : public positional::Cache {
 public:
  MapCache(const CacheOptions& options, int fault)
      : Cache(options.quirks),
        shift_(options.members.front().shift),
        backend_(options.backend),
        fault_(fault) {}

 protected:
  Status do_set_config(const BackendConfig& config, std::optional<std::int64_t> member) override {
    if (member || configured_) return fail(Code::kPrecondition, "config");
    backend_ = config;
    configured_ = true;
    return {};
  }
  Status do_init(const InitOptions& arguments) override {
    const std::int64_t padding = std::max<std::int64_t>(backend_.cache_padding, 1);
    capacity_ = (arguments.max_sequences * arguments.capacity + padding - 1) / padding * padding;
    if (capacity_ > kMaxPosition || padding > kMaxPosition)
      return fail(Code::kOutOfRange, "capacity");
    storage_ = arguments.storage;
    return {};
  }
  Status do_start_forward(const Batch& batch) override {
    const auto wanted = std::max<std::int64_t>(std::ssize(batch.positions), 1);
    if (!batch.reserve && held() + wanted > capacity_) return fail(Code::kFull);
    if (!batch.reserve && batch.positions.empty()) return fail(Code::kBadShape, "no tokens");
    positions_.assign(batch.positions.begin(), batch.positions.end());
    batch_.assign(batch.sequences.begin(), batch.sequences.end());
    reserve_ = batch.reserve;
    targets_.clear();
    for (std::size_t i = 0; i < positions_.size() && !reserve_; ++i) {
      targets_.push_back(std::make_shared<Row>());
      sequences_[batch_[i]].emplace(positions_[i], targets_.back());
    }
    columns_.clear();
    for (const auto& [number, sequence] : sequences_) {
      const bool meant = std::ranges::find(batch_, number) != batch_.end();
      if (meant || (fault_ == kForeignSequenceSeen && number == 0))
        for (const auto& [position, row] : sequence)
          if (std::ranges::find(columns_, row) == columns_.end()) columns_.push_back(row);
    }
    except_.clear();
    look();
    return {};
  }
  Status do_set_causal(std::span<const std::int64_t> except, bool with_context) override {
    if (!with_context || std::ranges::equal(except, except_)) return {};
    except_.assign(except.begin(), except.end());
    look();
    return {};
  }
  Status do_set_layer(std::int64_t layer) override {
    layer_ = layer;
    return {};
  }
  Status do_put(const Rows& k, const Rows& v) override {
    if (k.tokens != std::ssize(positions_)) return fail(Code::kBadShape, "tokens");
    const std::array<Shape, 2> shapes{Shape{k.heads, k.dim}, Shape{v.heads, v.dim}};
    if (layers_.try_emplace(layer_, shapes).first->second != shapes)
      return fail(Code::kBadShape, "other rows than before");
    if (reserve_) return {};
    for (std::size_t token = 0; token < targets_.size(); ++token) {
      if (fault_ == kLateBatchRowLost && token == 6) continue;
      Sides& sides = (*targets_[token])[layer_];
      sides[0] = stored(k, token);
      sides[1] = stored(v, token);
      if (fault_ == kKeyWrongAtEight && positions_[token] == 8) sides[0].front() ^= std::byte{1};
      if (fault_ == kValueRepeatsItsFirstHead && v.heads > 1)
        std::copy_n(sides[1].begin(), sides[1].size() / static_cast<std::size_t>(v.heads),
                    sides[1].end() - static_cast<std::ptrdiff_t>(sides[1].size()) / v.heads);
    }
    return {};
  }
  Result<Shown> do_get() override {
    const auto shapes = layers_.find(layer_);
    if (shapes == layers_.end()) return fail(Code::kOutOfRange, "layer");
    for (std::size_t side = 0; side < 2; ++side) {
      const Shape& shape = shapes->second[side];
      Tensor& shown = shown_[side];
      shown = make_tensor({std::ssize(columns_), shape[0], shape[1]}, dtype_of(storage_.type));
      const std::size_t width = columns_.empty() ? 0 : shown.bytes.size() / columns_.size();
      for (std::size_t column = 0; column < columns_.size(); ++column)
        if (const auto row = columns_[column]->find(layer_); row != columns_[column]->end())
          std::ranges::copy(row->second[side],
                            shown.bytes.begin() + static_cast<std::ptrdiff_t>(column * width));
    }
    Shown shown{.k = view_of(shown_[0]), .v = view_of(shown_[1]), .mask = view_of(mask_)};
    if (backend_.permuted_v)
      for (Shape* axes : {&shown.v->shape, &shown.v->strides})
        std::rotate(axes->begin(), axes->begin() + 1, axes->end());
    return shown;
  }
  Status do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) override {
    if (source == target) {
      sequences_[target].erase(sequences_[target].lower_bound(length), sequences_[target].end());
      return {};
    }
    const Sequence& from = sequences_[source];
    const bool more = fault_ == kCopyTakesOneMore && length > 3;
    sequences_[target] = Sequence(from.begin(), from.lower_bound(length + (more ? 1 : 0)));
    return {};
  }
  [[nodiscard]] Result<bool> do_can_resume(std::int64_t sequence,
                                           std::int32_t position) const override {
    const auto found = sequences_.find(sequence);
    if (position < 0) return false;
    std::int32_t next = 0;
    if (found != sequences_.end())
      for (const auto& [held, row] : found->second)
        if (held == next && held < position) ++next;
    return next >= position;
  }
  Status do_remove(std::int64_t number, std::int32_t begin, std::int32_t end) override {
    if (begin > end) return fail(Code::kBadPosition, "begin, end");
    if (begin == end) return {};
    Sequence& sequence = sequences_[number];
    Sequence left;
    std::vector<std::pair<std::int32_t, RowPtr>> moved;
    for (const auto& [position, row] : sequence) {
      const bool spared =
          fault_ == kTruncateLeavesOne && end == kMaxPosition && position == begin && position > 2;
      if (position < begin || spared) left.emplace(position, row);
      if (position < end) continue;
      if (is_shared(row, number)) return shared_later_cell();
      const std::int64_t then = std::int64_t{position} + begin - end;
      if (then < 0 || then >= kMaxPosition) return fail(Code::kOutOfRange, "positions");
      moved.emplace_back(static_cast<std::int32_t>(then), row);
    }
    const bool skips = fault_ == kLongTailNotMoved && moved.size() > 5;
    if (!moved.empty() && !skips)
      if (Status done = move(moved, begin - end); !done) return done;
    left.insert(moved.begin(), moved.end());
    sequence = std::move(left);
    return {};
  }

 private:
  [[nodiscard]] Bytes stored(const Rows& rows, std::size_t token) const {
    const auto width = static_cast<std::size_t>(rows.heads * rows.dim);
    return stored(rows.values.subspan(token * width, width), static_cast<std::size_t>(rows.dim));
  }
  // As it is shown, head by head.
  [[nodiscard]] Bytes stored(std::span<const float> row, std::size_t dim) const {
    const std::size_t size = dtype_bytes(dtype_of(storage_.type));
    Bytes bytes(row.size() * size);
    for (std::size_t i = 0; i < row.size(); i += dim)
      show_stored(storage_, row.subspan(i, dim), bytes.data() + i * size);
    return bytes;
  }
  // Keys of rows that are at another position, in all layers or in none.
  Status move(const std::vector<std::pair<std::int32_t, RowPtr>>& moved, std::int32_t offset) {
    if (shift_ == nullptr) return fail(Code::kNotSupported, "no shift function");
    std::vector<std::pair<Bytes*, Bytes>> keys;
    const DType dtype = dtype_of(storage_.type);
    for (const auto& [layer, shapes] : layers_)
      for (const auto& [position, row] : moved) {
        if (fault_ == kFirstLayerMovesAlone && layer != layers_.begin()->first) continue;
        const auto dim = static_cast<std::size_t>(shapes[0][1]);
        Bytes& old = (*row)[layer][0];
        const std::size_t width = static_cast<std::size_t>(shapes[0][0]) * dim;
        old.resize(width * dtype_bytes(dtype));
        std::vector<float> key;
        for (std::size_t i = 0; i < width; ++i)
          key.push_back(load_element(dtype, &old[i * dtype_bytes(dtype)]));
        const std::array<std::int32_t, 1> by{offset};
        if (Status done = shift_(layer, {1, shapes[0][0], shapes[0][1]}, key, by); !done)
          return done;
        keys.emplace_back(&old, stored(key, dim));
      }
    for (auto& [old, key] : keys) *old = std::move(key);
    return {};
  }
  [[nodiscard]] bool is_shared(const RowPtr& row, std::int64_t by) const {
    return std::ranges::any_of(sequences_, [&](const auto& one) {
      return one.first != by &&
             std::ranges::any_of(one.second, [&](const auto& held) { return held.second == row; });
    });
  }
  // Rows, each once however many sequences share it.
  [[nodiscard]] std::int64_t held() const {
    std::vector<const Row*> rows;
    for (const auto& [number, sequence] : sequences_)
      for (const auto& [position, row] : sequence) rows.push_back(row.get());
    if (fault_ == kSharedRowsCountTwice) return std::ssize(rows);
    return std::ssize(std::set<const Row*>(rows.begin(), rows.end()));
  }
  // The mask of the pass.
  void look() {
    const DType dtype = dtype_of(backend_.mask_dtype);
    mask_ = make_tensor({std::ssize(positions_), std::ssize(columns_)}, dtype);
    std::size_t at = 0;
    for (std::size_t token = 0; token < positions_.size(); ++token)
      for (const RowPtr& row : columns_) {
        store_element(dtype, sees(token, row) ? 0 : -std::numeric_limits<float>::infinity(),
                      &mask_.bytes[at]);
        at += dtype_bytes(dtype);
      }
  }
  [[nodiscard]] bool sees(std::size_t token, const RowPtr& row) const {
    const bool ahead =
        std::ranges::find(except_, static_cast<std::int64_t>(token)) != except_.end();
    const std::int32_t last = positions_[token];
    const auto sequence = sequences_.find(batch_[token]);
    const bool foreign = fault_ == kForeignSequenceSeen && batch_[token] == 3;
    if (foreign && sequences_.contains(0) &&
        std::ranges::any_of(sequences_.at(0), [&](const auto& one) { return one.second == row; }))
      return true;
    if (sequence == sequences_.end()) return false;
    return std::ranges::any_of(sequence->second, [&](const auto& one) {
      if (one.second != row) return false;
      const bool own = fault_ != kSelfUnseenFromSixteen || last < 16 || one.first < last;
      return ahead || (one.first <= last && own);
    });
  }

  Shift shift_;
  BackendConfig backend_;
  int fault_;
  bool configured_ = false;
  std::int64_t capacity_ = 0;  // rows
  StorageFormat storage_;
  std::map<std::int64_t, Sequence> sequences_;
  std::map<std::int64_t, std::array<Shape, 2>> layers_;
  // The pass.
  std::vector<std::int32_t> positions_;
  std::vector<std::int64_t> batch_;
  std::vector<std::int64_t> except_;
  std::vector<RowPtr> targets_;
  std::vector<RowPtr> columns_;
  bool reserve_ = false;
  std::int64_t layer_ = 0;
  Tensor mask_;
  std::array<Tensor, 2> shown_;
};

Subject make_own(std::string variant, int fault) {
  Subject made = make_subject(
      kind_of(MemberKind::kCausal), std::move(variant), "a map from position to row",
      [fault](const CacheOptions& options) -> Result<std::unique_ptr<positional::Cache>> {
        return std::make_unique<MapCache>(options, fault);
      });
  made.survives_failed_allocation = false;
  return made;
}

}  // namespace
}  // namespace kvo::positional

namespace own {

Cache positional_map() {
  return {{"self_unseen_from_sixteen", "key_wrong_at_eight", "copy_takes_one_more",
           "truncate_leaves_one", "first_layer_moves_alone", "long_tail_not_moved",
           "value_repeats_its_first_head", "foreign_sequence_seen", "shared_rows_count_twice",
           "late_batch_row_lost"},
          kvo::positional::make_own};
}

}  // namespace own
