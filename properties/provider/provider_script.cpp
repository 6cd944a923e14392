#include "properties/provider/provider_script.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "properties/contract_parts.hpp"

namespace kvo::provider {

CaseStorage draw_case_storage(Draw& draw, Scale scale) {
  CaseStorage storage;
  if (scale == Scale::kLong || !draw.percent(25)) return storage;
  storage.format = draw_narrow_storage(draw);
  storage.wide = draw.percent(in_groups(storage.format.type) ? 70 : 20);
  storage.odd_rows = draw.percent(60);
  return storage;
}

RowPair RowDraw::rows(Shape shape) {
  const bool spoilt = draw_.percent(fault_percent_);
  const std::uint64_t spoils = spoilt ? draw_.below(4) : 0;
  if (spoilt && spoils == 0) spoil_k(shape);
  auto [k, v] = tagger_.pair(shape);
  // The first cell tells whether rows are poison.
  if (k.elements() > 1) odd_values_.put_into(k.floats().subspan(1));
  odd_values_.put_into(v.floats());
  if (odd_rows_) {
    fill_oddly(draw_, k);
    fill_oddly(draw_, v);
  }
  RowPair pair{std::move(k), std::move(v)};
  if (draw_.percent(poison_percent_)) {
    poison(*pair.k.value);
    poison(*pair.v.value);
  }
  if (!spoilt) return pair;
  if (spoils == 1) {
    spoil_v(shape);
    pair.v = tagger_.pair(shape).second;
  }
  if (spoils == 2) pair.v = std::nullopt;
  if (spoils == 3) pair.k = std::nullopt;
  return pair;
}

RowPair RowDraw::sound_rows(const Shape& shape) {
  const std::uint64_t faults = std::exchange(fault_percent_, 0);
  RowPair pair = rows(shape);
  fault_percent_ = faults;
  return pair;
}

void RowDraw::spoil_k(Shape& shape) {
  switch (draw_.below(5)) {
    case 0:
      shape.pop_back();
      break;
    case 1:
      shape.push_back(1);
      break;
    case 2:
      std::swap(shape.front(), shape.back());
      break;
    default: {
      std::int64_t& size = shape[draw_.below(shape.size())];
      size = std::max<std::int64_t>(0, size + draw_.between(-1, 1));
    }
  }
}

void RowDraw::spoil_v(Shape& shape) {
  switch (draw_.below(5)) {
    case 0:  // as many cells, of another shape
      std::reverse(shape.begin(), shape.end());
      break;
    case 1: {  // flat
      std::int64_t cells = 1;
      for (const std::int64_t size : shape) cells *= size;
      shape.assign(1, cells);
      break;
    }
    default: {
      std::int64_t& size = shape[draw_.below(shape.size())];
      size = std::max<std::int64_t>(0, size + (draw_.percent(70) ? -1 : 1));
    }
  }
}

void RowDraw::poison(Tensor& tensor) {
  constexpr std::uint32_t kQuietNan = 0x7FC00000U;
  for (float& cell : tensor.floats()) cell = std::bit_cast<float>(kQuietNan + ++nans_);
}

float RowDraw::cell() {
  const auto ordinary = static_cast<float>(draw_.between(100'000, 200'000));
  return draw_.one_of<float>({ordinary, -ordinary, std::numeric_limits<float>::quiet_NaN(), -0.0F});
}

std::vector<Generator> generators() {
  return {contiguous_generator(), paged_generator(),   device_generator(),
          tensor_generator(),     tracing_generator(), context_generator()};
}

}  // namespace kvo::provider
