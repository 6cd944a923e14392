// reference/contract/values/attention.hpp: attention in double precision over rows that a cache
// shows. Source   Vaswani et al., Attention Is All You Need, 2017, arXiv:1706.03762, section 3.2.1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/contract/values/strided_view.hpp"

namespace kvo {

/// One token's queries and the rows that it may attend to.
/// Shape   query: [heads][k_dim], heads a multiple of kv_heads; k: [rows][kv_heads][k_dim];
///         v: [rows][kv_heads][v_dim]; mask: [rows], added to the logits.
struct Attended {
  std::span<const double> query;
  StridedView k;
  StridedView v;
  std::span<const double> mask;
};

/// softmax(query k^T / sqrt(k_dim) + mask) v. Query head h reads kv head h / (heads / kv_heads).
/// Returns  [heads][v_dim]. A row whose mask is -inf is not looked at, whatever it holds; a token
///          that sees nothing gets zeros.
[[nodiscard]] std::vector<double> attention(const Attended& attended);

}  // namespace kvo
