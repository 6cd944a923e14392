#include "optimized/prefix/radix_cache.hpp"

#include <algorithm>

#include "optimized/memory/growth.hpp"

namespace kvo::optimized {

using prefix::CheckpointReturns;
using prefix::Extended;
using prefix::Ids;
using prefix::IdsView;
using prefix::Insert;
using prefix::InsertReturns;
using prefix::Policy;
using prefix::Quirk;
using prefix::RadixConfig;
using prefix::RadixEvicted;
using prefix::RadixHit;
using prefix::ShowRowReturns;
using prefix::TokensView;

namespace {

Error wrong(const char* why) {
  return fail(Code::kPrecondition, why);
}

}  // namespace

Result<std::unique_ptr<prefix::RadixCache>> PrefixRadixCache::make(const RadixConfig& config,
                                                                   QuirkSet<Quirk> quirks) {
  return std::make_unique<PrefixRadixCache>(config, quirks);
}

PrefixRadixCache::PrefixRadixCache(const RadixConfig& config, QuirkSet<Quirk> quirks)
    : config_(config),
      quirks_(quirks),
      tree_(config, quirks),
      slots_(config, quirks.has(Quirk::kFreesAnything)) {}

// ---- The tree ----

PrefixRadixCache::Id PrefixRadixCache::look_up(TokensView tokens, Namespaces::Id space,
                                               Ids* slots) {
  if (slots != nullptr) slots->clear();
  if (config_.disable) return RadixTree::kRoot;
  const Walk walk = tree_.find(tokens, space);
  if (walk.units == 0) return RadixTree::kRoot;
  RadixTree::Room room;
  if (walk.child != kNone) {
    tree_.reserve(1, 0);
    tree_.prepare(walk, room, false);
  }
  if (slots != nullptr) optimized::make_room(*slots, static_cast<std::size_t>(walk.length));
  const Id node = tree_.pass(walk, room, nullptr);
  if (slots == nullptr) return node;
  slots->resize(static_cast<std::size_t>(walk.length));
  tree_.write_slots(node, walk.length, 0, slots->data());
  return node;
}

Result<RadixHit> PrefixRadixCache::match(const prefix::MatchTokens& op) {
  const Id node = look_up(looked_up(op), tree_.spaces().find(space_of(op)), &shown_);
  return RadixHit{std::ssize(shown_), tree_.number(node), shown_};
}

Status PrefixRadixCache::touch(const prefix::TouchTokens& op) {
  (void)look_up(looked_up(op), tree_.spaces().find(space_of(op)), nullptr);
  return {};
}

Result<InsertReturns> PrefixRadixCache::insert(const Insert& op) {
  if (config_.disable) return InsertReturns{};
  const prefix::Namespace named = space_of(op);
  const Walk walk = tree_.find(op.tokens, tree_.spaces().find(named));
  if (op.slots && std::ssize(*op.slots) < walk.units) return wrong("slots: fewer than units");
  RadixTree::Room room;
  tree_.reserve(2, walk.units - walk.length);
  tree_.prepare(walk, room, true);
  const Namespaces::Id space = tree_.spaces().use(named);
  const Id node = tree_.insert(walk, room, {op.priority, op.inserted}, space,
                               op.slots ? op.slots->data() : nullptr);
  tree_.spaces().leave(space);
  return InsertReturns{walk.length, tree_.number(node)};
}

void PrefixRadixCache::prepare_evict(std::int64_t units) {
  nodes_.clear();
  going_.clear();
  if (config_.disable || units <= 0) return;
  const std::size_t most = std::min(tree_.size(), static_cast<std::size_t>(units));
  optimized::make_room(nodes_, most);
  optimized::make_room(going_, most);
  slots_.reserve(static_cast<std::size_t>(tree_.total()));
  tree_.reserve(0, tree_.total());
}

// PX-70
Result<std::int64_t> PrefixRadixCache::evict_until(std::int64_t units) {
  if (config_.disable || tree_.nothing_to_evict()) return 0;
  if (config_.policy == Policy::kTlru) return wrong("policy: tlru cannot tell what goes first");
  std::int64_t gone = 0;
  while (gone < units && !tree_.nothing_to_evict()) {
    const Id leaf = tree_.first_leaf();
    if (tree_.gone(leaf) || !slots_.mark_free(tree_.slots(leaf))) {
      for (; !going_.empty(); going_.pop_back()) {
        tree_.put_back(going_.back());
        slots_.mark_out(tree_.slots(going_.back()));
      }
      return wrong("what goes first has gone already, or its slots");
    }
    tree_.take_off(leaf);
    going_.push_back(leaf);
    gone += tree_.units(leaf);
  }
  for (const Id leaf : going_) tree_.list_parent(leaf);
  for (const Id leaf : going_) {
    slots_.give_segment(tree_.slots(leaf));
    nodes_.push_back(tree_.number(leaf));
    tree_.drop(leaf);
  }
  return gone;
}

Result<RadixEvicted> PrefixRadixCache::evict(std::int64_t units) {
  prepare_evict(units);
  const auto gone = evict_until(units);
  if (!gone) return gone.error();
  return RadixEvicted{*gone, nodes_};
}

Result<IdsView> PrefixRadixCache::make_room(std::int64_t slots) {
  nodes_.clear();
  const std::int64_t missing = slots - slots_.available();
  if (missing <= 0) return IdsView(nodes_);
  const auto gone = evict(missing);
  if (!gone) return gone.error();
  return IdsView(nodes_);
}

Result<PrefixRadixCache::Id> PrefixRadixCache::known(std::int64_t number) const {
  const Id node = tree_.find(number);
  if (node == kNone) return wrong("node: it is not in the tree");
  return node;
}

Result<std::int64_t> PrefixRadixCache::lock(std::int64_t number) {
  const auto node = known(number);
  if (!node) return node.error();
  return tree_.lock(*node);
}

Result<std::int64_t> PrefixRadixCache::unlock(std::int64_t number) {
  const auto node = known(number);
  if (!node) return node.error();
  if (!tree_.may_unlock(*node)) return wrong("node: it is not locked");
  return tree_.unlock(*node);
}

Status PrefixRadixCache::reset() {
  tree_.reset();
  return {};
}

Result<IdsView> PrefixRadixCache::all_slots() {
  shown_.clear();
  tree_.all_slots(shown_);
  if (shown_.empty() && quirks_.has(Quirk::kNoSlotsAborts)) return wrong("the tree is empty");
  return IdsView(shown_);
}

Status PrefixRadixCache::clear() {
  slots_.clear();
  return {};
}

// ---- Requests ----

PrefixRadixCache::Request* PrefixRadixCache::find(std::int64_t request) const {
  const auto at = static_cast<std::size_t>(request);
  return at < requests_.size() ? requests_[at].get() : nullptr;
}

Status PrefixRadixCache::request(const prefix::FileRequest& op) {
  const auto at = static_cast<std::size_t>(op.request);
  if (at >= requests_.size()) {
    optimized::make_room(requests_, at + 1 - requests_.size());
    requests_.resize(at + 1);
  }
  std::unique_ptr<Request> fresh;
  if (!requests_[at]) fresh = std::make_unique<Request>();
  Request& request = fresh ? *fresh : *requests_[at];
  if (request.node) return wrong("request: it is admitted");
  optimized::make_room(request.tokens,
                       op.tokens.size() - std::min(op.tokens.size(), request.tokens.size()));
  const Namespaces::Id space = tree_.spaces().use(space_of(op));
  if (request.space != Namespaces::kNone) tree_.spaces().leave(request.space);
  request.space = space;
  request.tokens.assign(op.tokens.begin(), op.tokens.end());
  request.prompt = std::ssize(op.tokens);
  request.priority = op.priority;
  if (fresh) requests_[at] = std::move(fresh);
  return {};
}

Result<RadixHit> PrefixRadixCache::admit(std::int64_t number) {
  Request* const request = find(number);
  if (request == nullptr) return never_made();
  if (request->node) return wrong("request: it is admitted");
  const TokensView all = request->tokens;
  const Id node =
      look_up(all.first(all.empty() ? 0 : all.size() - 1), request->space, &request->slots);
  tree_.lock(node);
  request->node = tree_.number(node);
  request->has_row = false;
  request->protected_ = request->inserted = 0;
  return RadixHit{std::ssize(request->slots), *request->node, request->slots};
}

Result<Extended> PrefixRadixCache::extend(std::int64_t number, std::int64_t tokens,
                                          TokensView append) {
  Request* const request = find(number);
  if (request == nullptr) return never_made();
  if (!request->node) return wrong("request: it is not admitted");
  if (!request->has_row)
    if (const auto node = known(*request->node); !node) return node.error();
  const bool paged = config_.page_size > 1;
  const std::int64_t room = tokens + (paged ? config_.page_size : 0) - slots_.available();
  const std::int64_t held = std::ssize(request->slots);
  optimized::make_room(request->tokens, append.size());
  prepare_evict(room);
  slots_.reserve(0);
  // More than all slots are refused for want of them, not of memory.
  if (tokens <= slots_.available() + tree_.total() + config_.page_size) {
    optimized::make_room(request->slots, static_cast<std::size_t>(tokens));
    slots_.reserve_result(tokens);
  }
  const auto gone = room > 0 ? evict_until(room) : Result<std::int64_t>(0);
  if (!gone) return gone.error();
  request->tokens.insert(request->tokens.end(), append.begin(), append.end());
  const std::int64_t end = held + tokens;
  const std::int64_t last = held == 0 ? -1 : request->slots.back();
  const auto got =
      paged ? slots_.alloc_extend({&held, 1}, {&end, 1}, {&last, 1}) : slots_.alloc(tokens);
  if (!got) return Extended{.exhausted = true, .slots = {}, .nodes = nodes_};
  if (!request->has_row) request->protected_ = held;
  request->has_row = true;
  request->slots.insert(request->slots.end(), got->begin(), got->end());
  return Extended{.exhausted = false, .slots = *got, .nodes = nodes_};
}

IdsView PrefixRadixCache::part(const Request& request, std::int64_t begin, std::int64_t end) const {
  return IdsView(request.slots)
      .subspan(static_cast<std::size_t>(begin),
               static_cast<std::size_t>(std::max<std::int64_t>(end - begin, 0)));
}

// Whether the lock of a request can be taken back.
Status PrefixRadixCache::may_end(const Request& request) const {
  const auto node = known(*request.node);
  if (!node) return node.error();
  if (!tree_.may_unlock(*node)) return wrong("node: it is not locked");
  return {};
}

void PrefixRadixCache::prepare(const Request& request, Filing& filing) {
  filing.key = TokensView(request.tokens).first(request.slots.size());
  filing.walk = tree_.find(filing.key, request.space);
  const std::int64_t units = filing.walk.units;
  const std::int64_t parted = tree_.units_of(std::min(request.prompt, std::ssize(request.slots)));
  filing.parted = parted < units ? parted : 0;
  tree_.reserve(3, units - filing.walk.length);
  tree_.prepare(filing.walk, filing.room, true);
  if (filing.parted == 0) return;
  filing.spare.emplace(tree_.spare(units));
  filing.other_spare.emplace(tree_.spare(units));
}

// PX-87. Requires  room in the allocator.
void PrefixRadixCache::file(Request& request, Filing& filing) noexcept {
  const std::int64_t units = filing.walk.units;
  tree_.insert(filing.walk, filing.room, {request.priority, request.inserted}, request.space,
               request.slots.data());
  request.inserted = std::max(request.inserted, units);
  filing.spare.reset();
  filing.other_spare.reset();
  if (filing.parted > 0) {
    const Walk walk = tree_.find(filing.key.first(static_cast<std::size_t>(
                                     std::min(request.prompt, std::ssize(request.slots)))),
                                 request.space);
    RadixTree::Room room;
    tree_.prepare(walk, room, true);
    const std::int64_t lifted = quirks_.has(Quirk::kPromptIsLifted) ? 1 : 0;
    tree_.insert(walk, room, {request.priority + lifted, filing.parted}, request.space,
                 request.slots.data());
  }
  slots_.give_segment(part(request, request.protected_, filing.walk.length));
  Id node = RadixTree::kRoot;
  if (units > 0) {
    RadixTree::Room room;
    const Walk walk = tree_.find(filing.key, request.space);
    node = tree_.pass(walk, room, nullptr);
    tree_.write_slots(node, walk.length, request.protected_, request.slots.data());
  }
  request.protected_ = units;
  tree_.unlock(tree_.find(*request.node));
  tree_.lock(node);
  request.node = tree_.number(node);
}

Result<CheckpointReturns> PrefixRadixCache::checkpoint(std::int64_t number) {
  Request* const request = find(number);
  if (request == nullptr) return never_made();
  if (!request->has_row) return wrong("request: it has no row");
  if (request->slots.size() > request->tokens.size())
    return wrong("request: it has more slots than tokens");
  if (config_.disable) return CheckpointReturns{*request->node, request->protected_};
  if (const Status good = may_end(*request); !good) return good.error();
  Filing filing;
  prepare(*request, filing);
  slots_.reserve(request->slots.size());
  if (!slots_.mark_free(part(*request, request->protected_, filing.walk.length)))
    return wrong("slots: one is not handed out");
  file(*request, filing);
  return CheckpointReturns{*request->node, request->protected_};
}

Status PrefixRadixCache::withdraw(std::int64_t number) {
  Request* const request = find(number);
  if (request == nullptr) return never_made();
  if (!request->node || request->has_row) return wrong("request: it is not admitted, or has a row");
  if (Status good = may_end(*request); !good) return good;
  tree_.unlock(tree_.find(*request->node));
  request->node.reset();
  request->slots.clear();
  return {};
}

// PX-88
Status PrefixRadixCache::finish(std::int64_t number, bool keep) {
  Request* const request = find(number);
  if (request == nullptr) return never_made();
  if (!request->has_row) return wrong("request: it has no row");
  if (keep && request->slots.size() > request->tokens.size())
    return wrong("request: it has more slots than tokens");
  if (Status good = may_end(*request); !good) return good;
  const std::int64_t end = std::ssize(request->slots);
  if (config_.disable) {
    if (Status done = slots_.free(part(*request, request->protected_, end)); !done) return done;
  } else {
    Filing filing;
    if (keep) prepare(*request, filing);
    slots_.reserve(request->slots.size());
    const std::int64_t own = keep ? filing.walk.units : request->protected_;
    const IdsView twice = part(*request, request->protected_, keep ? filing.walk.length : 0);
    if (!slots_.mark_free(twice)) return wrong("slots: one is not handed out");
    if (!slots_.mark_free(part(*request, own, end))) {
      slots_.mark_out(twice);
      return wrong("slots: one is not handed out");
    }
    if (keep) file(*request, filing);
    slots_.give_segment(part(*request, own, end));
  }
  tree_.unlock(tree_.find(*request->node));
  request->node.reset();
  request->slots.clear();
  request->has_row = false;
  request->protected_ = request->inserted = 0;
  return {};
}

Result<ShowRowReturns> PrefixRadixCache::row(std::int64_t number) const {
  const Request* const request = find(number);
  if (request == nullptr) return never_made();
  if (!request->has_row) return wrong("request: it has no row");
  return ShowRowReturns{request->slots, request->protected_, request->inserted, *request->node};
}

prefix::ShowTreeReturns PrefixRadixCache::state() const {
  prefix::ShowTreeReturns state;
  tree_.fill(state);
  state.available = slots_.available();
  state.free = slots_.free_list();
  state.staged = slots_.staged_list();
  return state;
}

}  // namespace kvo::optimized
