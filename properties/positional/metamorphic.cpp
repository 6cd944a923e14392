// The metamorphic laws of contract `positional`.
#include "properties/campaign/metamorphic.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/positional/operations.hpp"
#include "reference/positional/visible_rows.hpp"

namespace kvo::positional {

namespace {

bool is_causal(const CacheKind& kind) {
  return &kind == &kind_of(MemberKind::kCausal);
}

const StartForward* started_pass(const Drawn& drawn, std::size_t at) {
  const auto* start = drawn.script[at].as<StartForward>();
  return start != nullptr && drawn.succeeded(at) && !start->reserve ? start : nullptr;
}

// Whether V is shown with the cells as its last axis.
bool permutes_v(const Drawn& drawn) {
  bool permuted = backend_of(drawn.kind, drawn.setup).permuted_v;
  for (std::size_t at = 0; at < drawn.script.size(); ++at)
    if (const auto* config = drawn.script[at].as<SetConfig>(); config && drawn.succeeded(at))
      permuted = config->permuted_v;
  return permuted;
}

// The numbers of sequences that operations name, in order.
std::set<std::int64_t> sequences_of(const Script& script) {
  std::set<std::int64_t> named;
  for (const Op& op : script) {
    if (const auto* start = op.as<StartForward>())
      named.insert(start->seqs.begin(), start->seqs.end());
    for (const char* member : {"seq", "src", "dst"})
      if (const auto number = integer_of(op, member)) named.insert(*number);
  }
  return named;
}

// A sequence that no operation names.
std::int64_t unused_sequence(const Script& script) {
  const std::set<std::int64_t> named = sequences_of(script);
  std::int64_t unused = 0;
  while (named.contains(unused)) ++unused;
  return unused;
}

// A pass of a sequence: positions 0, 1, ...
Op pass_of(std::int64_t sequence, std::int64_t tokens) {
  StartForward start{.seqs = std::vector(static_cast<std::size_t>(tokens), sequence)};
  start.positions.resize(start.seqs.size());
  std::iota(start.positions.begin(), start.positions.end(), 0);
  return Op::of(std::move(start));
}

Op removal_of(std::int64_t sequence) {
  return Op::of(Remove{.seq = sequence, .begin = 0, .end = kMaxPosition});
}

// ---- prefill_in_chunks ----

// The end of the pass that begins at `at` with that layer, if it only gets and puts each layer
// once, and all of that succeeds: with two passes the rest would be done to the second one alone. 0
// if it does more.
std::size_t end_of_plain_pass(const Drawn& drawn, std::size_t at, std::int64_t layer) {
  std::set<std::int64_t> put_now;
  const std::int64_t tokens = std::ssize(drawn.script[at].as<StartForward>()->seqs);
  for (++at; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    if (!drawn.succeeded(at)) return 0;
    if (op.as<StartForward>() != nullptr) return at;
    const auto* put = op.as<Put>();
    if (put != nullptr && (put->k.shape[0] != tokens || put->v.shape[0] != tokens)) return 0;
    if (put != nullptr && !put_now.insert(layer).second) return 0;
    const auto* chosen = op.as<SetLayer>();
    if (chosen != nullptr) layer = chosen->layer;
    if (put == nullptr && chosen == nullptr && op.as<Get>() == nullptr) return 0;
  }
  return at;
}

Op part_of_put(const Put& put, std::int64_t begin, std::int64_t end) {
  return Op::of(Put{.k = axis_range(put.k, 0, begin, end), .v = axis_range(put.v, 0, begin, end)});
}

Op part_of_start(const StartForward& start, std::int64_t begin, std::int64_t end) {
  return Op::of(
      StartForward{.positions = {start.positions.begin() + begin, start.positions.begin() + end},
                   .seqs = {start.seqs.begin() + begin, start.seqs.begin() + end}});
}

class InChunks {
 public:
  explicit InChunks(const Drawn& drawn) : drawn_(drawn), permuted_v_(permutes_v(drawn)) {}

  Variation make() && {
    bool any = false;
    std::size_t at = 0;
    while (at < drawn_.script.size()) {
      const StartForward* start = started_pass(drawn_, at);
      const std::size_t end = start != nullptr && start->seqs.size() > 1 && !start->multimodal
                                  ? end_of_plain_pass(drawn_, at, layer_)
                                  : 0;
      if (end != 0) {
        any = true;
        cut(*start, at, end);
        at = end;
        continue;
      }
      note(at);
      variation_.pair(at, drawn_.script[at]);
      ++at;
    }
    return any ? std::move(variation_) : Variation();
  }

 private:
  void note(std::size_t at) {
    const auto* chosen = drawn_.script[at].as<SetLayer>();
    if (chosen != nullptr && drawn_.succeeded(at)) layer_ = chosen->layer;
  }

  void cut(const StartForward& start, std::size_t begin, std::size_t end) {
    const std::int64_t tokens = std::ssize(start.seqs);
    const std::int64_t middle = cut_of(begin, tokens);
    variation_.insert(part_of_start(start, 0, middle));
    for (std::size_t at = begin + 1; at < end; ++at) {
      if (const auto* put = drawn_.script[at].as<Put>())
        variation_.insert(part_of_put(*put, 0, middle));
      else if (drawn_.script[at].as<SetLayer>() != nullptr)
        variation_.insert(drawn_.script[at]);
    }
    variation_.insert(Op::of(SetLayer{layer_}));
    variation_.pair(begin, part_of_start(start, middle, tokens));
    std::set<std::int64_t> put_now;
    for (std::size_t at = begin + 1; at < end; ++at) {
      const Op& op = drawn_.script[at];
      note(at);
      if (const auto* put = op.as<Put>()) {
        put_now.insert(layer_);
        variation_.pair(at, part_of_put(*put, middle, tokens));
      } else if (op.as<Get>() == nullptr) {
        variation_.pair(at, op);
      } else if (put_now.contains(layer_)) {
        variation_.pair(at, op,
                        [permuted_v = permuted_v_, rest = tokens - middle](const auto& seen) {
                          return visible_rows(seen, permuted_v, rest);
                        });
      } else {
        variation_.insert(op);  // before the put it shows what was there before
      }
    }
  }

  const Drawn& drawn_;
  bool permuted_v_;
  std::int64_t layer_ = 0;
  Variation variation_;
};

// ---- placement_does_not_show ----

// Cells that each member has at least (OK-14). Memory that may be as long as the capacity counts as
// not bounded (OK-11, OK-12).
std::int64_t least_cells(const Drawn& drawn) {
  std::int64_t least = 0;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const auto* init = drawn.script[at].as<Init>();
    if (init == nullptr || !drawn.succeeded(at)) continue;
    least = std::numeric_limits<std::int64_t>::max();
    for (const CacheConfig& member : members_of(drawn.kind, drawn.setup)) {
      const std::int64_t memory = std::max(member.window.value_or(0), member.memory.value_or(0));
      const bool bounded = memory > 0 && memory + 1 < init->capacity;
      const std::int64_t rows =
          memory > 0 ? std::min<std::int64_t>(memory, init->capacity) : init->capacity;
      least = std::min(least, init->max_sequences * rows + (bounded ? init->max_batch : 0));
    }
  }
  return least;
}

// The Canonical that leaves of an observation what does not tell cells; nothing to compare: null.
std::optional<Canonical> without_cells(const Op& op, const WrittenLayers& written,
                                       bool permuted_v) {
  if (op.as<Remove>() != nullptr) return error_only;  // shift calls tell cells
  if (op.as<Get>() == nullptr) return Canonical();
  if (!written.complete()) return std::nullopt;
  return [permuted_v](const Observation& seen) { return visible_rows(seen, permuted_v); };
}

bool belongs_to_pass(const Op& op) {
  return op.as<SetLayer>() != nullptr || op.as<Put>() != nullptr || op.as<Get>() != nullptr ||
         op.as<SetCausal>() != nullptr;
}

// The highest position that each sequence had in any pass.
class Newest {
 public:
  // Whether a pass only goes on from there.
  [[nodiscard]] bool goes_on(const StartForward& pass) const {
    for (std::size_t row = 0; row < pass.seqs.size(); ++row) {
      const auto found = newest_.find(pass.seqs[row]);
      if (found != newest_.end() && pass.positions[row] <= found->second) return false;
    }
    return true;
  }
  void follow(const Op& op) {
    if (const auto* pass = op.as<StartForward>()) {
      for (std::size_t row = 0; row < pass->seqs.size(); ++row)
        raise(pass->seqs[row], pass->positions[row]);
    } else if (const auto* copy = op.as<CopyPrefix>(); copy && newest_.contains(copy->src)) {
      raise(copy->dst, newest_.at(copy->src));
    }
  }

 private:
  void raise(std::int64_t sequence, std::int64_t position) {
    std::int64_t& newest = newest_.try_emplace(sequence, position).first->second;
    newest = std::max(newest, position);
  }

  std::map<std::int64_t, std::int64_t> newest_;
};

// While a pass takes its cells another sequence holds the first ones that are free, and is removed
// after it: each pass that leaves room for that even if nothing had been removed before. With
// bounded memory any pass evicts from all sequences (OK-19): no more than a pass of new positions
// does itself.
Variation in_other_cells(const Drawn& drawn) {
  std::int64_t room = least_cells(drawn);
  const std::int64_t other = unused_sequence(drawn.script);
  const bool permuted_v = permutes_v(drawn);
  Variation variation;
  WrittenLayers written;
  Newest newest;
  bool any = false;
  bool holds = false;
  bool converts_again = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    if (const auto* init = op.as<Init>())
      converts_again = in_groups(init->dtype) && drawn.setup.profile == Profile::kOriginal;
    if (holds && !belongs_to_pass(op)) {
      variation.insert(removal_of(other));
      holds = false;
    }
    if (const StartForward* pass = started_pass(drawn, at)) {
      room -= std::ssize(pass->seqs);
      holds = room > 0 && (is_causal(drawn.kind) || newest.goes_on(*pass));
      const auto wanted = static_cast<std::int64_t>((at + drawn.script.size()) % 4) + 1;
      if (holds) variation.insert(pass_of(other, std::min(room, wanted)));
      any = any || holds;
    }
    if (drawn.succeeded(at)) newest.follow(op);
    if (drawn.succeeded(at) || op.as<Remove>() != nullptr) written.follow(op);
    if (auto canonical = without_cells(op, written, permuted_v))
      variation.pair(at, op, std::move(*canonical));
    else
      variation.insert(op);
    // OK-67: what the original removes before it meets a shared cell depends on their order. OK-65:
    // which rows it converts again depends on the cells between. OK-69: after close the rows are
    // gone.
    const auto* remove = op.as<Remove>();
    if (remove != nullptr && (drawn.seen[at].failed_with(Code::kOther) ||
                              (converts_again && remove->end != kMaxPosition)))
      break;
    if (op.as<Close>() != nullptr && drawn.succeeded(at)) break;
  }
  return any ? std::move(variation) : Variation();
}

// ---- order_of_independent_sequences ----

// Sequences get the numbers in reverse.
Variation renamed(const Drawn& drawn) {
  const std::set<std::int64_t> named = sequences_of(drawn.script);
  if (named.size() < 2) return {};
  std::map<std::int64_t, std::int64_t> names;
  for (auto [from, to] = std::pair(named.begin(), named.rbegin()); from != named.end();
       ++from, ++to)
    names[*from] = *to;
  const auto name = [&](std::int64_t number) { return names.at(number); };
  Variation variation;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    Op op = drawn.script[at];
    if (const auto* start = op.as<StartForward>()) {
      StartForward other = *start;
      std::ranges::transform(other.seqs, other.seqs.begin(), name);
      op = Op::of(std::move(other));
    }
    for (const char* member : {"seq", "src", "dst"}) op = with_renamed(op, member, name);
    variation.pair(at, std::move(op));
  }
  return variation;
}

// ---- a_b_a ----

// Before each pass another sequence has one, and is removed.
Variation visited(const Drawn& drawn) {
  Variation variation;
  const std::int64_t visitor = unused_sequence(drawn.script);
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    if (started_pass(drawn, at) != nullptr) {
      variation.insert(pass_of(visitor, 1 + static_cast<std::int64_t>(at % 3)));
      variation.insert(removal_of(visitor));
      any = true;
    }
    variation.pair(at, drawn.script[at]);
  }
  return any ? variation : Variation();
}

}  // namespace

std::vector<const Law*> laws() {
  static const std::array kLaws{
      MetamorphicLaw("prefill_in_chunks",
                     "rows that are given in two parts show the same as given at once", kLongScript,
                     {.how = "rows appended in two parts",
                      // Bounded memory evicts at the beginning of each pass, by its lowest position
                      // (OK-18): two passes rightly evict more than one.
                      .applies = is_causal,
                      .transformation = [](const Drawn& drawn) { return InChunks(drawn).make(); }}),
      MetamorphicLaw("placement_does_not_show", "which blocks or cells hold the rows does not show",
                     kLongScript,
                     {.how = "other cells in use",
                      .applies =
                          [](const CacheKind& kind) {
                            const auto member_kind = member_kind_of(kind);
                            return kind.contract == kind_of(MemberKind::kCausal).contract &&
                                   member_kind && *member_kind != MemberKind::kEncoder;
                          },
                      .transformation = in_other_cells}),
      MetamorphicLaw(
          "order_of_independent_sequences",
          "what is done to one cache or sequence does not depend on when others are used, or on "
          "names",
          kLongScript,
          {.how = "with other sequence numbers",
           .applies =
               [](const CacheKind& kind) { return kind.contract == wrapper_kind().contract; },
           .transformation = renamed}),
      MetamorphicLaw("a_b_a", "what is added and taken back again leaves no trace", kLongScript,
                     {.how = "with an append and a rollback inserted",
                      // With bounded memory any pass evicts from all sequences (OK-19).
                      .applies = is_causal,
                      .transformation = visited})};
  return {&kLaws[0], &kLaws[1], &kLaws[2], &kLaws[3]};
}

}  // namespace kvo::positional
