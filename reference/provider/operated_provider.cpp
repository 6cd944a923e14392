#include "reference/provider/operated_provider.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/values/check.hpp"
#include "reference/provider/operations.hpp"
#include "reference/provider/tensor.hpp"

namespace kvo::provider {
namespace {

/// One side of a result that the session keeps under a number.
class KeptStorage final : public Storage {
 public:
  KeptStorage(std::shared_ptr<Inner> inner, std::int64_t handle, std::string_view side)
      : inner_(std::move(inner)), handle_(handle), side_(side) {}

  void read(std::int64_t offset, std::span<float> out) const override {
    const auto again = (*inner_)(Reread{handle_});
    KVO_CHECK(again);
    const std::optional<Tensor>& shown = side_ == "k" ? again->k : again->v;
    KVO_CHECK(shown && offset >= 0 && offset + std::ssize(out) <= shown->elements());
    std::ranges::copy(shown->floats().subspan(static_cast<std::size_t>(offset), out.size()),
                      out.begin());
  }
  void write(std::int64_t offset, float value) override {
    KVO_CHECK((*inner_)(Poke{handle_, std::string(side_), offset, value}));
  }

 private:
  std::shared_ptr<Inner> inner_;
  std::int64_t handle_;
  std::string_view side_;
};

}  // namespace

Status OperatedProvider::update(std::int64_t layer, const Rows& rows) {
  const HarnessWork copying;
  const auto side = [](const Tensor* one) {
    return one != nullptr ? Nullable<Tensor>(*one) : Nullable<Tensor>();
  };
  if (tensor_)
    return status_of((*inner_)(UpdateTensor{.layer = layer, .k = side(rows.k), .v = side(rows.v)}));
  return status_of((*inner_)(Update{.layer = layer, .k = side(rows.k), .v = side(rows.v)}));
}

Result<std::optional<KvPair>> OperatedProvider::get(std::int64_t layer) {
  const HarnessWork copying;
  const auto found = (*inner_)(Get{.layer = layer, .keep = live_});
  if (!found) return found.error();
  if (!found->found || !found->k || !found->v) return std::optional<KvPair>();
  if (!live_) return std::optional(pair_of(*found->k, *found->v));
  const auto kept = [&](const Tensor& rows, std::string_view side) {
    return TensorView{.shape = rows.shape,
                      .storage = std::make_shared<KeptStorage>(inner_, *found->handle, side)};
  };
  return std::optional(KvPair{.k = kept(*found->k, "k"), .v = kept(*found->v, "v")});
}

std::int64_t OperatedProvider::seq_len() const {
  const HarnessWork copying;
  const auto length = (*inner_)(SeqLen{});
  return length ? length->n : 0;
}

Status OperatedProvider::reset() {
  const HarnessWork copying;
  return status_of((*inner_)(Reset{}));
}

Status OperatedProvider::truncate(std::int64_t n) {
  const HarnessWork copying;
  return status_of((*inner_)(Truncate{.n = n}));
}

KvPair pair_of(const Tensor& k, const Tensor& v) {
  const auto view = [](const Tensor& rows) {
    const auto cells = rows.floats();
    return TensorView{
        .shape = rows.shape,
        .storage = std::make_shared<HostStorage>(std::vector<float>(cells.begin(), cells.end()))};
  };
  return {.k = view(k), .v = view(v)};
}

}  // namespace kvo::provider
