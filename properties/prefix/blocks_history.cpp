// The history of a pool of blocks.
//
// Known are the tokens of all requests, the blocks that were handed out to them, and what was
// registered. The order in which blocks are handed out or evicted is not: what is shown is taken,
// if it may be. Judged
// keys      are equal exactly if namespace, tokens, and those that draft heads read are (PX-10).
// hits      begin with the first block, or with the first that the next token sees; each block
//           carries its key, which was put and not taken since; its rows are those of the prompt's
//           tokens; and no longer prefix is held (PX-20 to PX-24, PX-52, PX-57).
// slots     blocks that are handed out were free; those that lose a key are told, as many as the
//           tokens need; rows that a request computed are still its own at its next step.
// figures   each block is free or pinned, once; users are those that were counted in; keys are
//           those that were put; tables, usage, sums, and who follows the events say the same.
// Skipped   in profile original, what follows when a block was released more often than pinned
//           (PX-47), but for contradictions of `state` with itself, and the rows of requests that
//           adopted stale hits (PX-47). In both, what follows a refused `full_sequence` that may
//           have let blocks go (PX-26), and a release of blocks that are a table's; rows of
//           requests that are made anew under way (PX-42); which blocks of a window keep keys
//           (PX-54, PX-55) is learnt, as is which were handed out for loaded tokens (PX-27).
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "properties/prefix/block_accounts.hpp"
#include "properties/prefix/contents.hpp"
#include "properties/prefix/history.hpp"
#include "reference/contract/describe/difference.hpp"

namespace kvo::prefix {
namespace {

/// What is known of a request.
struct KnownRequest {
  std::vector<Content> prefixes = {};  ///< [tokens]
  Ids keys = {};                       ///< [block]
  bool skip_reading = false;
  std::int64_t computed = 0;
  std::int64_t in_flight = 0;
  std::int64_t preemptions = 0;
  Ids table = {};
  std::optional<std::int64_t> registered = std::nullopt;  ///< blocks; none: not tracked
  bool odd = false;  ///< rows of its table may be those of other tokens

  [[nodiscard]] std::int64_t tokens() const { return std::ssize(prefixes) - 1; }
};

/// What a key stands for.
struct KeyMeaning {
  Content content = kNoContent;
  std::int64_t block = 0;
};

class BlocksHistory final : public History<BlocksHistory, BlocksOps, BlocksConfig, KnownRequest> {
 public:
  using History::History;

  bool keep_lookups() override {
    blocks_.watch([this](std::int64_t key, bool carried) {
      if (key < 0 || key >= std::ssize(keys_)) return;
      const Content content = keys_[static_cast<std::size_t>(key)].content;
      if (carried)
        misses_->stored(content);
      else
        misses_->gone(content);
    });
    return History::keep_lookups();
  }

  /// Once track is lost: only whether the pool contradicts itself.
  Words look(const ShowBlocks& /*op*/, const Observation& seen) {
    if (seen.error) return skip();
    return judged(wrong_pool(seen.as<ShowBlocks::Returns>(), config_.num_blocks));
  }

  // ---- Definitions ----

  std::int64_t floor_blocks(std::int64_t tokens) const { return tokens / config_.block_size; }
  std::int64_t ceil_blocks(std::int64_t tokens) const {
    return (tokens + config_.block_size - 1) / config_.block_size;
  }
  /// PX-50: tokens that the one behind so many does not see.
  std::int64_t skipped(std::int64_t tokens) const {
    if (config_.attention == Attention::kSlidingWindow)
      return std::max<std::int64_t>(0, tokens - config_.window.value_or(1) + 1);
    if (config_.attention == Attention::kChunkedLocal)
      return tokens / config_.chunk.value_or(1) * config_.chunk.value_or(1);
    return 0;
  }
  std::int64_t run_needed() const {
    return ceil_blocks(config_.window.value_or(1) - 1) + (config_.eagle ? 1 : 0);
  }
  /// Whether a window leaves blocks without keys, by rules that are not followed (PX-54, PX-55).
  bool keys_are_sparse() const {
    return config_.attention == Attention::kSlidingWindow &&
           ((config_.retention && config_.retention->has_value()) || run_needed() == 0);
  }

  // ---- Requests ----

  // PX-10 to PX-13
  Words wrong_keys(KnownRequest& known, std::int64_t first, const Ids& shown) {
    const std::int64_t wanted =
        config_.enable_caching
            ? floor_blocks(std::max<std::int64_t>(known.tokens() - config_.hash_lookahead, 0))
            : 0;
    if (first + std::ssize(shown) != wanted)
      return std::to_string(wanted) + " blocks have keys, " +
             std::to_string(first + std::ssize(shown)) + " are shown";
    for (std::int64_t i = first; i < wanted; ++i) {
      const std::int64_t end = (i + 1) * config_.block_size + config_.hash_lookahead;
      const Content content = known.prefixes[static_cast<std::size_t>(end)];
      const auto [number, is_new] = numbers_.try_emplace(content, std::ssize(keys_));
      if (is_new) keys_.push_back({.content = content, .block = i});
      const std::int64_t key = shown[static_cast<std::size_t>(i - first)];
      if (key != number->second)
        return "block " + std::to_string(i) + " has key " + std::to_string(key) + ", that of its " +
               (is_new ? "content would be new" : "content is " + std::to_string(number->second));
      known.keys.push_back(key);
    }
    return std::nullopt;
  }

  Words observe(const MakeRequest& op, const KeysOnly& shown) {
    const bool named = op.salt && !op.salt->empty();
    const Content start = contents_.start(
        {named ? op.salt : std::nullopt, op.lora, op.lora ? op.lora_path.value_or("") : ""});
    KnownRequest& known = requests_[op.request];
    KnownRequest made{.prefixes = {start},
                      .skip_reading = op.skip_reading.value_or(false),
                      .table = std::move(known.table),
                      .registered = known.registered};
    made.odd = !made.table.empty() || made.registered;
    known = std::move(made);
    contents_.extend(known.prefixes, op.tokens);
    if (misses_) misses_->made(op.request, known.prefixes, op.tokens);
    return judged(wrong_keys(known, 0, shown.keys));
  }

  Words observe(const Append& op, const KeysOnly& shown, KnownRequest& known) {
    contents_.extend(known.prefixes, op.tokens);
    if (misses_) misses_->grew(op.request, known.prefixes, op.tokens);
    return judged(wrong_keys(known, std::ssize(known.keys), shown.keys));
  }

  Words observe(const SetRequest& op, KnownRequest& known) {
    known.computed = op.computed.value_or(known.computed);
    if (misses_) misses_->computed(op.request, known.computed);
    known.in_flight = op.in_flight.value_or(known.in_flight);
    known.preemptions = op.preemptions.value_or(known.preemptions);
    return judged();
  }

  // ---- Hits ----

  // PX-23, PX-52, PX-57
  template <class Carried>
  std::int64_t found_blocks(const KnownRequest& known, std::int64_t most, std::int64_t begin,
                            const Carried& carried) const {
    const auto holds = [&](std::int64_t block) {
      return block < std::ssize(known.keys) && carried(known.keys[static_cast<std::size_t>(block)]);
    };
    if (config_.attention != Attention::kSlidingWindow) {
      std::int64_t end = begin;
      while (end < most && holds(end)) ++end;
      return end;
    }
    std::int64_t run = 0;
    for (std::int64_t i = std::min(most, std::ssize(known.keys)) - 1; i >= 0; --i) {
      run = holds(i) ? run + 1 : 0;
      if (run > 0 && (i == 0 || run >= run_needed())) return i + run;
    }
    return 0;
  }

  Words wrong_rows(const KnownRequest& known, std::int64_t block, std::int64_t place,
                   std::int64_t end) {
    const std::vector<Content>& rows = blocks_.rows(block);
    const std::int64_t begin = place * config_.block_size;
    for (std::int64_t i = begin; i < std::min(end, begin + std::ssize(rows)); ++i) {
      const Content there = rows[static_cast<std::size_t>(i - begin)];
      if (there != kNoContent && there != known.prefixes[static_cast<std::size_t>(i + 1)])
        return "block " + std::to_string(block) + " has the row of another token in the place of " +
               std::to_string(i);
    }
    return std::nullopt;
  }

  Words wrong_hit(const KnownRequest& known, const MatchBlocks::Returns& hit, std::int64_t most) {
    if (hit.length != std::ssize(hit.blocks) * config_.block_size)
      return "the length is not that of the blocks";
    const auto carrier = std::ranges::find_if(hit.blocks, [](auto block) { return block != 0; });
    const std::int64_t nulls = carrier - hit.blocks.begin();
    const bool in_chunks = config_.attention == Attention::kChunkedLocal;
    const std::int64_t begin = in_chunks ? floor_blocks(skipped(most)) : 0;
    const std::int64_t unneeded = in_chunks ? begin : floor_blocks(skipped(hit.length));
    if (nulls > unneeded) return "a block that the next token sees is not hit";
    const std::int64_t blocks = floor_blocks(most);
    const auto dropped = [&](std::int64_t found) {
      return std::max<std::int64_t>(found - (config_.eagle ? 1 : 0), 0);
    };
    const std::int64_t least = dropped(
        found_blocks(known, blocks, begin, [&](std::int64_t key) { return blocks_.carried(key); }));
    const std::int64_t at_most = dropped(found_blocks(
        known, blocks, begin, [&](std::int64_t key) { return blocks_.perhaps_carried(key); }));
    if (std::ssize(hit.blocks) < least || std::ssize(hit.blocks) > at_most)
      return std::to_string(hit.blocks.size()) + " blocks are hit, " + std::to_string(least) +
             (least < at_most ? " or more are held" : " are held");
    for (std::int64_t i = nulls; i < std::ssize(hit.blocks); ++i) {
      const std::int64_t block = hit.blocks[static_cast<std::size_t>(i)];
      if (!blocks_.may_carry(block, known.keys[static_cast<std::size_t>(i)]))
        return "block " + std::to_string(block) + " is hit, and does not hold block " +
               std::to_string(i) + " of the request";
      if (auto words = wrong_rows(known, block, i, hit.length)) return words;
    }
    return std::nullopt;
  }

  void explain_hit(std::int64_t request, std::int64_t hit, std::int64_t most,
                   const KnownRequest& known) {
    misses_->looked_up({.request = request,
                        .tokens = std::min(most + 1, known.tokens()),
                        .hit = hit,
                        .units = {config_.block_size},
                        .beyond = config_.hash_lookahead,
                        .reads = config_.enable_caching && !known.skip_reading,
                        .drops = config_.eagle,
                        .most_hit = most},
                       known.prefixes, [this](Content content, std::int64_t /*group*/) {
                         const auto number = numbers_.find(content);
                         return number != numbers_.end() && blocks_.carried(number->second);
                       });
  }

  Words observe(const MatchBlocks& op, const MatchBlocks::Returns& hit, KnownRequest& known) {
    const std::int64_t most = std::max<std::int64_t>(op.max_length.value_or(known.tokens() - 1), 0);
    if (misses_) explain_hit(op.request, hit.length, most, known);
    if (!config_.enable_caching || known.skip_reading)
      return expect(hit.blocks.empty() && hit.length == 0,
                    "a request that may hit nothing has a hit");
    return judged(wrong_hit(known, hit, most));
  }

  // ---- Slots ----

  bool lets_go(const KnownRequest& known, std::int64_t tokens) const {
    const std::int64_t end = std::min(floor_blocks(skipped(tokens)), std::ssize(known.table));
    return end > 0 && known.table[static_cast<std::size_t>(end - 1)] != 0;
  }

  // PX-51
  void let_go(KnownRequest& known, std::int64_t tokens) {
    std::int64_t i = std::min(floor_blocks(skipped(tokens)), std::ssize(known.table)) - 1;
    for (; i >= 0 && known.table[static_cast<std::size_t>(i)] != 0; --i)
      blocks_.unpin(std::exchange(known.table[static_cast<std::size_t>(i)], 0));
  }

  // PX-27, PX-28, PX-53
  std::int64_t adopt(KnownRequest& known, const Allocate& op, std::int64_t computed, Words& words) {
    const Ids hits = op.hit_blocks.value_or(Ids());
    const std::int64_t external = op.external.value_or(0);
    if ((hits.empty() && external == 0) || known.registered) return 0;
    const std::int64_t behind = floor_blocks(skipped(computed));
    known.table.assign(static_cast<std::size_t>(behind), 0);
    const bool stale_too = has(Quirk::kStaleHitsAdopted);
    // Where stale hits are adopted, adoption does not prove that the block carries the key.
    const auto holds = [&](std::int64_t block, std::int64_t i) {
      if (i >= std::ssize(known.keys)) return false;
      const std::int64_t key = known.keys[static_cast<std::size_t>(i)];
      return stale_too ? blocks_.key(block) == key : blocks_.may_carry(block, key);
    };
    for (std::int64_t i = 0; i < std::ssize(hits); ++i) {
      const std::int64_t block = hits[static_cast<std::size_t>(i)];
      if (block != 0 && !holds(block, i)) {
        if (!stale_too)
          words = "block " + std::to_string(block) + " is adopted, and does not hold block " +
                  std::to_string(i) + " of the request";
        known.odd = true;
      }
      if (i < behind) continue;
      blocks_.pin(block);
      known.table.push_back(block);
    }
    known.registered = std::ssize(known.table);
    if (external == 0 || computed <= skipped(computed)) return 0;
    const std::int64_t unseen =
        std::max<std::int64_t>(ceil_blocks(computed) - std::ssize(known.table), 0);
    known.table.insert(known.table.end(), static_cast<std::size_t>(unseen), kUnseen);
    return unseen;
  }

  // Rows that the next tokens see, as far as they were written.
  Words wrong_own_rows(const KnownRequest& known, std::int64_t end) {
    if (known.odd) return std::nullopt;
    end = std::min(end, known.tokens());
    for (std::int64_t i = floor_blocks(skipped(end)); i < std::ssize(known.table); ++i) {
      const std::int64_t block = known.table[static_cast<std::size_t>(i)];
      if (block == 0 || block == kUnseen) continue;
      if (auto words = wrong_rows(known, block, i, end)) return words;
    }
    return std::nullopt;
  }

  // The rows of tokens that are computed, or loaded, in blocks that are the request's own.
  void write(KnownRequest& known, std::int64_t end) {
    const std::int64_t size = config_.block_size;
    end = std::min({end, known.tokens(), std::ssize(known.table) * size});
    for (std::int64_t i = known.registered.value_or(0) * size; i < end; ++i) {
      const std::int64_t block = known.table[static_cast<std::size_t>(i / size)];
      if (block == 0 || block == kUnseen) continue;
      std::vector<Content>& rows = blocks_.rows(block);
      rows.resize(static_cast<std::size_t>(size), kNoContent);
      rows[static_cast<std::size_t>(i % size)] = known.prefixes[static_cast<std::size_t>(i + 1)];
    }
  }

  // PX-30
  bool register_blocks(KnownRequest& known, std::int64_t tokens) {
    const std::int64_t end =
        std::min({floor_blocks(std::min(tokens, known.tokens())), std::ssize(known.keys)});
    if (end <= known.registered.value_or(0)) return true;
    if (end > std::ssize(known.table)) return false;
    write(known, end * config_.block_size);
    const std::int64_t first = known.registered.value_or(0);
    known.registered = end;
    for (std::int64_t i = first; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!blocks_.set_key(known.table[at], known.keys[at], keys_are_sparse())) return false;
    }
    return true;
  }

  Words observe(const Allocate& op, const Observation& seen, KnownRequest& known) {
    const std::int64_t most = config_.max_model_len;
    const std::int64_t before = known.computed + op.hit_tokens.value_or(0);
    const std::int64_t computed = before + op.external.value_or(0);
    const std::int64_t within = std::min(computed, most);
    const std::int64_t kept_from = std::max<std::int64_t>(within - known.in_flight, 0);
    if (seen.error && !seen.failed_with(Code::kExhausted)) return skip();
    if (computed > most) return lose_track();
    if (seen.error) {  // PX-26
      if (op.full_sequence.value_or(false) && lets_go(known, kept_from)) return lose_track();
      if (!op.full_sequence.value_or(false)) let_go(known, kept_from);
      return skip();
    }
    const auto& got = seen.as<AllottedBlocks>();
    let_go(known, kept_from);
    Words words;
    const std::int64_t unseen = adopt(known, op, computed, words);
    if (words) return judged(words);
    const std::int64_t slots = std::min(within + op.tokens + op.lookahead.value_or(0), most);
    const std::int64_t wanted =
        std::max<std::int64_t>(ceil_blocks(slots) - std::ssize(known.table), 0);
    if (std::ssize(got.blocks) != wanted)
      return judged(std::to_string(got.blocks.size()) + " blocks are handed out, " +
                    std::to_string(wanted) + " are needed");
    words = blocks_.hand_out(got.blocks, unseen, got.evicted);
    if (words) return judged(words);
    known.table.insert(known.table.end(), got.blocks.begin(), got.blocks.end());
    words = wrong_own_rows(known, before);
    if (words) return judged(words);
    write(known, within + op.tokens);
    if (!op.delay_caching.value_or(false) && !register_blocks(known, within + op.tokens))
      return lose_track();
    return judged();
  }

  Words observe(const CacheTokens& op, KnownRequest& known) {
    return register_blocks(known, op.tokens) ? judged() : lose_track();
  }

  Words observe(const Skip& op, KnownRequest& known) {
    let_go(known, op.computed);
    return judged();
  }

  // PX-33
  void release(KnownRequest& known) {
    known.table.clear();
    known.registered.reset();
    known.odd = false;
  }

  Words observe(const FreeRequest& /*op*/, KnownRequest& known) {
    for (const std::int64_t block : known.table) blocks_.unpin(block);
    release(known);
    return judged();
  }

  // The table from that place on is what is shown; blocks that were handed out unseen are learnt.
  Words wrong_table(KnownRequest& known, const Ids& shown, std::int64_t first) {
    if (first + std::ssize(shown) != std::ssize(known.table))
      return "the table has " + std::to_string(std::ssize(known.table) - first) + " blocks, " +
             std::to_string(shown.size()) + " are shown";
    for (std::int64_t i = first; i < std::ssize(known.table); ++i) {
      std::int64_t& block = known.table[static_cast<std::size_t>(i)];
      const std::int64_t there = shown[static_cast<std::size_t>(i - first)];
      if (block == kUnseen && there > 0 && there < config_.num_blocks) {
        block = there;
        blocks_.found(there);
      }
      if (block != there)
        return "place " + std::to_string(i) + " of the table has block " + std::to_string(there) +
               ", not " + std::to_string(block);
    }
    return std::nullopt;
  }

  Words observe(const Pop& /*op*/, const BlocksOnly& shown, KnownRequest& known) {
    const auto first = std::ranges::find_if(known.table, [](auto block) { return block != 0; });
    if (auto words = wrong_table(known, shown.blocks, first - known.table.begin()))
      return judged(words);
    for (const std::int64_t block : known.table)
      if (block != 0) ++by_hand_[block];
    release(known);
    return judged();
  }

  // ---- Words about another result ----

  std::string block_text(std::int64_t block) const {
    const auto key = blocks_.key(block);
    const std::int64_t users = blocks_.users(block);
    return "block " + std::to_string(block) + " (" +
           (key ? "key " + std::to_string(*key) : "no key known") + ", " + std::to_string(users) +
           (users == 1 ? " user)" : " users)");
  }

  std::vector<std::string> explain(std::span<const Op> script, const Observation& want,
                                   const Observation& got) const override {
    const Op& op = script.back();
    if (lost_ || want.error || got.error) return {};
    std::vector<std::string> lines;
    const auto first = [&](const Ids& wanted, const Ids& shown, const std::string& what) {
      const auto [due, there] = std::ranges::mismatch(wanted, shown);
      if (due != wanted.end() && there != shown.end())
        lines.push_back(block_text(*there) + what + block_text(*due) + " was to go");
    };
    if (op.as<ShowBlocks>() != nullptr) {
      first(want.as<ShowBlocks::Returns>().queue, got.as<ShowBlocks::Returns>().queue,
            " goes next where ");
      if (!lines.empty() && config_.window)
        lines.push_back("the window of " + std::to_string(*config_.window) +
                        " releases the blocks that left it, the highest first");
    }
    if (op.as<Allocate>() == nullptr && op.as<Take>() == nullptr) return lines;
    const auto& wanted = want.as<AllottedBlocks>();
    const auto& shown = got.as<AllottedBlocks>();
    first(wanted.blocks, shown.blocks, " is handed out where ");
    for (const std::int64_t block : shown.evicted)
      if (std::ranges::find(wanted.evicted, block) == wanted.evicted.end())
        lines.push_back(block_text(block) + " is evicted, and was to stay");
    for (const std::int64_t block : wanted.evicted)
      if (std::ranges::find(shown.evicted, block) == shown.evicted.end())
        lines.push_back(block_text(block) + " was to be evicted, and stays");
    return lines;
  }

  // ---- The pool by hand ----

  Words observe(const Take& op, const Observation& seen) {
    if (seen.failed_with(Code::kExhausted))
      return expect(op.count > blocks_.least_free(), "blocks are refused that are free");
    if (seen.error) return skip();
    const auto& got = seen.as<AllottedBlocks>();
    if (std::ssize(got.blocks) != op.count) return judged("not so many blocks as were asked for");
    for (const std::int64_t block : got.blocks) ++by_hand_[block];
    return judged(blocks_.hand_out(got.blocks, 0, got.evicted));
  }

  Words observe(const TouchBlocks& op) {
    for (const std::int64_t block : op.blocks) {
      blocks_.pin(block);
      ++by_hand_[block];
    }
    return judged();
  }

  Words observe(const Release& op) {
    for (const std::int64_t block : op.blocks) {
      if (block == 0) continue;
      if (--by_hand_[block] < 0) return lose_track();
      blocks_.unpin(block);
    }
    return judged();
  }

  // PX-36
  Words observe(const EvictBlocks& op, const EvictBlocks::Returns& shown) {
    const Ids& evicted = shown.evicted;
    std::size_t at = 0;
    for (std::int64_t block : op.blocks) {
      if (block < 0) block += config_.num_blocks;
      const bool told = at < evicted.size() && evicted[at] == block;
      if (told) ++at;
      if (auto words = blocks_.take_key(block, told)) return judged(words);
    }
    return expect(at == evicted.size(), "a block is evicted that was not named");
  }

  // PX-37
  Words observe(const ResetBlocks& /*op*/, const ResetBlocks::Returns& shown) {
    const bool done = shown.done;
    const bool in_use = blocks_.least_free() < config_.num_blocks - 1;
    if (done == in_use)
      return judged(done ? "keys are taken off while blocks are in use" : "no block is in use");
    if (done) blocks_.take_all_keys();
    sums_.reset = sums_.reset || done;
    return judged();
  }

  // ---- Figures ----

  Words observe(const LookUp& op, const LookUp::Returns& shown) {
    if (!shown.block.has_value())
      return expect(!blocks_.carried(op.key), "a key is not found that a block carries");
    return expect(blocks_.may_carry(*shown.block, op.key),
                  "block " + std::to_string(*shown.block) + " does not carry the key");
  }

  Words observe(const ShowTable& /*op*/, const BlocksOnly& shown, KnownRequest& known) {
    return judged(wrong_table(known, shown.blocks, 0));
  }

  // PX-39
  Words observe(const CachedTokens& /*op*/, const CachedTokens::Returns& shown,
                KnownRequest& known) {
    if (!blocks_.keys_are_known()) return skip();
    std::int64_t blocks = 0;
    for (const std::int64_t block : known.table) {
      if (block == kUnseen) return skip();
      if (const auto key = blocks_.key(block))
        blocks = std::max(blocks, keys_[static_cast<std::size_t>(*key)].block + 1);
    }
    return expect(shown.tokens == blocks * config_.block_size,
                  std::to_string(shown.tokens) + " tokens are cached, keys say " +
                      std::to_string(blocks * config_.block_size));
  }

  // PX-44
  Words observe(const ShowUsage& /*op*/, const ShowUsage::Returns& shown) {
    if (blocks_.unseen() > 0) return skip();
    const auto all = static_cast<double>(config_.num_blocks - 1);
    const auto free = static_cast<double>(blocks_.least_free());
    const double usage = config_.num_blocks == 1 ? 0 : 1 - free / all;
    return expect(shown.usage == usage, "usage is not the part that is not free");
  }

  // PX-41
  Words observe(const RecordHits& op, KnownRequest& known) {
    if (!config_.enable_caching || known.skip_reading) return judged();
    const bool again = known.preemptions > 0;
    (again ? sums_.preempted_requests : sums_.requests) += 1;
    (again ? sums_.preempted_queries : sums_.queries) += known.tokens();
    (again ? sums_.preempted_hits : sums_.hits) += op.hits;
    return judged();
  }

  Words observe(const ShowStatistics& /*op*/, const Observation& seen) {
    if (seen.error) return skip();
    const Observation want{.returns = Record::of(std::exchange(sums_, {}))};
    const auto difference = observation_difference(want, seen);
    return judged(difference ? Words("sums: " + difference->text()) : Words());
  }

  // PX-40: who follows the events knows what is held.
  Words wrong_event(const ShownEvent& event) {
    const bool removes_last = !has(Quirk::kRemovedWhileHeld);
    if (event.kind == EventKind::kCleared) {
      told_.clear();
      return std::nullopt;
    }
    for (const std::int64_t key : event.keys.value_or(Ids())) {
      if (key < 0 || key >= std::ssize(keys_))
        return "an event has a key that no block was stored under";
      if (event.kind == EventKind::kStored)
        ++told_[key];
      else if (told_[key] == 0)
        return "key " + std::to_string(key) + " is removed, and was not stored";
      else if (removes_last || --told_[key] == 0)
        told_.erase(key);
    }
    return std::nullopt;
  }

  Words observe(const TakeEvents& /*op*/, const TakeEvents::Returns& shown) {
    for (const ShownEvent& event : shown.events)
      if (auto words = wrong_event(event)) return judged(words);
    if (!config_.events && !shown.events.empty())
      return judged("there are events, and none are kept");
    if (!config_.events || !blocks_.keys_are_known()) return skip();
    const auto carriers = blocks_.carriers();
    const bool each = has(Quirk::kRemovedWhileHeld);
    for (const auto& [key, blocks] : carriers)
      if (!told_.contains(key) || (each && told_.at(key) != blocks))
        return judged("key " + std::to_string(key) + " is held, events do not say so");
    for (const auto& [key, times] : told_)
      if (!carriers.contains(key))
        return judged("key " + std::to_string(key) + " is not held, events say so");
    return judged();
  }

  Words observe(const ShowBlocks& /*op*/, const ShowBlocks::Returns& shown) {
    if (auto words = wrong_pool(shown, config_.num_blocks)) return judged(words);
    return judged(blocks_.compare(shown));
  }

 private:
  BlockAccounts blocks_{config_.num_blocks};
  Contents contents_ = {};
  std::vector<KeyMeaning> keys_ = {};                       ///< [number]
  std::unordered_map<Content, std::int64_t> numbers_ = {};  ///< of keys
  std::map<std::int64_t, std::int64_t> by_hand_ = {};       ///< [block], users that are no request
  std::unordered_map<std::int64_t, std::int64_t> told_ = {};  ///< [key], by events
  BlocksStatistics sums_ = {};
};

}  // namespace

std::unique_ptr<Oracle> blocks_history(const BlocksConfig& config, QuirkSet<Quirk> quirks) {
  return std::make_unique<BlocksHistory>(config, quirks);
}

}  // namespace kvo::prefix
