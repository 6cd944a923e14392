// optimized/snapshot/prefix_counted_layer.hpp: a layer that counts tokens and keeps none, so that
// tests and benchmarks of a prefix trie see the trie alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "reference/contract/values/check.hpp"
#include "reference/snapshot/cache.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo::optimized {

/// Tokens [from, to), four bytes each.
class CountedSnapshot final : public snapshot::Snapshot {
 public:
  CountedSnapshot(std::int64_t from, std::int64_t to) : from_(from), to_(to) {}
  [[nodiscard]] snapshot::Content content() const override {
    snapshot::Content content{.from = from_, .to = to_, .first = {}, .second = {}};
    content.first.view.shape = {1, 1, to_ - from_, 1};
    return content;
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] Status close() override {
    KVO_CHECK(!closed_);
    closed_ = true;
    return {};
  }

 private:
  std::int64_t from_;
  std::int64_t to_;
  bool closed_ = false;
};

/// Answers as the cache `kv` would (MR-10 to MR-17).
class CountedLayer final : public snapshot::Cache {
 public:
  /// What the model does after begin(): the layers of a trie come to hold `tokens` more.
  static void feed(const snapshot::PrefixTrie& trie, std::int64_t tokens) {
    for (const auto& layer : trie.layers()) static_cast<CountedLayer&>(*layer).offset_ += tokens;
  }

  [[nodiscard]] Result<std::shared_ptr<const snapshot::Pair>> update(
      const snapshot::Array& k, const snapshot::Array& v) override {
    offset_ += snapshot::tokens_of(k);
    return std::make_shared<const snapshot::Pair>(snapshot::Pair{k, v});
  }
  [[nodiscard]] std::optional<snapshot::State> state() const override { return std::nullopt; }
  [[nodiscard]] std::int64_t offset() const override { return offset_; }
  void free() override { offset_ = 0; }

  [[nodiscard]] Result<snapshot::SnapshotPtr> snapshot(std::int64_t from) override {
    if (offset_ <= from) return snapshot::SnapshotPtr();
    return snapshot::SnapshotPtr(std::make_shared<CountedSnapshot>(from, offset_));
  }
  [[nodiscard]] Result<bool> restore(const snapshot::SnapshotPtr& snapshot,
                                     std::int64_t target) override {
    const auto held = snapshot ? snapshot->content() : snapshot::Content{.first = {}, .second = {}};
    if (target < held.from.value_or(0) || target > held.to.value_or(offset_)) return false;
    if (offset_ < held.from.value_or(0)) return false;
    offset_ = target;
    return true;
  }
  [[nodiscard]] Result<snapshot::SnapshotPtr> merge(const snapshot::SnapshotPtr& parent,
                                                    const snapshot::SnapshotPtr& child) override {
    if (!parent || !child) return parent ? parent : child;
    const snapshot::Content before = parent->content();
    const snapshot::Content behind = child->content();
    if (before.to != behind.from) return fail(Code::kBadPosition, "they do not adjoin");
    KVO_CHECK(parent->close() && child->close());
    return snapshot::SnapshotPtr(std::make_shared<CountedSnapshot>(*before.from, *behind.to));
  }
  [[nodiscard]] Result<std::pair<snapshot::SnapshotPtr, snapshot::SnapshotPtr>> split(
      const snapshot::SnapshotPtr& snapshot, std::int64_t at) override {
    using Halves = std::pair<snapshot::SnapshotPtr, snapshot::SnapshotPtr>;
    const snapshot::Content whole = snapshot->content();
    if (at <= *whole.from) return Halves(nullptr, snapshot);
    if (at >= *whole.to) return Halves(snapshot, nullptr);
    KVO_CHECK(snapshot->close());
    return Halves(std::make_shared<CountedSnapshot>(*whole.from, at),
                  std::make_shared<CountedSnapshot>(at, *whole.to));
  }

 private:
  std::int64_t offset_ = 0;
};

}  // namespace kvo::optimized
