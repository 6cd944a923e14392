#include "tools/probe/smaller_plan.hpp"

#include <algorithm>
#include <utility>

namespace kvo::tools {
namespace {

/// Tries smaller plans and keeps those that are answered wrongly.
class Reduction {
 public:
  Reduction(ProbeWaves waves, std::size_t attempts, const LastIsWrong& wrong)
      : waves_(std::move(waves)), attempts_(attempts), wrong_(wrong) {}

  ProbeWaves run() {
    leave_out();
    cut();
    leave_out();
    while (waves_.back().back().tokens > 1) {
      ProbeWaves fewer = waves_;
      each(fewer, [](ProbeRequest& request) { request.tokens = (request.tokens + 1) / 2; });
      if (!take(std::move(fewer))) break;
    }
    return std::move(waves_);
  }

 private:
  template <class Change>
  static void each(ProbeWaves& waves, const Change& change) {
    for (auto& wave : waves) std::ranges::for_each(wave, change);
  }

  bool take(ProbeWaves smaller) {
    if (attempts_ == 0) return false;
    --attempts_;
    if (!wrong_(smaller)) return false;
    waves_ = std::move(smaller);
    return true;
  }

  // Each request but the last one.
  void leave_out() {
    for (std::size_t wave = waves_.size(); wave-- > 0;)
      for (std::size_t i = waves_[wave].size(); i-- > 0;) {
        if (wave + 1 == waves_.size() && i + 1 == waves_[wave].size()) continue;
        ProbeWaves fewer = waves_;
        fewer[wave].erase(fewer[wave].begin() + static_cast<std::ptrdiff_t>(i));
        const bool is_empty = fewer[wave].empty();
        if (is_empty) fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(wave));
        if (take(std::move(fewer)) && is_empty) break;
      }
  }

  // Large pieces first. The token that begins a text stays, and the last one, which reads far.
  void cut() {
    const auto longest = [&] {
      std::size_t most = 0;
      each(waves_, [&](const ProbeRequest& one) { most = std::max(most, one.prompt.size()); });
      return most;
    };
    for (std::size_t piece = longest() / 2; piece > 0; piece /= 2)
      for (std::size_t begin = 1; begin + 1 < longest();) {
        ProbeWaves shorter = waves_;
        each(shorter, [&](ProbeRequest& request) {
          auto& prompt = request.prompt;
          const std::size_t end = std::min(begin + piece, prompt.size() - 1);
          if (begin < end)
            prompt.erase(prompt.begin() + static_cast<std::ptrdiff_t>(begin),
                         prompt.begin() + static_cast<std::ptrdiff_t>(end));
        });
        if (attempts_ == 0) return;
        if (!take(std::move(shorter))) begin += piece;
      }
  }

  ProbeWaves waves_;
  std::size_t attempts_;
  const LastIsWrong& wrong_;
};

}  // namespace

ProbeWaves one_by_one(const ProbeWaves& waves) {
  ProbeWaves single;
  for (const auto& wave : waves)
    for (const ProbeRequest& request : wave) single.push_back({request});
  return single;
}

ProbeWaves with_other_values(ProbeWaves waves, std::uint64_t number) {
  for (auto& wave : waves)
    for (ProbeRequest& request : wave)
      for (probe::Token& token : request.prompt) {
        if (token < probe::kFirstValue || token >= probe::kFirstPad) continue;
        const std::uint32_t in_class = token - probe::kFirstValue;
        const auto other = static_cast<std::uint32_t>(
            probe::mix({number, in_class / probe::kValues}) % probe::kValues);
        token = probe::kFirstValue + (in_class ^ other);
      }
  return waves;
}

ProbeWaves smaller_waves(ProbeWaves waves, std::size_t attempts, const LastIsWrong& wrong) {
  return Reduction(std::move(waves), attempts, wrong).run();
}

}  // namespace kvo::tools
