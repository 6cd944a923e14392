#include <algorithm>
#include <utility>

#include "properties/prefix/radix_script.hpp"

namespace kvo::prefix {

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
