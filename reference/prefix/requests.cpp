#include "reference/prefix/requests.hpp"

#include <utility>

namespace kvo::prefix {

std::int64_t Requests::find(std::int64_t request) const {
  const auto found = rows_.find(request);
  return found != rows_.end() ? found->second : -1;
}

// PX-10 to PX-13: the keys that the tokens have and the list does not.
void Requests::add_keys(Text& text) {
  if (!enable_caching_) return;
  while (floor_of(std::ssize(text.tokens) - lookahead_, unit_) > std::ssize(text.keys)) {
    const std::int64_t unit = std::ssize(text.keys);
    const std::int64_t parent = unit > 0 ? number_of(text.keys.back()) : std::int64_t{-1};
    const auto begin = text.tokens.begin() + unit * unit_;
    Content content(parent, Tokens(begin, begin + unit_ + lookahead_), unit == 0 ? text.salt : "",
                    text.lora);
    depths_.resize(contents_.size());  // drops the depth of a content that was known
    depths_.push_back(unit + 1);
    const auto number =
        contents_.try_emplace(std::move(content), std::ssize(contents_)).first->second;
    text.keys.push_back(key_of(number));
  }
}

std::int64_t Requests::make(const MakeRequest& op, bool report) {
  Text text{.tokens = op.tokens,
            .prompt = std::ssize(op.tokens),
            .salt = op.salt.value_or(""),
            .lora = std::nullopt,
            .skip_reading = op.skip_reading.value_or(false),
            .report = report,
            .keys = {}};
  if (op.lora) text.lora.emplace(*op.lora, op.lora_path.value_or(""));
  add_keys(text);
  if (const std::int64_t row = find(op.request); row >= 0) {
    texts_.change(row) = std::move(text);
    progress_.change(row) = {};
    return row;
  }
  progress_.add({});
  const std::int64_t row = texts_.add(std::move(text));
  rows_.emplace(op.request, row);
  added_ = op.request;
  return row;
}

void Requests::append(std::int64_t row, TokensView tokens) {
  Text& text = texts_.change(row);
  text.tokens.insert(text.tokens.end(), tokens.begin(), tokens.end());
  add_keys(text);
}

void Requests::set(std::int64_t row, const SetRequest& op) {
  Progress& progress = progress_.change(row);
  progress.computed = op.computed.value_or(progress.computed);
  progress.status = op.status.value_or(progress.status);
  progress.in_flight = op.in_flight.value_or(progress.in_flight);
  progress.preemptions = op.preemptions.value_or(progress.preemptions);
  if (op.boundary) progress.boundary = op.boundary;
}

void Requests::record(std::int64_t row, std::int64_t hits) {
  const Text& text = texts_[row];
  if (!enable_caching_ || text.skip_reading) return;
  const bool preempted = progress_[row].preemptions > 0;
  BlocksStatistics& sums = statistics_;
  (preempted ? sums.preempted_requests : sums.requests) += 1;
  (preempted ? sums.preempted_queries : sums.queries) += std::ssize(text.tokens);
  (preempted ? sums.preempted_hits : sums.hits) += hits;
}

void Requests::commit() noexcept {
  added_.reset();
  texts_.commit();
  progress_.commit();
}

void Requests::roll_back() noexcept {
  if (added_) rows_.erase(*std::exchange(added_, std::nullopt));
  texts_.roll_back();
  progress_.roll_back();
}

}  // namespace kvo::prefix
