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
Ids RadixScript::rows_for_call(std::int64_t most) {
  Ids rows;
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
    const Ids slots = row < 0 ? Ids{} : rows_[static_cast<std::size_t>(row)];
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
    const Ids slots = row < 0 ? Ids{} : rows_[static_cast<std::size_t>(row)];
    what.seq_lens.push_back(std::ssize(slots) + 1);
    what.last_slots.push_back(slots.empty() ? -1 : slots.back());
  }
  return Op::of(std::move(what));
}
Op RadixScript::free_slots() {
  if (rows_.empty()) return alloc();
  const std::size_t at = draw().below(rows_.size());
  Ids slots = std::move(rows_[at]);
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(at));
  if (draw().percent(30)) std::ranges::reverse(slots);
  return Op::of(FreeSlots{std::move(slots)});
}
Op RadixScript::free_segment() {
  if (rows_.empty()) return alloc();
  Ids& row = rows_[draw().below(rows_.size())];
  const std::int64_t size = config_.page_size;
  if (size > 1 && row.size() > 1 && draw().percent(8))
    return Op::of(FreeSegment{Ids(row.begin() + 1, row.end()), 1});
  const std::int64_t start = draw().between(0, std::ssize(row) / size) * size;
  FreeSegment what{Ids(row.begin() + start, row.end()), start};
  row.resize(static_cast<std::size_t>(start));
  return Op::of(std::move(what));
}
Op RadixScript::group() {
  if (!in_group_ || draw().percent(8)) return Op::of(GroupBegin{});
  return Op::of(GroupEnd{});
}

Generator radix_generator() {
  Generator made =
      with_orders<RadixScript>(script_generator<RadixLabel>(radix_kind(), make_radix_case, {}, {}));
  add_states<RadixSeen>(made, {RadixSeen::kEvictedByTlru});
  return made;
}

std::vector<Generator> generators() {
  return {blocks_generator(), radix_generator()};
}

std::span<const OrderWord> RadixScript::order_words() {
  static constexpr auto kWords = std::to_array<OrderWord>({
      order_word<&S::draw_text>("text"),
      order_word<&S::draw_other>("other"),
      order_word<&S::continue_text>("continue_text"),
      order_word<&S::insert_numbered>("insert_text"),
      order_word<&S::insert_pages>("insert_pages"),
      order_word<&S::insert_fresh>("insert_fresh"),
      order_word<&S::insert_first>("insert_first"),
      order_word<&S::insert_by_priority>("insert_by_priority"),
      order_word<&S::insert_in>("insert_in"),
      order_word<&S::match_in>("match_in"),
      order_word<&S::match_text>("match_text"),
      order_word<&S::match_first>("match_first"),
      order_word<&S::touch_numbered>("touch_text"),
      order_word<&S::choose_newest>("choose_newest"),
      order_word<&S::file_first>("file_first"),
      order_word<&S::file_second>("file_second"),
      order_word<&S::file_first_text>("file_first_text"),
      order_word<&S::file_second_text>("file_second_text"),
      order_word<&S::extend_all>("extend_all"),
      order_word<&S::extend_rest>("extend_rest"),
      order_word<&S::extend_more>("extend_more"),
      order_word<&S::end_second>("end_second"),
      order_word<&S::forget_taken>("forget_taken"),
      order_word<&S::free_taken>("free_taken"),
      order_word<&S::evict_units>("evict_units"),
      order_word<&S::row>("any_row"),
      order_word<&S::free_slots>("any_free"),
      order_word<&S::free_segment>("any_free_segment"),
      order_word<&S::finish>("any_finish"),
      order_word<&S::is_tree>("tree"),
      order_word<&S::keeps>("keeps"),
      order_word<&S::has_events>("events_on"),
      order_word<&S::drives_by_hand>("by_hand"),
      order_word<&S::drives_both>("by_both"),
      order_word<&S::has_admitted>("has_admitted"),
      order_word<&S::is_known>("known"),
      order_word<&S::has_row>("has_row"),
      order_word<&S::fills_row>("fills_row"),
      order_word<&S::page_size>("page_size"),
      order_word<&S::tokens_of_pages>("tokens_of_pages"),
      order_word<&S::first_>("first"),
      order_word<&S::second_>("second"),
      order_word<&S::node_>("chosen"),
      order_word<&S::in_tree_>("in_tree"),
      order_word<&S::available_>("available"),
      order_word<&S::in_group_>("in_group"),
  });
  return kWords;
}

}  // namespace kvo::prefix
