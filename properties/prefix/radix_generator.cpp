#include <algorithm>
#include <string>
#include <utility>

#include "properties/contract_parts.hpp"
#include "properties/prefix/radix_script.hpp"

namespace kvo::prefix {
namespace {

RadixConfig draw_radix_config(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  const bool is_large = terms.scale == Scale::kLarge;
  RadixConfig config;
  config.policy = draw.one_of({Policy::kLru, Policy::kMru, Policy::kFifo, Policy::kFilo,
                               Policy::kLfu, Policy::kPriority, Policy::kSlru});
  if (terms.profile == Profile::kOriginal && draw.percent(2)) config.policy = Policy::kTlru;
  if (config.policy == Policy::kSlru && draw.percent(50))
    config.slru_threshold = draw.between(1, 4);
  if (draw.percent(50)) config.page_size = is_large ? draw.size(2, 65) : draw.between(2, 4);
  config.slots = is_large ? draw.edge(64, 4'097) : draw.between(4, 50);
  config.eagle = draw.percent(18);
  config.disable = draw.percent(2);
  config.events = !config.eagle && draw.percent(40);
  config.need_sort = draw.percent(30);
  if (terms.scale == Scale::kLong) {
    // Nothing may pile up that an operation copies.
    config.events = config.disable = false;
    config.page_size = draw.between(1, 2);
    config.slots = draw.between(8, 14);
  }
  return config;
}

GeneratedCase make_radix_case(const CaseTerms& terms) {
  RadixConfig config = draw_radix_config(terms);
  auto script = std::make_unique<RadixScript>(terms, config);
  return {.setup = {.profile = terms.profile, .config = Record::of(std::move(config))},
          .ops = std::move(script)};
}

}  // namespace

RadixScript::RadixScript(const CaseTerms& terms, const RadixConfig& config)
    : ScriptGenerator(terms),
      config_(config),
      texts_(config.page_size),
      drive_(draw().one_of({Drive::kTree, Drive::kRequests, Drive::kBoth})),
      owns_slots_(draw().percent(60)),
      documented_(terms.profile == Profile::kDocumented),
      most_tokens_(is_large()  ? std::max<std::int64_t>(config.slots / 3, 1)
                   : is_long() ? 3 * config.page_size
                               : std::max<std::int64_t>(config.slots / 2, 2)),
      most_requests_(is_large() ? draw().edge(4, 129) : draw().between(2, 5)),
      next_slot_(config.slots) {
  if (is_large() && is_tree() && draw().percent(30)) most_tokens_ = 2'100;
  if (is_large() && draw().percent(50)) shape_ = draw().one_of({Shape::kDeep, Shape::kWide});
  // What is disabled has no tree that a request could be filed in.
  if (config_.disable) drive_ = Drive::kTree;
  if (!is_tree() || documented_) owns_slots_ = true;
  if (!is_long()) return;
  // A plain life, or one of many nodes; the others count one thing up.
  if (draw().percent(70))
    theme_ = draw().percent(50) ? Theme::kInserts : Theme::kLocks;
  else
    theme_ = draw().percent(50) ? Theme::kChurn : Theme::kAny;
  if (theme_ == Theme::kAny) return;
  drive_ = Drive::kTree;
  owns_slots_ = false;
}

std::optional<Op> RadixScript::next() {
  if (has_plan() || theme_ == Theme::kAny || draw().percent(8)) return ScriptGenerator::next();
  if (theme_ == Theme::kChurn && std::ssize(nodes_) > 8) return reset();
  if (theme_ == Theme::kChurn) return insert_text(texts_.fresh(tokens_for(config_.page_size)));
  if (theme_ == Theme::kInserts || nodes_.empty())
    return insert_text(Tokens(static_cast<std::size_t>(tokens_for(config_.page_size)), 1));
  return Op::of(Lock{*nodes_.begin()});
}

// Sizes (PX-78).
std::int64_t RadixScript::units(std::int64_t tokens) const {
  return config_.eagle ? std::max<std::int64_t>(tokens - 1, 0) : tokens;
}
std::int64_t RadixScript::tokens_for(std::int64_t units) const {
  return config_.eagle && units > 0 ? units + 1 : units;
}

template <class T>
T RadixScript::in_namespace(T what) {
  if (draw().percent(8)) what.extra = draw().one_of<std::string>({"", "x"});
  if (draw().percent(8)) what.salt = draw().one_of<std::string>({"", "s"});
  return what;
}

// Requests.
std::optional<std::int64_t> RadixScript::pick(bool with_row) {
  if (requests_.empty()) return std::nullopt;
  auto at = requests_.begin();
  std::advance(at, draw().below(requests_.size()));
  for (; with_row && at != requests_.end(); ++at)
    if (at->second.has_row) break;
  if (at == requests_.end()) return std::nullopt;
  return at->first;
}
std::int64_t RadixScript::new_number() {
  for (const auto& [number, known] : requests_)
    if (!known.admitted && draw().percent(30)) return number;
  return is_long() && next_number_ > 40 ? draw().between(0, 40) : next_number_++;
}
Op RadixScript::request() {
  if (is_tree()) return insert();
  if (std::ssize(requests_) >= most_requests_) return step(*pick(false));
  const std::int64_t number = new_number();
  if (const auto at = requests_.find(number); at != requests_.end() && at->second.admitted)
    return step(number);
  FileRequest what{.request = number, .tokens = text()};
  if (shape_ == Shape::kWide) what.tokens = texts_.fresh(draw().between(1, 5));
  if (what.tokens.empty()) what.tokens = texts_.some(draw(), 1);
  if (draw().percent(20)) what.priority = draw().between(-1, 3);
  return Op::of(in_namespace(std::move(what)));
}
Op RadixScript::advance() {
  if (is_tree()) return draw().percent(60) ? insert() : match();
  if (shape_ == Shape::kWide && std::ssize(requests_) < most_requests_ && draw().percent(70))
    return request();
  const auto number = pick(false);
  return number ? step(*number) : request();
}
Op RadixScript::step(std::int64_t request) {
  const Request& known = requests_[request];
  if (!known.admitted) return Op::of(Admit{request});
  const std::int64_t left = std::ssize(known.tokens) - known.row;
  if (left > 0) return extend(request, draw().percent(60) ? left : draw().between(1, left));
  if (draw().percent(40)) return Op::of(Checkpoint{request});
  if (std::ssize(known.tokens) > 2 * most_tokens_ || draw().percent(15))
    return Op::of(Finish{.request = request});
  const std::int64_t more = draw().percent(80) ? 1 : draw().between(2, 5);
  return extend(request, more, texts_.some(draw(), more));
}
Op RadixScript::extend(std::int64_t request, std::int64_t tokens, Tokens append) {
  Extend what{.request = request, .tokens = tokens};
  if (!append.empty()) what.append = std::move(append);
  return Op::of(std::move(what));
}
Op RadixScript::finish() {
  const auto number = pick(true);
  if (!number) return advance();
  Finish what{.request = *number};
  if (draw().percent(40)) what.keep = draw().percent(40);
  return Op::of(std::move(what));
}
Op RadixScript::withdraw() {
  for (const auto& [number, known] : requests_)
    if (known.admitted && !known.has_row) return Op::of(Withdraw{number});
  return advance();
}
Op RadixScript::row() {
  const auto number = pick(true);
  return number ? Op::of(ShowRow{*number}) : advance();
}

// The tree.
Op RadixScript::insert() {
  if (drive_ == Drive::kRequests) return advance();
  if (shape_ == Shape::kWide) return insert_text(texts_.fresh(tokens_for(config_.page_size)));
  if (shape_ == Shape::kDeep && draw().percent(70)) {
    if (std::ssize(deepest_) > most_tokens_) deepest_.clear();
    const std::int64_t more = deepest_.empty() ? tokens_for(config_.page_size) : config_.page_size;
    for (const Token token : texts_.fresh(more)) deepest_.push_back(token);
    return insert_text(deepest_);
  }
  Insert what = in_namespace(Insert{.tokens = text()});
  if (draw().percent(20)) what.priority = draw().between(-1, 3);
  if (draw().percent(20)) what.inserted = draw().between(0, std::ssize(what.tokens));
  return insert_by_hand(std::move(what));
}
Op RadixScript::insert_text(Tokens tokens) {
  return insert_by_hand({.tokens = std::move(tokens)});
}
Op RadixScript::insert_by_hand(Insert what) {
  if (!owns_slots_) {
    if (draw().percent(40)) return Op::of(std::move(what));
    what.slots.emplace();
    // Whole pages of their own, from beyond the pool: nobody else hands these out.
    const std::int64_t size = config_.page_size;
    next_slot_ = (next_slot_ / size + 1) * size;
    for (std::int64_t more = units(std::ssize(what.tokens)); more > 0; --more)
      what.slots->push_back(next_slot_++);
    if (is_long()) next_slot_ = config_.slots;
    return Op::of(std::move(what));
  }
  const std::int64_t wanted =
      units(std::ssize(what.tokens)) / config_.page_size * config_.page_size;
  what.tokens.resize(static_cast<std::size_t>(tokens_for(wanted)));
  inserted_next_ = std::move(what);
  return Op::of(AllocSlots{wanted});
}
Op RadixScript::match() {
  MatchTokens what = in_namespace(MatchTokens{.tokens = text()});
  if (draw().percent(15)) what.limit = draw().between(0, std::ssize(what.tokens) + 1);
  return Op::of(std::move(what));
}
Op RadixScript::touch() {
  TouchTokens what = in_namespace(TouchTokens{.tokens = text()});
  if (draw().percent(15)) what.limit = draw().between(0, std::ssize(what.tokens) + 1);
  return Op::of(std::move(what));
}
Op RadixScript::evict_units(std::int64_t units) {
  if (counts_up() || (documented_ && !owns_slots_)) return state();
  return Op::of(EvictUnits{units});
}
Op RadixScript::evict() {
  return evict_units(draw().percent(15) ? config_.slots : draw().between(-1, 6));
}
Op RadixScript::make_room() {
  if (counts_up() || (documented_ && !owns_slots_)) return state();
  return Op::of(MakeRoom{draw().between(0, config_.slots + 1)});
}
Op RadixScript::lock() {
  if (nodes_.empty()) return advance();
  auto at = nodes_.begin();
  std::advance(at, draw().below(nodes_.size()));
  return Op::of(Lock{*at});
}
Op RadixScript::unlock() {
  if (locks_.empty()) return lock();
  return Op::of(Unlock{locks_[draw().below(locks_.size())]});
}
Op RadixScript::reset() {
  if (counts_up()) return state();
  if (in_group_) return group();
  if (draw().percent(60)) plan(ClearSlots{});
  return Op::of(ResetTree{});
}

// Slots by hand.
Op RadixScript::alloc() {
  if (drive_ != Drive::kBoth) return advance();
  return Op::of(AllocSlots{draw().percent(8) ? config_.slots : draw().between(0, 9)});
}
Numbers RadixScript::rows_for_call(std::int64_t most) {
  Numbers rows;
  const std::int64_t start = draw().between(0, std::max<std::int64_t>(std::ssize(rows_) - 1, 0));
  for (std::int64_t i = start; i < std::ssize(rows_) && std::ssize(rows) < most; ++i)
    if (draw().percent(70)) rows.push_back(i);
  if (rows.empty() || draw().percent(30)) rows.push_back(-1);
  return rows;
}
Op RadixScript::alloc_extend() {
  if (drive_ != Drive::kBoth || (config_.page_size == 1 && !draw().percent(5))) return alloc();
  AllocExtend what;
  called_ = rows_for_call(3);
  for (const std::int64_t row : called_) {
    const Numbers slots = row < 0 ? Numbers{} : rows_[static_cast<std::size_t>(row)];
    what.prefix_lens.push_back(std::ssize(slots));
    what.seq_lens.push_back(std::ssize(slots) + draw().size(0, 2 * config_.page_size + 1));
    what.last_slots.push_back(slots.empty() ? -1 : slots.back());
  }
  return Op::of(std::move(what));
}
Op RadixScript::alloc_decode() {
  if (drive_ != Drive::kBoth || (config_.page_size == 1 && !draw().percent(5))) return alloc();
  AllocDecode what;
  called_ = rows_for_call(5);
  for (const std::int64_t row : called_) {
    const Numbers slots = row < 0 ? Numbers{} : rows_[static_cast<std::size_t>(row)];
    what.seq_lens.push_back(std::ssize(slots) + 1);
    what.last_slots.push_back(slots.empty() ? -1 : slots.back());
  }
  return Op::of(std::move(what));
}
Op RadixScript::free_slots() {
  if (rows_.empty()) return alloc();
  const std::size_t at = draw().below(rows_.size());
  Numbers slots = std::move(rows_[at]);
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(at));
  if (draw().percent(30)) std::ranges::reverse(slots);
  return Op::of(FreeSlots{std::move(slots)});
}
Op RadixScript::free_segment() {
  if (rows_.empty()) return alloc();
  Numbers& row = rows_[draw().below(rows_.size())];
  const std::int64_t size = config_.page_size;
  if (size > 1 && row.size() > 1 && draw().percent(8))
    return Op::of(FreeSegment{Numbers(row.begin() + 1, row.end()), 1});
  const std::int64_t start = draw().between(0, std::ssize(row) / size) * size;
  FreeSegment what{Numbers(row.begin() + start, row.end()), start};
  row.resize(static_cast<std::size_t>(start));
  return Op::of(std::move(what));
}
Op RadixScript::group() {
  if (!in_group_ || draw().percent(8)) return Op::of(GroupBegin{});
  return Op::of(GroupEnd{});
}

Generator radix_generator() {
  Generator made = script_generator<RadixLabel>(radix_kind(), make_radix_case, {}, {});
  add_states<RadixSeen>(made, {RadixSeen::kEvictedByTlru});
  return made;
}

std::vector<Generator> generators() {
  return {blocks_generator(), radix_generator()};
}

// ---- planned orders of operations ----

// Parts.
Tokens RadixScript::first_pages(const Tokens& tokens, std::int64_t count) const {
  const std::int64_t kept = std::min(std::ssize(tokens), tokens_for(count * config_.page_size));
  return {tokens.begin(), tokens.begin() + kept};
}
std::optional<Op> RadixScript::request_of(std::int64_t& number, Tokens tokens) {
  if (is_tree() || tokens.empty()) return std::nullopt;
  number = next_number_++;
  return Op::of(FileRequest{.request = number, .tokens = std::move(tokens)});
}

// What a lookup found goes before it is locked (PX-84); what that spoils ends with the tree.
std::optional<Op> RadixScript::evicted_between_match_and_lock(std::size_t number) {
  if (!is_tree() || !keeps()) return std::nullopt;
  switch (number) {
    case 0:
      text_ = pages(2);
      return insert_text(text_);
    case 1:
      return match_of(text_);
    case 2:
      node_ = newest_;
      return evict_units(in_tree_);
    case 3:
      return Op::of(Lock{node_});
    case 5:
      return Op::of(ResetTree{});
    default:
      return state();
  }
}

// The tree keeps the slots that it has (PX-74).
std::optional<Op> RadixScript::same_content_twice(std::size_t number) {
  if (drive_ == Drive::kRequests) return std::nullopt;
  switch (number) {
    case 0:
      text_ = pages(2);
      return insert_text(text_);
    case 1:
      return insert_text(text_);
    case 2: {
      Tokens longer = text_;
      const Tokens behind = pages(1);
      longer.insert(longer.end(), behind.begin(), behind.end());
      return insert_text(std::move(longer));
    }
    case 4:
      return match_of(text_);
    default:
      return state();
  }
}

// All slots are pinned by one request, and another one asks.
std::optional<Op> RadixScript::full_pool_of_pinned(std::size_t number) {
  switch (number) {
    case 1:
      return request_of(first_,
                        texts_.fresh(std::max<std::int64_t>(available_ - config_.page_size, 1)));
    case 2:
      return Op::of(Admit{first_});
    case 3:
      return extend(first_, std::ssize(requests_[first_].tokens));
    case 4:
      if (!requests_[first_].has_row) return std::nullopt;
      return Op::of(Checkpoint{first_});
    case 5:
      return request_of(second_, texts_.fresh(config_.page_size * 2));
    case 6:
      return Op::of(Admit{second_});
    case 7:
      return extend(second_, std::ssize(requests_[second_].tokens));
    case 8:
      if (requests_[second_].has_row) return Op::of(Finish{.request = second_});
      if (!requests_[second_].admitted) return state();
      return Op::of(Withdraw{second_});
    case 9:
      if (!requests_.contains(first_)) return std::nullopt;
      return Op::of(Finish{.request = first_});
    default:
      return state();
  }
}

// A node is locked, and a lookup ends within it (PX-65).
std::optional<Op> RadixScript::split_under_a_lock(std::size_t number) {
  if (!is_tree() || !keeps()) return std::nullopt;
  switch (number) {
    case 0:
      text_ = pages(3);
      return insert_text(text_);
    case 1:
      node_ = newest_;
      return Op::of(Lock{node_});
    case 2:
      return match_of(first_pages(text_, draw().between(1, 2)));
    case 3:
      return evict_units(in_tree_);
    case 5:
      return Op::of(Unlock{node_});
    case 6:
      return evict_units(1);
    default:
      return state();
  }
}

// Texts that end before, at and behind the end of a page (PX-62).
std::optional<Op> RadixScript::around_a_page(std::size_t number) {
  if (!is_tree()) return std::nullopt;
  const std::int64_t units = draw().between(1, 2) * config_.page_size + draw().between(-1, 1);
  switch (number) {
    case 0:
      text_ = pages(3);
      return insert_text(texts_.fresh(units));
    case 3:
      return insert_text(text_);
    case 7:
      return state();
    default: {
      Tokens tokens = text_;
      tokens.resize(static_cast<std::size_t>(std::min(tokens_for(units), std::ssize(text_))));
      return number < 3 ? insert_text(std::move(tokens)) : match_of(std::move(tokens));
    }
  }
}

// A request files its prompt, its output, and ends: output goes first (PX-87).
std::optional<Op> RadixScript::prompt_parted_from_output(std::size_t number) {
  if (number > 0 && number < 9 && !requests_.contains(first_)) return std::nullopt;
  switch (number) {
    case 0:
      return request_of(first_, pages(draw().between(1, 2)));
    case 1:
      return Op::of(Admit{first_});
    case 2:
      return extend(first_, std::ssize(requests_[first_].tokens) - requests_[first_].row);
    case 3:
      if (!requests_[first_].has_row) return std::nullopt;
      return draw().percent(50) ? Op::of(Checkpoint{first_}) : row();
    case 4:
    case 5: {
      const std::int64_t more = number == 4 ? 1 : config_.page_size;
      return extend(first_, more, texts_.fresh(more));
    }
    case 6:
      if (std::ssize(requests_[first_].tokens) < requests_[first_].row) return std::nullopt;
      return Op::of(Checkpoint{first_});
    case 7:
      return Op::of(ShowRow{first_});
    case 8:
      return Op::of(Finish{.request = first_});
    case 10:
      return evict_units(1);
    default:
      return state();
  }
}

// Texts of different age, use and priority go one by one (PX-71).
std::optional<Op> RadixScript::order_of_eviction(std::size_t number) {
  if (!is_tree()) return std::nullopt;
  switch (number) {
    case 0:
      text_ = pages(1);
      return insert_by_hand({.tokens = text_, .priority = draw().between(0, 2)});
    case 1:
      other_ = pages(2);
      return insert_by_hand({.tokens = other_, .priority = draw().between(0, 2)});
    case 2:
      return insert_by_hand({.tokens = pages(1), .priority = draw().between(0, 2)});
    case 3:
      return Op::of(TouchTokens{.tokens = draw().percent(50) ? text_ : other_});
    case 4:
      return insert_text(draw().percent(50) ? text_ : other_);
    case 5:
      return insert_text(text_);
    case 6:
    case 9:
      return state();
    default:
      return evict_units(config_.page_size);
  }
}

std::optional<Op> RadixScript::reset_while_in_use(std::size_t number) {
  if (!is_tree() || !keeps()) return std::nullopt;
  switch (number) {
    case 0:
      text_ = pages(2);
      return insert_text(text_);
    case 1:
      node_ = newest_;
      return Op::of(Lock{node_});
    case 2:
      return Op::of(ResetTree{});
    case 3:
      return Op::of(Unlock{node_});
    case 4:
      return match_of(text_);
    case 5:
      return all_slots();
    default:
      return state();
  }
}

// The tree goes while a request holds a part of it.
std::optional<Op> RadixScript::reset_under_a_request(std::size_t number) {
  if (in_group_) return std::nullopt;
  switch (number) {
    case 0:
      return request_of(first_, pages(2));
    case 1:
      return Op::of(Admit{first_});
    case 2:
      return extend(first_, std::ssize(requests_[first_].tokens) - requests_[first_].row);
    case 3:
      return requests_[first_].has_row ? Op::of(Checkpoint{first_}) : state();
    case 4:
      return Op::of(ResetTree{});
    case 6:
      return Op::of(ClearSlots{});
    default:
      return state();
  }
}

// What is stored, or removed, in a row is told at once (PX-77).
std::optional<Op> RadixScript::events_joined(std::size_t number) {
  if (!is_tree() || !config_.events) return std::nullopt;
  switch (number) {
    case 0:
      return events();
    case 1:
      text_ = pages(2);
      return insert_text(text_);
    case 2:
      other_ = text_;
      for (const Token token : pages(2)) other_.push_back(token);
      return insert_text(other_);
    case 3:
      if (draw().percent(50)) return events();
      return match_of(first_pages(text_, 1));
    case 4:
      return insert_text(pages(1));
    case 5:
      return evict_units(in_tree_);
    default:
      return events();
  }
}

// Equal tokens never meet where extra key or salt differ (PX-63).
std::optional<Op> RadixScript::same_tokens_in_namespaces(std::size_t number) {
  if (!is_tree()) return std::nullopt;
  switch (number) {
    case 0:
      text_ = pages(2);
      return insert_by_hand({.tokens = text_, .extra = "x"});
    case 1:
      return match_of(text_);
    case 2:
      return Op::of(MatchTokens{.tokens = text_, .extra = ""});
    case 3:
      return insert_by_hand({.tokens = text_, .extra = "", .salt = "s"});
    case 4:
      return Op::of(MatchTokens{.tokens = text_, .salt = "s"});
    case 5:
      return Op::of(MatchTokens{.tokens = text_, .extra = "x", .salt = ""});
    case 6:
      return events();
    default:
      return state();
  }
}

// A count goes below 0, and a lock then protects nothing (PX-79); at the end it is as before.
std::optional<Op> RadixScript::unlocked_too_often(std::size_t number) {
  if (!is_tree() || !keeps()) return std::nullopt;
  switch (number) {
    case 0:
      return insert_text(pages(1));
    case 1:
      node_ = newest_;
      return Op::of(Unlock{node_});
    case 3:
    case 4:
      return Op::of(Lock{node_});
    case 5:
      return Op::of(Unlock{node_});
    default:
      return state();
  }
}

// A slot is freed twice, and gets two owners (PX-85); then all begins anew.
std::optional<Op> RadixScript::freed_twice(std::size_t number) {
  if (drive_ != Drive::kBoth || in_group_) return std::nullopt;
  for (const auto& [request, known] : requests_)
    if (known.admitted && number == 0) return std::nullopt;
  switch (number) {
    case 0:
      taken_.clear();
      return Op::of(AllocSlots{config_.page_size});
    case 1:
    case 2:
      if (taken_.empty()) return std::nullopt;
      if (!rows_.empty() && rows_.back() == taken_) rows_.pop_back();
      return Op::of(FreeSlots{taken_});
    case 4:
      return Op::of(AllocSlots{available_});
    case 6:
      return Op::of(ResetTree{});
    case 7:
      return Op::of(ClearSlots{});
    default:
      return state();
  }
}

std::optional<Op> RadixScript::freed_in_a_group(std::size_t number) {
  if (drive_ != Drive::kBoth) return std::nullopt;
  switch (number) {
    case 0:
      return in_group_ ? state() : Op::of(GroupBegin{});
    case 1:
    case 3:
      return free_slots();
    case 2:
      return free_segment();
    case 4:
      return evict_units(draw().between(1, 4));
    case 5:
      return finish();
    case 7:
      return in_group_ ? Op::of(GroupEnd{}) : state();
    default:
      return state();
  }
}

// What stays held of a sequence is a prefix (PX-7).
std::optional<Op> RadixScript::tail_evicted_first(std::size_t number) {
  if (!is_tree()) return std::nullopt;
  switch (number) {
    case 0:
      text_ = pages(3);
      return insert_text(first_pages(text_, 1));
    case 1:
      return insert_text(first_pages(text_, 2));
    case 2:
      return insert_text(text_);
    case 4:
    case 6:
      return evict_units(1);
    case 8:
      return state();
    default:
      return match_of(text_);
  }
}

std::optional<Op> RadixScript::preempted_and_resumed(std::size_t number) {
  if (number > 0 && number < 4 && !requests_.contains(first_)) return std::nullopt;
  if (number > 6 && number < 10 && !requests_.contains(second_)) return std::nullopt;
  switch (number) {
    case 0:
      text_ = pages(2);
      return request_of(first_, text_);
    case 1:
      return Op::of(Admit{first_});
    case 2:
      return extend(first_, std::ssize(requests_[first_].tokens) - requests_[first_].row);
    case 3:
      if (!requests_[first_].has_row) return std::nullopt;
      return Op::of(Finish{.request = first_, .keep = draw().percent(70)});
    case 4:
      return evict_units(draw().between(0, config_.page_size));
    case 6:
      return request_of(second_, text_);
    case 7:
      return Op::of(Admit{second_});
    case 8:
      return extend(second_, std::ssize(requests_[second_].tokens) - requests_[second_].row);
    case 9:
      return requests_[second_].has_row ? Op::of(ShowRow{second_}) : state();
    default:
      return state();
  }
}

// A lookup uses the first page of two; what of the second one? (PX-79, PX-65)
std::optional<Op> RadixScript::rest_of_a_partial_hit(std::size_t number) {
  if (!is_tree()) return std::nullopt;
  switch (number) {
    case 0:
      text_ = pages(2);
      return insert_text(text_);
    case 1:
      return insert_text(pages(1));
    case 2:
      return match_of(first_pages(text_, 1));
    case 3:
    case 5:
      return evict_units(1);
    default:
      return state();
  }
}

}  // namespace kvo::prefix
