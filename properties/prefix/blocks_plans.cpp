#include <algorithm>
#include <utility>

#include "properties/prefix/blocks_script.hpp"

namespace kvo::prefix {

// Parts.
Tokens BlocksScript::text_of(std::int64_t tokens) {
  return texts_.fresh(std::clamp<std::int64_t>(tokens, 1, config_.max_model_len));
}
std::optional<Op> BlocksScript::make_for_plan(std::int64_t& number, MakeRequest what) {
  number = unused_number().value_or(next_number_);
  next_number_ = std::max(next_number_, number + 1);
  if (requests_.contains(number) && requests_[number].has_table) return std::nullopt;
  what.request = number;
  what.tokens = text_;
  return Op::of(std::move(what));
}
Op BlocksScript::whole(std::int64_t request, bool adopt) {
  const Request& known = requests_[request];
  if (!adopt) return Op::of(Allocate{.request = request, .tokens = std::ssize(known.tokens)});
  return Op::of(Allocate{.request = request,
                         .tokens = std::ssize(known.tokens) - known.hit_length,
                         .hit_blocks = known.hits,
                         .hit_tokens = known.hit_length});
}
Op BlocksScript::more(std::int64_t request, std::int64_t tokens) {
  const std::int64_t room = config_.max_model_len - requests_[request].computed;
  return Op::of(Allocate{.request = request, .tokens = std::min(tokens, room)});
}
std::optional<Op> BlocksScript::evict_first_block(std::int64_t request) {
  const Numbers& blocks = requests_[request].blocks;
  if (blocks.empty()) return std::nullopt;
  return Op::of(EvictBlocks{{blocks.front()}});
}

// What a lookup found is handed out to others before it is adopted (PX-47).
std::optional<Op> BlocksScript::evicted_between_match_and_allocate(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(2 * config_.block_size + 1);
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return Op::of(FreeRequest{first_});
    case 3:
      return make_for_plan(second_);
    case 5:
      return Op::of(MatchBlocks{second_});
    case 6:
      return take_all(0);
    case 7:
      return release_taken();
    case 8:
      return whole(second_, true);
    default:
      return state();
  }
}

// Two blocks carry one key, and the first of them loses it (PX-31, PX-24).
std::optional<Op> BlocksScript::same_content_twice(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(2 * config_.block_size + draw().between(0, 1));
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return make_for_plan(second_);
    case 3:
      return whole(second_, false);
    case 6:
      return Op::of(FreeRequest{first_});
    case 8:
      return evict_first_block(first_);
    case 4:
    case 10:
      return state();
    default:
      return Op::of(MatchBlocks{second_});
  }
}

std::optional<Op> BlocksScript::full_pool_of_pinned(std::size_t number) {
  switch (number) {
    case 1:
      return take_all(0);
    case 2:
      text_ = text_of(2 * config_.block_size);
      return make_for_plan(first_);
    case 3:
      return Op::of(MatchBlocks{first_});
    case 4:
    case 6:
      return whole(first_, true);
    case 5:
      return release_taken();
    default:
      return state();
  }
}

// A request grows over the end of its window, or chunk, a token at a time (PX-50, PX-51).
std::optional<Op> BlocksScript::around_the_window(std::size_t number) {
  if (config_.attention == Attention::kFull) return std::nullopt;
  const std::int64_t end = config_.window.value_or(config_.chunk.value_or(1));
  switch (number) {
    case 0:
      text_ = text_of(end + 2 * config_.block_size + 1);
      return make_for_plan(first_);
    case 1:
      return more(first_, std::max<std::int64_t>(end - 1, 1));
    case 2:
    case 4:
    case 6:
    case 8:
      return Op::of(ShowTable{first_});
    case 10:
      return Op::of(Skip{first_, requests_[first_].computed});
    case 11:
      return state();
    default:
      return more(first_, number == 9 ? config_.block_size : 1);
  }
}

// What lay behind the window is gone though nothing was handed out (PX-26a).
std::optional<Op> BlocksScript::failed_allocate_under_a_window(std::size_t number) {
  if (config_.attention == Attention::kFull) return std::nullopt;
  const std::int64_t end = config_.window.value_or(config_.chunk.value_or(1));
  switch (number) {
    case 0:
      text_ = text_of(std::min(end + 2 * config_.block_size, config_.max_model_len - 1));
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 3:
      return take_all(0);
    case 4:
      return Op::of(Allocate{.request = first_,
                             .tokens = config_.max_model_len > requests_[first_].computed ? 1 : 0,
                             .reserved = config_.num_blocks});
    case 5:
      return Op::of(ShowTable{first_});
    case 7:
      return release_taken();
    case 8:
      return more(first_, 1);
    default:
      return state();
  }
}

std::optional<Op> BlocksScript::preempted_and_resumed(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(3 * config_.block_size + draw().between(0, 1));
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return Op::of(FreeRequest{first_});
    case 3:
      return Op::of(SetRequest{
          .request = first_, .computed = 0, .status = RequestStatus::kPreempted, .preemptions = 1});
    case 4:
      return Op::of(Take{draw().between(0, 2)});
    case 5:
      return Op::of(MatchBlocks{first_});
    case 6:
      return whole(first_, true);
    case 7:
      return Op::of(RecordHits{first_, requests_[first_].hit_length});
    default:
      return state();
  }
}

// What stays held of a sequence is a prefix (PX-7).
std::optional<Op> BlocksScript::tail_evicted_first(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(4 * config_.block_size + 1);
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return Op::of(FreeRequest{first_});
    case 3:
      return state();
    case 4:
      return take_all(draw().between(1, 3));
    case 5:
      return make_for_plan(second_);
    case 7:
      return release_taken();
    case 9:
      return Op::of(Take{1});
    default:
      return Op::of(MatchBlocks{second_});
  }
}

// A request reaches and leaves the end of a block (PX-2, PX-11, PX-30).
std::optional<Op> BlocksScript::around_a_block(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(std::min(draw().between(1, 3) * config_.block_size + draw().between(-2, 0),
                               config_.max_model_len - 2));
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 3:
    case 6:
      if (std::ssize(requests_[first_].tokens) >= config_.max_model_len) return std::nullopt;
      return Op::of(Append{first_, texts_.fresh(1)});
    case 4:
    case 7:
      return more(first_, 1);
    case 8:
      return state();
    case 9:
      return Op::of(FreeRequest{first_});
    case 10:
      return Op::of(MatchBlocks{first_});
    default:
      return Op::of(CachedTokens{first_});
  }
}

std::optional<Op> BlocksScript::reset_while_in_use(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(2 * config_.block_size + 1);
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 3:
      return Op::of(FreeRequest{first_});
    case 2:
    case 4:
      return reset();
    case 5:
      return events();
    case 6:
      return stats();
    case 7:
      return Op::of(MatchBlocks{first_});
    default:
      return state();
  }
}

// A block is released once too often, met at its turn, and put right again (PX-38).
std::optional<Op> BlocksScript::released_twice(std::size_t number) {
  switch (number) {
    case 0:
      taken_.clear();
      return Op::of(Take{1});
    case 1:
      if (taken_.empty()) return std::nullopt;
      second_ = taken_.front();
      return release_taken();
    case 2:
      return Op::of(Release{{second_}});
    case 4:
      return take_all(0);
    case 5:
    case 7:
      return Op::of(TouchBlocks{{second_}});
    case 8:
      return Op::of(Release{{second_}});
    default:
      return state();
  }
}

// One of two blocks with a content goes (PX-40).
std::optional<Op> BlocksScript::removed_while_held(std::size_t number) {
  if (!config_.events) return std::nullopt;
  switch (number) {
    case 0:
      text_ = text_of(config_.block_size);
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return make_for_plan(second_);
    case 3:
      return whole(second_, false);
    case 5:
      return evict_first_block(first_);
    case 7:
      return evict_first_block(second_);
    default:
      return events();
  }
}

// Equal tokens never meet where salt or adapter differ (PX-5, PX-12).
std::optional<Op> BlocksScript::same_tokens_in_namespaces(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(2 * config_.block_size + 1);
      return make_for_plan(first_, {.salt = draw().percent(50) ? "s" : ""});
    case 1:
      return whole(first_, false);
    case 2:
      return make_for_plan(second_, {.salt = "s"});
    case 4:
      return make_for_plan(second_, {.lora = "l"});
    case 6:
      return make_for_plan(second_, {.lora = "l", .lora_path = "/l"});
    case 8:
      return make_for_plan(second_, {.lora_path = "/l"});
    default:
      return Op::of(MatchBlocks{second_});
  }
}

// A block in use loses its key, and is not registered again (PX-36).
std::optional<Op> BlocksScript::evicted_in_use(std::size_t number) {
  switch (number) {
    case 0:
      text_ = text_of(std::min(2 * config_.block_size, config_.max_model_len - 1));
      return make_for_plan(first_);
    case 1:
      return whole(first_, false);
    case 2:
      return evict_first_block(first_);
    case 3:
      return Op::of(CachedTokens{first_});
    case 4:
      if (std::ssize(requests_[first_].tokens) >= config_.max_model_len) return std::nullopt;
      return Op::of(Append{first_, texts_.fresh(1)});
    case 5:
      return more(first_, 1);
    case 6:
      return Op::of(FreeRequest{first_});
    default:
      return state();
  }
}

// A long prompt hits what was never stored (PX-57).
std::optional<Op> BlocksScript::chunks_on_nothing(std::size_t number) {
  if (!config_.chunk || config_.eagle) return std::nullopt;
  switch (number) {
    case 0:
      text_ = text_of(2 * *config_.chunk + config_.block_size + 1);
      return make_for_plan(first_);
    case 2:
      return whole(first_, true);
    case 3:
      return Op::of(ShowTable{first_});
    case 4:
      return Op::of(FreeRequest{first_});
    default:
      return Op::of(MatchBlocks{first_});
  }
}

// Only the last blocks of segments keep keys (PX-55).
std::optional<Op> BlocksScript::sparse_keys(std::size_t number) {
  if (!config_.retention || !config_.retention->has_value()) return std::nullopt;
  switch (number) {
    case 0:
      text_ = text_of(draw().between(2, 6) * config_.block_size + draw().between(0, 1));
      return make_for_plan(first_);
    case 1:
      return Op::of(
          SetRequest{.request = first_, .boundary = draw().between(0, std::ssize(text_))});
    case 2:
      return whole(first_, false);
    case 3:
      return events();
    case 4:
      return Op::of(FreeRequest{first_});
    case 5:
      return make_for_plan(second_);
    case 6:
      return Op::of(MatchBlocks{second_});
    default:
      return state();
  }
}

}  // namespace kvo::prefix
