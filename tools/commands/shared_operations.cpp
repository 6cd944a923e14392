#include "tools/commands/shared_operations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reference/cells/operations.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/positional/operations.hpp"
#include "reference/provider/paged.hpp"
#include "reference/snapshot/operations.hpp"

namespace kvo::tools {
namespace {

using Tokens = std::vector<std::int64_t>;

/// A cache of one kind on its way through a script.
class SharedSession {
 public:
  SharedSession(const Subject& subject, const Setup& setup) {
    if (auto opened = subject.open(setup)) session_ = std::move(*opened);
  }
  SharedSession(const SharedSession&) = delete;
  SharedSession& operator=(const SharedSession&) = delete;
  virtual ~SharedSession() = default;

  [[nodiscard]] SharedAnswer answer(const SharedScript& script) {
    SharedAnswer answer;
    if (session_ == nullptr) return {"not opened"};
    begin();
    for (const SharedOp& op : script) {
      const auto done = apply(op);
      answer.outcome = done ? *done : "not offered";
      if (!done) return answer;
    }
    if (append(1) == "ok") answer.seen = seen();
    answer.ops = std::move(ops_);
    return answer;
  }

 protected:
  virtual void begin() = 0;
  // Each returns "ok" or a code; nothing: there is no such operation.
  virtual std::string append(std::int64_t n) = 0;
  virtual std::optional<std::string> cut_to(std::int64_t n) = 0;
  virtual std::optional<std::string> drop_first(std::int64_t n) = 0;
  // What the last token sees, itself not counted.
  virtual Tokens seen() = 0;

  template <class T>
  const Observation& ask(T operation) {
    ops_.push_back(Op::of(std::move(operation)));
    seen_ = session_->apply(ops_.back(), probe_);
    return seen_;
  }
  static std::string outcome(const Observation& seen) {
    return seen.error ? seen.error->code_text() : "ok";
  }
  // The next n tokens as rows of that shape, whose last axes are 1.
  [[nodiscard]] Tensor rows(Shape shape, std::int64_t n) const {
    std::vector<float> tags(static_cast<std::size_t>(std::max<std::int64_t>(n, 0)));
    std::iota(tags.begin(), tags.end(), static_cast<float>(appended_));
    return tensor_of(std::move(shape), tags);
  }
  // Without the last one; a ring shows them in the order of its slots.
  [[nodiscard]] Tokens tokens_of(const Tensor& rows) const {
    Tokens tokens;
    for (const float tag : rows.floats()) tokens.push_back(static_cast<std::int64_t>(tag));
    std::erase(tokens, appended_);
    std::ranges::sort(tokens);
    return tokens;
  }

  std::int64_t appended_ = 0;  ///< tokens so far
  std::int64_t length_ = 0;    ///< tokens that the caller believes to be there

 private:
  std::optional<std::string> apply(const SharedOp& op) {
    std::optional<std::string> done;
    if (op.kind == SharedOpKind::kAppend) done = append(op.n);
    if (op.kind == SharedOpKind::kCutTo) done = cut_to(op.n);
    if (op.kind == SharedOpKind::kDropFirst) done = drop_first(op.n);
    if (done != "ok") return done;
    if (op.kind == SharedOpKind::kAppend) length_ += op.n;
    if (op.kind == SharedOpKind::kAppend) appended_ += op.n;
    if (op.kind == SharedOpKind::kCutTo) length_ = std::clamp<std::int64_t>(op.n, 0, length_);
    if (op.kind == SharedOpKind::kDropFirst) length_ -= std::clamp<std::int64_t>(op.n, 0, length_);
    return done;
  }

  std::unique_ptr<Session> session_;
  Probe probe_;
  std::vector<Op> ops_;
  Observation seen_;
};

constexpr std::int64_t kRoom = 64;  // tokens that every cache has room for

class SharedSnapshot final : public SharedSession {
 public:
  using SharedSession::SharedSession;
  static Setup setup(Profile profile, std::optional<std::int64_t> window) {
    return {.profile = profile, .config = Record::of(snapshot::RowsConfig{.max_size = window})};
  }

 protected:
  void begin() override { (void)ask(snapshot::New{}); }
  std::string append(std::int64_t n) override {
    const Tensor tokens = rows({1, 1, n, 1}, n);
    const Observation& done = ask(snapshot::Update{.k = tokens, .v = tokens});
    if (!done.error) held_ = done.as<snapshot::UpdateReturns>().v;
    return outcome(done);
  }
  // Without a snapshot, if the cache can.
  std::optional<std::string> cut_to(std::int64_t n) override {
    const Observation& done = ask(snapshot::Restore{.target = n});
    if (!done.error && !done.as<snapshot::RestoreReturns>().ok) return "refused";
    return outcome(done);
  }
  std::optional<std::string> drop_first(std::int64_t /*n*/) override { return std::nullopt; }
  Tokens seen() override { return tokens_of(held_); }

 private:
  Tensor held_;
};

class SharedPaged final : public SharedSession {
 public:
  using SharedSession::SharedSession;
  static Setup setup(Profile profile, std::optional<std::int64_t> /*window*/) {
    return {.profile = profile};
  }

 protected:
  void begin() override {
    (void)ask(
        provider::NewPool{.num_layers = 1, .block_size = 2, .head_dim = 1, .max_memory_mb = 1});
    (void)ask(provider::NewPaged{.num_layers = 1});
  }
  std::string append(std::int64_t n) override {
    const Tensor tokens = rows({1, n, 1}, n);
    return outcome(ask(provider::Update{.layer = 0, .k = tokens, .v = tokens}));
  }
  std::optional<std::string> cut_to(std::int64_t n) override {
    return outcome(ask(provider::Truncate{.n = n}));
  }
  std::optional<std::string> drop_first(std::int64_t /*n*/) override { return std::nullopt; }
  Tokens seen() override {
    const Observation& got = ask(provider::Get{.layer = 0});
    return got.error || !got.as<provider::Found>().v ? Tokens()
                                                     : tokens_of(*got.as<provider::Found>().v);
  }
};

class SharedPositional final : public SharedSession {
 public:
  using SharedSession::SharedSession;
  static Setup setup(Profile profile, std::optional<std::int64_t> window) {
    positional::CacheConfig config{
        .shift = Nullable<positional::ShiftConfig>(positional::ShiftConfig{.scale = 0.0F})};
    if (window) config.window = static_cast<std::int32_t>(*window);
    return {.profile = profile, .config = Record::of(std::move(config))};
  }

 protected:
  void begin() override {
    (void)ask(positional::Init{.max_sequences = 1, .capacity = kRoom, .max_batch = kRoom});
    (void)ask(positional::SetLayer{.layer = 0});
  }
  std::string append(std::int64_t n) override {
    positional::StartForward pass{.positions = {}, .seqs = {}, .reserve = false};
    for (std::int64_t i = 0; i < n; ++i) {
      pass.positions.push_back(static_cast<std::int32_t>(length_ + i));
      pass.seqs.push_back(0);
    }
    std::string done = outcome(ask(std::move(pass)));
    if (done != "ok") return done;
    const Tensor tokens = rows({n, 1, 1}, n);
    return outcome(ask(positional::Put{.k = tokens, .v = tokens}));
  }
  std::optional<std::string> cut_to(std::int64_t n) override {
    return removed(n, positional::kMaxPosition);
  }
  std::optional<std::string> drop_first(std::int64_t n) override { return removed(0, n); }
  Tokens seen() override {
    const Observation& got = ask(positional::Get{});
    if (got.error) return {};
    const auto& shown = got.as<positional::GetReturns>();
    const Tensor mask = *shown.mask;
    const std::span<const float> v = shown.v->floats();
    Tokens tokens;
    const std::span<const float> last = mask.floats().last(v.size());
    for (std::size_t cell = 0; cell < v.size(); ++cell)
      if (!std::isinf(last[cell])) tokens.push_back(static_cast<std::int64_t>(v[cell]));
    std::erase(tokens, appended_);
    std::ranges::sort(tokens);
    return tokens;
  }

 private:
  std::string removed(std::int64_t begin, std::int64_t end) {
    return outcome(ask(positional::Remove{.seq = 0,
                                          .begin = static_cast<std::int32_t>(begin),
                                          .end = static_cast<std::int32_t>(end)}));
  }
};

// Cells show no rows of tokens: which token each cell got is what `decode` says.
class SharedCells final : public SharedSession {
 public:
  using SharedSession::SharedSession;
  static Setup setup(Profile profile, std::optional<std::int64_t> window) {
    cells::KvConfig config{.size = kRoom};
    if (window) {
      config.n_swa = static_cast<std::int32_t>(*window);
      config.swa_type = cells::WindowType::kStandard;
    }
    return {.profile = profile, .config = Record::of(std::move(config))};
  }

 protected:
  void begin() override { (void)ask(cells::New{}); }
  std::string append(std::int64_t n) override {
    std::vector<std::int32_t> positions;
    for (std::int64_t i = 0; i < n; ++i)
      positions.push_back(static_cast<std::int32_t>(length_ + i));
    const std::vector<std::vector<std::int64_t>> owners(positions.size(), {0});
    const Observation& done =
        ask(cells::Decode{.pos = positions, .seqs = owners, .n_ubatch = kRoom});
    if (done.error) return outcome(done);
    std::int64_t token = appended_;
    seen_ = {};
    for (const cells::ShownUbatch& ubatch : *done.as<cells::DecodeReturns>().ubatches) {
      for (const std::int32_t slot : ubatch.slots)
        tokens_[static_cast<std::size_t>(slot)] = token++;
      seen_ = ubatch;
    }
    return "ok";
  }
  std::optional<std::string> cut_to(std::int64_t n) override {
    return removed(static_cast<std::int32_t>(n), -1);
  }
  // As a context is shifted: the first positions go, and the others move down.
  std::optional<std::string> drop_first(std::int64_t n) override {
    const auto end = static_cast<std::int32_t>(n);
    std::string done = removed(0, end);
    if (done != "ok") return done;
    return outcome(ask(cells::SeqAdd{.seq = 0, .p0 = end, .p1 = -1, .delta = -end}));
  }
  Tokens seen() override {
    Tokens tokens;
    const auto see = [&](std::size_t cell) {
      if (tokens_[cell] != appended_) tokens.push_back(tokens_[cell]);
    };
    if (seen_.visible && !seen_.visible->empty())
      for (const std::int32_t cell : seen_.visible->back()) see(static_cast<std::size_t>(cell));
    if (seen_.mask) {
      const auto last = seen_.mask->floats().last(static_cast<std::size_t>(seen_.n_kv));
      for (std::size_t cell = 0; cell < last.size(); ++cell)
        if (!std::isinf(last[cell])) see(cell);
    }
    std::ranges::sort(tokens);
    return tokens;
  }

 private:
  std::string removed(std::int32_t begin, std::int32_t end) {
    const Observation& done = ask(cells::SeqRm{.seq = 0, .p0 = begin, .p1 = end});
    if (!done.error && !done.as<cells::YesNo>().value) return "refused";
    return outcome(done);
  }

  Tokens tokens_ = Tokens(kRoom);  // by cell
  cells::ShownUbatch seen_;
};

template <class Shared>
SharingKind sharing(std::string_view kind, std::optional<std::int64_t> window) {
  return {kind, [window](const Subject& subject, Profile profile, const SharedScript& script) {
            return Shared(subject, Shared::setup(profile, window)).answer(script);
          }};
}

}  // namespace

std::string SharedOp::text() const {
  constexpr std::array<std::string_view, 3> kWords{"append", "cut to", "drop first"};
  return fmt::format("{} {}", kWords.at(static_cast<std::size_t>(kind)), n);
}

std::string text_of(const SharedScript& script) {
  std::string text;
  for (const SharedOp& op : script) text += (text.empty() ? "" : ", ") + op.text();
  return text;
}

std::string SharedAnswer::text() const {
  if (ops.empty()) return outcome;
  if (!seen) return outcome + ", the next token is refused";
  return fmt::format(
      "{}, {}", outcome,
      seen->empty() ? "sees nothing" : fmt::format("sees {}", fmt::join(*seen, " ")));
}

std::vector<SharingKind> sharing_kinds(std::optional<std::int64_t> window) {
  if (window)
    return {sharing<SharedPositional>("positional.swa", window),
            sharing<SharedCells>("cells.kv", window),
            sharing<SharedSnapshot>("snapshot.rotating", window)};
  return {sharing<SharedPositional>("positional.causal", window),
          sharing<SharedCells>("cells.kv", window), sharing<SharedSnapshot>("snapshot.kv", window),
          sharing<SharedPaged>("provider.paged", window)};
}

std::vector<SharedScript> shared_scripts(std::size_t most) {
  using Kind = SharedOpKind;
  const std::vector<SharedOp> alphabet{
      {Kind::kAppend, 0},    {Kind::kAppend, 1},    {Kind::kCutTo, 2},     {Kind::kCutTo, 0},
      {Kind::kCutTo, 3},     {Kind::kCutTo, 4},     {Kind::kCutTo, -1},    {Kind::kDropFirst, 1},
      {Kind::kDropFirst, 0}, {Kind::kDropFirst, 3}, {Kind::kDropFirst, 4}, {Kind::kDropFirst, -1}};
  std::vector<SharedScript> all{{{Kind::kAppend, 3}}};
  for (const SharedOp& op : alphabet) all.push_back({op});
  const SharedScript start{{Kind::kAppend, 3}};
  std::vector<SharedScript> longer{start};
  for (std::size_t length = 2; length <= most; ++length) {
    std::vector<SharedScript> next;
    for (const SharedScript& script : longer)
      for (const SharedOp& op : alphabet) {
        next.push_back(script);
        next.back().push_back(op);
      }
    all.insert(all.end(), next.begin(), next.end());
    longer = std::move(next);
  }
  return all;
}

}  // namespace kvo::tools
