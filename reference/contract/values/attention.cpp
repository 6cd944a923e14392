#include "reference/contract/values/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/contract/values/check.hpp"
#include "reference/contract/values/exponential.hpp"

namespace kvo {
namespace {

constexpr double kUnseen = -std::numeric_limits<double>::infinity();

double element(const StridedView& view, std::int64_t row, std::int64_t head, std::int64_t dim) {
  const std::int64_t at = row * view.strides[0] + head * view.strides[1] + dim * view.strides[2];
  return load_element(view.dtype,
                      view.data + at * static_cast<std::int64_t>(dtype_bytes(view.dtype)));
}

// The weights of the rows for one query head, not yet divided by their sum.
std::vector<double> weights(const Attended& attended, std::span<const double> query,
                            std::int64_t kv_head) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size()));
  std::vector<double> logits(attended.mask.begin(), attended.mask.end());
  for (std::size_t row = 0; row < logits.size(); ++row) {
    if (logits[row] == kUnseen) continue;
    double product = 0;
    for (std::size_t d = 0; d < query.size(); ++d) {
      const double key = element(attended.k, static_cast<std::int64_t>(row), kv_head,
                                 static_cast<std::int64_t>(d));
      product += query[d] * key;
    }
    logits[row] += product * scale;
  }
  const auto largest = std::ranges::max_element(logits);
  const double most = largest == logits.end() ? double{kUnseen} : *largest;
  for (double& logit : logits) logit = logit == kUnseen ? 0 : exponential(logit - most);
  return logits;
}

}  // namespace

std::vector<double> attention(const Attended& attended) {
  const StridedView& k = attended.k;
  const StridedView& v = attended.v;
  KVO_CHECK(k.shape.size() == 3 && v.shape.size() == 3);
  KVO_CHECK(k.shape[0] == std::ssize(attended.mask) && v.shape[0] == k.shape[0]);
  KVO_CHECK(k.shape[1] > 0 && v.shape[1] == k.shape[1] && k.shape[2] > 0);
  const std::int64_t heads = std::ssize(attended.query) / k.shape[2];
  KVO_CHECK(heads * k.shape[2] == std::ssize(attended.query) && heads % k.shape[1] == 0);

  std::vector<double> out(static_cast<std::size_t>(heads * v.shape[2]));
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t kv_head = head / (heads / k.shape[1]);
    const auto dim = static_cast<std::size_t>(k.shape[2]);
    const std::vector<double> weight = weights(
        attended, attended.query.subspan(static_cast<std::size_t>(head) * dim, dim), kv_head);
    double sum = 0;
    for (std::size_t row = 0; row < weight.size(); ++row) {
      if (attended.mask[row] == kUnseen) continue;
      sum += weight[row];
      for (std::int64_t d = 0; d < v.shape[2]; ++d)
        out[static_cast<std::size_t>(head * v.shape[2] + d)] +=
            weight[row] * element(v, static_cast<std::int64_t>(row), kv_head, d);
    }
    if (sum == 0) continue;
    for (std::int64_t d = 0; d < v.shape[2]; ++d)
      out[static_cast<std::size_t>(head * v.shape[2] + d)] /= sum;
  }
  return out;
}

}  // namespace kvo
