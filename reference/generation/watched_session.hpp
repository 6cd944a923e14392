// reference/generation/watched_session.hpp: what operations show of the work, seen at model and
// tokenizer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/generation/model.hpp"
#include "reference/generation/operations.hpp"
#include "reference/generation/tokenizer.hpp"

namespace kvo::generation {

/// The forwards of an operation, and which tokens each of them led to.
class StepLog {
 public:
  /// `who`: which model of several, with a blank behind it.
  void forward(std::string_view who, std::span<const std::int64_t> ids, std::int64_t past);
  void failed() { steps_.back().outcome = "an error"; }
  void chose(std::int64_t token);
  void clear() { steps_.clear(); }
  [[nodiscard]] std::span<const WorkStep> steps() const { return steps_; }

 private:
  std::vector<WorkStep> steps_;
};

/// A model whose forwards are written down, and that tells of each one that has ended.
class WatchedModel final : public Model {
 public:
  /// `who`: which model of several, with a blank behind it. The log outlives the model.
  WatchedModel(std::unique_ptr<Model> model, StepLog& steps, std::string_view who = "")
      : model_(std::move(model)), steps_(&steps), who_(who) {}

  [[nodiscard]] Result<Tensor> forward(std::span<const std::int64_t> ids,
                                       provider::Provider& cache) override {
    Forward& seen = forwards_.emplace_back(
        Forward{.tokens = Ids(ids.begin(), ids.end()), .past = cache.seq_len()});
    steps_->forward(who_, ids, seen.past);
    auto logits = model_->forward(ids, cache);
    if (!logits) {
      seen.error = true;
      steps_->failed();
    }
    if (ended_) ended_();
    return logits;
  }
  /// Forgets what it has seen; `ended` is called behind each forward from now on.
  void watch(std::function<void()> ended) {
    forwards_.clear();
    ended_ = std::move(ended);
  }
  /// Nobody is told any more.
  void watch_ended() { ended_ = nullptr; }
  [[nodiscard]] const std::vector<Forward>& forwards() const { return forwards_; }

 private:
  std::unique_ptr<Model> model_;
  StepLog* steps_;
  std::string_view who_;
  std::vector<Forward> forwards_;
  std::function<void()> ended_;
};

/// A tokenizer whose decodings are counted.
class WatchedTokenizer final : public Tokenizer {
 public:
  explicit WatchedTokenizer(std::unique_ptr<Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  [[nodiscard]] Result<Ids> encode(std::string_view text) override {
    return tokenizer_->encode(text);
  }
  [[nodiscard]] Result<std::string> decode(std::span<const std::int64_t> ids) override {
    ++calls_;
    last_.assign(ids.begin(), ids.end());
    return tokenizer_->decode(ids);
  }
  void watch() {
    calls_ = 0;
    last_.clear();
  }
  [[nodiscard]] std::int64_t calls() const { return calls_; }
  [[nodiscard]] const Ids& last() const { return last_; }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  std::int64_t calls_ = 0;
  Ids last_;
};

/// A context that is cancelled behind the n-th forward that counts; at once for n = 0.
class Countdown {
 public:
  explicit Countdown(std::optional<std::int64_t> forwards)
      : left_(forwards.value_or(-1)), context_{.cancelled = left_ == 0} {}

  void forward_ended() {
    if (left_ > 0 && --left_ == 0) context_.cancelled = true;
  }
  void cancel() { context_.cancelled = true; }
  [[nodiscard]] const Context& context() const { return context_; }

 private:
  std::int64_t left_;
  Context context_;
};

}  // namespace kvo::generation
