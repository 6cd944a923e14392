#include "tools/probe/smaller_plan.hpp"

#include <algorithm>
#include <utility>

namespace kvo::tools {
namespace {

/// Tries smaller lists and keeps those that are answered wrongly.
class Reduction {
 public:
  Reduction(ProbeRequests requests, std::size_t attempts, const LastIsWrong& wrong)
      : requests_(std::move(requests)), attempts_(attempts), wrong_(wrong) {}

  ProbeRequests run() {
    leave_out();
    cut();
    leave_out();
    while (requests_.back().tokens > 1) {
      ProbeRequests fewer = requests_;
      for (ProbeRequest& request : fewer) request.tokens = (request.tokens + 1) / 2;
      if (!take(std::move(fewer))) break;
    }
    return std::move(requests_);
  }

 private:
  bool take(ProbeRequests smaller) {
    if (attempts_ == 0) return false;
    --attempts_;
    if (!wrong_(smaller)) return false;
    requests_ = std::move(smaller);
    return true;
  }

  void leave_out() {
    for (std::size_t i = requests_.size() - 1; i-- > 0;) {
      ProbeRequests fewer = requests_;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      (void)take(std::move(fewer));
    }
  }

  // Large pieces first. The token that begins a text stays, and the last one, which reads far.
  void cut() {
    const auto longest = [&] {
      return std::ranges::max(requests_, {},
                              [](const ProbeRequest& request) { return request.prompt.size(); })
          .prompt.size();
    };
    for (std::size_t piece = longest() / 2; piece > 0; piece /= 2)
      for (std::size_t begin = 1; begin + 1 < longest();) {
        ProbeRequests shorter = requests_;
        for (ProbeRequest& request : shorter) {
          auto& prompt = request.prompt;
          const std::size_t end = std::min(begin + piece, prompt.size() - 1);
          if (begin < end)
            prompt.erase(prompt.begin() + static_cast<std::ptrdiff_t>(begin),
                         prompt.begin() + static_cast<std::ptrdiff_t>(end));
        }
        if (attempts_ == 0) return;
        if (!take(std::move(shorter))) begin += piece;
      }
  }

  ProbeRequests requests_;
  std::size_t attempts_;
  const LastIsWrong& wrong_;
};

}  // namespace

ProbeRequests with_other_values(ProbeRequests requests, std::uint64_t number) {
  for (ProbeRequest& request : requests)
    for (probe::Token& token : request.prompt) {
      if (token < probe::kFirstValue || token >= probe::kFirstPad) continue;
      const std::uint32_t in_class = token - probe::kFirstValue;
      const auto other = static_cast<std::uint32_t>(
          probe::mix({number, in_class / probe::kValues}) % probe::kValues);
      token = probe::kFirstValue + (in_class ^ other);
    }
  return requests;
}

ProbeRequests smaller_requests(ProbeRequests requests, std::size_t attempts,
                               const LastIsWrong& wrong) {
  return Reduction(std::move(requests), attempts, wrong).run();
}

}  // namespace kvo::tools
