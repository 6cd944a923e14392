#include "reference/prefix/requests.hpp"

#include <utility>

namespace kvo::prefix {

// ---- What all tables of requests do ----

std::int64_t RequestTable::make(std::int64_t request, Text text) {
  Row made{.text = std::move(text)};
  std::int64_t row = find(request);
  if (row >= 0) {
    changed_ = row;
    whole_ = std::exchange(at(row), std::move(made));
    change_ = Change::kReplaced;
  } else {
    const auto number = static_cast<std::size_t>(request);
    if (number >= row_of_.size()) row_of_.resize(number + 1, -1);
    row = std::ssize(table_);
    table_.push_back(std::move(made));
    changed_ = request;
    change_ = Change::kAdded;
    row_of_[number] = row;
    rows_.emplace(request, row);
  }
  if (enable_caching_) add_keys(at(row).text, at(row).chain);
  return row;
}

void RequestTable::append(std::int64_t row, TokensView tokens) {
  Row& there = at(row);
  changed_ = row;
  tokens_before_ = there.text.tokens.size();
  keys_before_ = there.text.keys.size();
  chain_before_ = there.chain;
  change_ = Change::kAppended;
  there.text.tokens.insert(there.text.tokens.end(), tokens.begin(), tokens.end());
  if (enable_caching_) add_keys(there.text, there.chain);
}

void RequestTable::set(std::int64_t row, const SetRequest& op) {
  Progress& progress = at(row).progress;
  changed_ = row;
  progress_before_ = progress;
  change_ = Change::kProgress;
  progress.computed = op.computed.value_or(progress.computed);
  progress.status = op.status.value_or(progress.status);
  progress.in_flight = op.in_flight.value_or(progress.in_flight);
  progress.preemptions = op.preemptions.value_or(progress.preemptions);
  if (op.boundary) progress.boundary = op.boundary;
}

void RequestTable::record(std::int64_t row, std::int64_t hits) {
  if (!enable_caching_ || text(row).skip_reading) return;
  const bool preempted = progress(row).preemptions > 0;
  BlocksStatistics& sums = statistics_;
  (preempted ? sums.preempted_requests : sums.requests) += 1;
  (preempted ? sums.preempted_queries : sums.queries) += std::ssize(text(row).tokens);
  (preempted ? sums.preempted_hits : sums.hits) += hits;
}

void RequestTable::roll_back() noexcept {
  switch (std::exchange(change_, Change::kNothing)) {
    case Change::kNothing:
      break;
    case Change::kAdded:
      table_.pop_back();
      row_of_[static_cast<std::size_t>(changed_)] = -1;
      rows_.erase(changed_);
      break;
    case Change::kReplaced:
      at(changed_) = std::exchange(whole_, {});
      break;
    case Change::kAppended: {
      Row& there = at(changed_);
      there.text.tokens.resize(tokens_before_);
      there.text.keys.resize(keys_before_);
      there.chain = chain_before_;
      break;
    }
    case Change::kProgress:
      at(changed_).progress = progress_before_;
      break;
  }
}

// ---- The reference ----

// PX-10 to PX-13
void Requests::add_keys(Text& text, Chain& /*chain*/) {
  while (floor_of(std::ssize(text.tokens) - lookahead_, unit_) > std::ssize(text.keys)) {
    const std::int64_t unit = std::ssize(text.keys);
    const std::int64_t parent = unit > 0 ? number_of(text.keys.back()) : std::int64_t{-1};
    const auto begin = text.tokens.begin() + unit * unit_;
    Content content(parent, Tokens(begin, begin + unit_ + lookahead_), unit == 0 ? text.salt : "",
                    text.lora);
    grow_depths(keys() + 1);
    const auto number =
        contents_.try_emplace(std::move(content), std::ssize(contents_)).first->second;
    set_depth(number, unit + 1);
    text.keys.push_back(key_of(number));
  }
}

}  // namespace kvo::prefix
