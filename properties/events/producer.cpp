#include "properties/events/producer.hpp"

#include <algorithm>

#include "reference/groups/operations.hpp"
#include "reference/prefix/operations.hpp"
#include "reference/subjects.hpp"

namespace kvo::events {
namespace {

constexpr std::int64_t kProbe = prefix::kMostRequests - 1;  ///< a request that only looks up
constexpr std::size_t kMostRunning = 3;

std::unique_ptr<Session> open(const std::vector<Subject>& references, const CacheKind& kind,
                              Profile profile, Record config) {
  for (const Subject& subject : references)
    if (subject.kind == &kind) {
      auto session = subject.open({.profile = profile, .config = std::move(config)});
      KVO_CHECK(session.has_value());
      return std::move(*session);
    }
  return nullptr;
}

std::optional<std::string> word(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

prefix::Tokens narrow(const std::vector<std::int64_t>& tokens) {
  return {tokens.begin(), tokens.end()};
}

// What the two kinds of pools call alike.
struct OneGroup {
  using MakeRequest = prefix::MakeRequest;
  using Match = prefix::MatchBlocks;
  using Found = prefix::MatchBlocksReturns;
  using Allocate = prefix::Allocate;

  static std::unique_ptr<Session> session(std::int64_t block_size, std::int64_t blocks) {
    prefix::BlocksConfig config{.num_blocks = blocks, .block_size = block_size};
    config.max_model_len = block_size * blocks;
    config.events = true;
    return open(prefix::references(), prefix::blocks_kind(), Profile::kOriginal,
                Record::of(config));
  }
  static Op look_up(std::int64_t key) { return Op::of(prefix::LookUp{key}); }
  static std::optional<std::int64_t> carrier(const Observation& found) {
    return found.as<prefix::LookUpReturns>().block.value;
  }
};
struct TwoGroups {
  using MakeRequest = groups::MakeRequest;
  using Match = groups::Match;
  using Found = groups::MatchReturns;
  using Allocate = groups::Allocate;

  static std::unique_ptr<Session> session(std::int64_t block_size, std::int64_t blocks) {
    groups::Config config{.num_blocks = blocks, .hash_block = block_size};
    config.groups = {{.block_size = block_size},
                     {.kind = groups::GroupKind::kSlidingWindow,
                      .block_size = block_size,
                      .window = 2 * block_size + 1}};
    config.max_model_len = block_size * blocks;
    config.events = true;
    return open(groups::references(), groups::blocks_kind(), Profile::kOriginal,
                Record::of(config));
  }
  // The main group counts (EV-4).
  static Op look_up(std::int64_t key) { return Op::of(groups::LookUp{key, {0}}); }
  static std::optional<std::int64_t> carrier(const Observation& found) {
    const auto& blocks = found.as<groups::LookUpReturns>().blocks;
    return blocks.has_value() ? std::optional(blocks->front()) : std::nullopt;
  }
};

template <class Pool>
class BlocksProducer : public Producer {
 public:
  BlocksProducer(std::shared_ptr<KeyNames> names, std::int64_t block_size, std::int64_t blocks)
      : Producer(std::move(names), block_size) {
    session_ = Pool::session(block_size, blocks);
  }

  [[nodiscard]] Batch serve(const Prompt& prompt) override {
    Batch all;
    if (running_.size() >= kMostRunning) all = finish({});
    const std::int64_t request = next_request_++ % kProbe;
    if (prompt.tokens.empty() || apply(made(request, prompt)).error) return all;
    const Observation hit = apply(Op::of(typename Pool::Match{.request = request}));
    const auto length = std::ssize(prompt.tokens);
    typename Pool::Allocate all_of_it{.request = request, .tokens = length};
    if (!hit.error) {
      const auto& found = hit.as<typename Pool::Found>();
      all_of_it.tokens = length - found.length;
      all_of_it.hit_blocks = found.blocks;
      all_of_it.hit_tokens = found.length;
    }
    const bool placed = !apply(Op::of(all_of_it)).error;
    const Batch stored = take_events(prompt);
    all.insert(all.end(), stored.begin(), stored.end());
    if (!placed) {
      static_cast<void>(apply(Op::of(prefix::FreeRequest{request})).error.has_value());
      return all;
    }
    static_cast<void>(apply(computed(request, length)));
    running_.emplace_back(request, prompt);
    return all;
  }
  [[nodiscard]] Batch finish(const std::vector<std::int64_t>& output) override {
    if (running_.empty()) return {};
    auto [request, prompt] = running_.front();
    running_.erase(running_.begin());
    if (!output.empty() && !apply(Op::of(prefix::Append{request, narrow(output)})).error)
      static_cast<void>(
          apply(Op::of(typename Pool::Allocate{.request = request, .tokens = std::ssize(output)})));
    static_cast<void>(apply(Op::of(prefix::FreeRequest{request})));
    return take_events(prompt);
  }
  // A connector takes the key of the first block that carries it off (PX-36). Under a running
  // request that breaks G2: its next block has a parent that is not held.
  [[nodiscard]] Batch evict(const Prompt& prompt, std::int64_t block) override {
    Batch all = end_all();
    const auto carriers = carriers_of(prompt);
    if (block >= std::ssize(carriers) || !carriers[static_cast<std::size_t>(block)]) return all;
    static_cast<void>(
        apply(Op::of(prefix::EvictBlocks{{*carriers[static_cast<std::size_t>(block)]}})));
    const Batch evicted = take_events(prompt);
    all.insert(all.end(), evicted.begin(), evicted.end());
    return all;
  }
  [[nodiscard]] Batch clear() override {
    Batch all = end_all();
    static_cast<void>(apply(Op::of(prefix::ResetBlocks{})));
    const Batch cleared = take_events({});
    all.insert(all.end(), cleared.begin(), cleared.end());
    return all;
  }
  [[nodiscard]] std::int64_t held(const Prompt& prompt) override {
    const auto carriers = carriers_of(prompt);
    return std::ranges::find_if(carriers, [](const auto& one) { return !one; }) - carriers.begin();
  }

 private:
  static Op made(std::int64_t request, const Prompt& prompt) {
    return Op::of(typename Pool::MakeRequest{.request = request,
                                             .tokens = narrow(prompt.tokens),
                                             .salt = word(prompt.salt),
                                             .lora = word(prompt.lora)});
  }
  static Op computed(std::int64_t request, std::int64_t tokens) {
    return Op::of(prefix::SetRequest{
        .request = request, .computed = tokens, .status = prefix::RequestStatus::kRunning});
  }
  // The first block that carries each key of the prompt.
  std::vector<std::optional<std::int64_t>> carriers_of(const Prompt& prompt) {
    std::vector<std::optional<std::int64_t>> all;
    const Observation keys = apply(made(kProbe, prompt));
    if (keys.error) return all;
    for (const std::int64_t key : keys.as<prefix::KeysOnly>().keys)
      all.push_back(Pool::carrier(apply(Pool::look_up(key))));
    return all;
  }
};

class GroupsProducer final : public BlocksProducer<TwoGroups> {
 public:
  using BlocksProducer::BlocksProducer;

 private:
  [[nodiscard]] std::vector<Shown> shown_events() override {
    std::vector<Shown> all;
    const Observation taken = apply(Op::of(groups::TakeEvents{}));
    KVO_CHECK(!taken.error);
    for (const groups::ShownEvent& shown : taken.as<groups::TakeEventsReturns>().events) {
      Shown& event = all.emplace_back(shown_of(shown));
      event.group = shown.group;
      event.spec = shown.attention;
    }
    return all;
  }
};

class RadixProducer final : public Producer {
 public:
  RadixProducer(std::shared_ptr<KeyNames> names, std::int64_t block_size, std::int64_t pages)
      : Producer(std::move(names), block_size) {
    prefix::RadixConfig config{.page_size = block_size, .slots = pages * block_size};
    config.events = true;
    // In profile documented the keys hold the whole namespace: G4.
    session_ =
        open(prefix::references(), prefix::radix_kind(), Profile::kDocumented, Record::of(config));
  }

  [[nodiscard]] Batch serve(const Prompt& prompt) override {
    Batch all;
    if (running_.size() >= kMostRunning) all = finish({});
    const std::int64_t request = next_request_++ % kProbe;
    if (prompt.tokens.empty()) return all;
    static_cast<void>(apply(Op::of(prefix::FileRequest{.request = request,
                                                       .tokens = narrow(prompt.tokens),
                                                       .extra = word(prompt.lora),
                                                       .salt = word(prompt.salt)})));
    const Observation hit = apply(Op::of(prefix::Admit{request}));
    if (hit.error) return all;
    const std::int64_t length = hit.as<prefix::FoundPrefix>().length;
    const bool placed = !apply(Op::of(prefix::Extend{.request = request,
                                                     .tokens = std::ssize(prompt.tokens) - length}))
                             .error;
    if (placed) {
      static_cast<void>(apply(Op::of(prefix::Checkpoint{request})));
      running_.emplace_back(request, prompt);
    } else {
      static_cast<void>(apply(Op::of(prefix::Withdraw{request})));
    }
    const Batch events = take_events(prompt);
    all.insert(all.end(), events.begin(), events.end());
    return all;
  }
  [[nodiscard]] Batch finish(const std::vector<std::int64_t>& output) override {
    if (running_.empty()) return {};
    auto [request, prompt] = running_.front();
    running_.erase(running_.begin());
    bool grown = true;
    if (!output.empty())
      grown =
          !apply(Op::of(prefix::Extend{
                     .request = request, .tokens = std::ssize(output), .append = narrow(output)}))
               .error;
    static_cast<void>(apply(Op::of(prefix::Finish{.request = request, .keep = grown})));
    return take_events(prompt);
  }
  [[nodiscard]] Batch evict(const Prompt& prompt, std::int64_t block) override {
    static_cast<void>(apply(Op::of(prefix::EvictUnits{(block + 1) * block_size()})));
    return take_events(prompt);
  }
  [[nodiscard]] Batch clear() override {
    Batch all = end_all();
    static_cast<void>(apply(Op::of(prefix::ResetTree{})));
    static_cast<void>(apply(Op::of(prefix::ClearSlots{})));
    const Batch cleared = take_events({});
    all.insert(all.end(), cleared.begin(), cleared.end());
    return all;
  }
  [[nodiscard]] std::int64_t held(const Prompt& prompt) override {
    const Observation found = apply(Op::of(prefix::MatchTokens{
        .tokens = narrow(prompt.tokens), .extra = word(prompt.lora), .salt = word(prompt.salt)}));
    return found.error ? 0 : found.as<prefix::FoundPrefix>().length / block_size();
  }
};

}  // namespace

Key KeyNames::name(std::optional<Key> parent, const std::vector<std::int64_t>& tokens,
                   const std::string& space) {
  const auto [known, is_new] = names_.try_emplace({parent, tokens, space}, next_);
  if (is_new) ++next_;
  return known->second;
}

Observation Producer::apply(const Op& op) {
  return session_->apply(op, probe_);
}

Batch Producer::end_all() {
  Batch all;
  while (!running_.empty()) {
    const Batch ended = finish({});
    all.insert(all.end(), ended.begin(), ended.end());
  }
  return all;
}

std::vector<Producer::Shown> Producer::shown_events() {
  std::vector<Shown> all;
  const Observation taken = apply(Op::of(prefix::TakeEvents{}));
  KVO_CHECK(!taken.error);
  for (const prefix::ShownEvent& shown : taken.as<prefix::TakeEventsReturns>().events)
    all.push_back(shown_of(shown));
  return all;
}

Batch Producer::take_events(const Prompt& of) {
  Batch all;
  for (const Shown& shown : shown_events()) {
    Event& event = all.emplace_back();
    event.kind = shown.kind;
    if (event.kind == EventKind::kCleared) continue;
    event.group = shown.group;
    if (event.kind == EventKind::kStored) {
      event.block_size = block_size_;
      event.tokens = shown.tokens;
      event.lora = word(of.lora);
      event.salt = word(of.salt);
      event.spec = shown.spec;
      if (shown.parent) event.parent = keys_.at(*shown.parent);
    }
    std::optional<Key> before = event.parent;
    auto token = event.tokens.begin();
    for (const std::int64_t key : shown.keys) {
      if (event.kind == EventKind::kStored) {
        const std::vector<std::int64_t> tokens(token, token + block_size_);
        token += block_size_;
        before = keys_[key] = names_->name(before, tokens, of.lora + "/" + of.salt);
      }
      event.keys.push_back(keys_.at(key));
    }
  }
  return all;
}

std::unique_ptr<Producer> make_blocks_producer(std::shared_ptr<KeyNames> names,
                                               std::int64_t block_size, std::int64_t blocks) {
  return std::make_unique<BlocksProducer<OneGroup>>(std::move(names), block_size, blocks);
}
std::unique_ptr<Producer> make_groups_producer(std::shared_ptr<KeyNames> names,
                                               std::int64_t block_size, std::int64_t blocks) {
  return std::make_unique<GroupsProducer>(std::move(names), block_size, blocks);
}
std::unique_ptr<Producer> make_radix_producer(std::shared_ptr<KeyNames> names,
                                              std::int64_t block_size, std::int64_t pages) {
  return std::make_unique<RadixProducer>(std::move(names), block_size, pages);
}

}  // namespace kvo::events
