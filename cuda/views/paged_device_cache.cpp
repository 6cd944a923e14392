#include "cuda/views/paged_device_cache.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <boost/describe/enum_to_string.hpp>

#include "cuda/jobs/cells.hpp"
#include "cuda/jobs/rows.hpp"
#include "reference/contract/values/thrown.hpp"

namespace kvo::cuda {

using views::Appended;
using views::Cache;
using views::ContiguousRows;
using views::Options;
using views::PackedView;
using views::View;

namespace {

constexpr std::int64_t kNumberBytes = sizeof(DeviceBlockStore::Number);
constexpr std::int64_t kPair = 2;

// Blocks that go back unless all went well.
struct Taken {
  explicit Taken(DeviceBlockStore& of) : store(of) {}
  ~Taken() {
    for (const DeviceBlockStore::Number block : blocks) store.release(block);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  DeviceBlockStore::Number take() {
    blocks.push_back(store.take());
    return blocks.back();
  }

  DeviceBlockStore& store;
  std::vector<DeviceBlockStore::Number> blocks = {};
};

}  // namespace

PagedDeviceViews::PagedDeviceViews(std::shared_ptr<const Options> options,
                                   std::shared_ptr<DeviceBlockStore> store)
    : options_(std::move(options)),
      store_(std::move(store)),
      device_(store_->device()),
      staging_(device_),
      row_bytes_(static_cast<std::int64_t>(options_->token_bytes())),
      layers_(static_cast<std::size_t>(options_->num_layers)) {}

PagedDeviceViews::~PagedDeviceViews() {
  for (Layer& layer : layers_) give_back(layer, 0);
}

Result<Appended> PagedDeviceViews::append(std::int64_t layer, const Tensor& k, const Tensor& v) {
  if (closed_) return fail(Code::kClosed);
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (k.shape.size() != 2 || k.shape[1] != options_->kv_dim() || v.shape != k.shape)
    return fail(Code::kBadShape);
  Layer& to = at(layer);
  const std::int64_t n = k.shape[0];
  Plan plan{.start = seq_len_ + (options_->append_stacks ? to.pending : 0)};
  plan.end = plan.start + n;
  if (plan.end > options_->max_seq_len) return fail(Code::kFull);
  plan.first_block = plan.start / options_->block_size;
  const auto first = static_cast<std::size_t>(plan.first_block);
  const auto needed = static_cast<std::size_t>(options_->blocks_of(plan.end));
  plan.copies = n > 0 && first < to.table.size() && store_->is_shared(to.table[first]);
  const std::size_t missing = needed - std::min(needed, to.table.size()) + (plan.copies ? 1 : 0);
  if (static_cast<std::int64_t>(missing) > store_->available()) return fail(Code::kExhausted);

  store_->prepare(static_cast<std::int64_t>(missing));
  Taken taken(*store_);
  taken.blocks.reserve(missing);
  Table table = to.table;
  table.resize(std::min(needed, table.size()));
  const Number original = plan.copies ? table[first] : 0;
  if (plan.copies) table[first] = taken.take();
  while (table.size() < needed) table.push_back(taken.take());
  const bool whole = options_->append_views_blocks && n > 0;
  const std::int64_t from = whole ? plan.start - plan.start % options_->block_size : plan.start;
  std::vector<View> shown = views_of(layer, table, from, plan.end);
  if (n > 0) {
    plan.numbers = {original, table[first]};
    plan.numbers.insert(plan.numbers.end(), table.begin() + plan.first_block, table.end());
    if (Status stored = store(plan, {&k, &v}); !stored) return stored.error();
  }
  // Nothing fails from here on.
  if (plan.copies) store_->release(original);
  give_back(to, plan.end);
  taken.blocks.clear();
  to.table = std::move(table);
  to.pending = plan.end - seq_len_;
  shown_ = std::move(shown);
  return Appended{plan.start, shown_};
}

Status PagedDeviceViews::make_numbers(std::size_t count) {
  if (count <= most_numbers_) return {};
  const std::size_t room = std::max(count, 2 * most_numbers_);
  auto made = make_cells(device_, static_cast<std::int64_t>(room));
  if (!made) return made.error();
  numbers_ = std::move(*made);
  most_numbers_ = room;
  return {};
}

Status PagedDeviceViews::store(const Plan& plan, const std::array<const Tensor*, 2>& rows) {
  const std::int64_t n = plan.end - plan.start;
  const std::int64_t bytes = n * options_->kv_dim() * kCellBytes;
  if (Status there = staging_.reserve(bytes + (narrow() ? n * row_bytes_ : 0)); !there)
    return there;
  if (Status there = make_numbers(plan.numbers.size()); !there) return there;
  return staging_.carry_out([&]() -> Status {
    const auto numbers = std::as_bytes(std::span(plan.numbers));
    if (Status queued = staging_.upload(0, numbers_->ptr(), numbers); !queued) return queued;
    for (const std::size_t side : {0U, 1U}) {
      if (plan.copies) {
        Status copied = device_->run(
            copy_blocks(store_->cells(side), numbers_->ptr(), 1, store_->side_bytes()));
        if (!copied) return copied;
      }
      if (Status queued = store_side(side, plan, *rows[side]); !queued) return queued;
    }
    // A copy is shown from its first token on.
    const std::int64_t size = options_->block_size;
    std::int64_t at = plan.copies ? plan.first_block * size : plan.start;
    for (std::size_t i = kPair; i < plan.numbers.size(); ++i) {
      const std::int64_t next = std::min((at / size + 1) * size, plan.end);
      const std::int64_t slot = at % size;
      if (Status queued = show(plan.numbers[i], slot, slot + next - at); !queued) return queued;
      at = next;
    }
    return {};
  });
}

Status PagedDeviceViews::store_side(std::size_t side, const Plan& plan, const Tensor& rows) {
  const std::int64_t cells = rows.shape[0] * options_->kv_dim();
  DevicePtr from = staging_.room(side);
  if (Status queued = staging_.upload(side, from, rows.bytes); !queued) return queued;
  if (narrow()) {
    const DevicePtr stored = from + cells * kCellBytes;
    const DType type = dtype_of(options_->storage.type);
    Status queued = device_->run(narrow_cells(stored, type, from, cells));
    if (!queued) return queued;
    from = stored;
  }
  return device_->run(PagedRows{.pool = store_->cells(side),
                                .rows = from,
                                .table = numbers_->ptr() + kPair * kNumberBytes,
                                .block = options_->block_size,
                                .row_bytes = row_bytes_,
                                .first = plan.start % options_->block_size,
                                .count = rows.shape[0]}
                          .append());
}

Status PagedDeviceViews::show(Number block, std::int64_t begin, std::int64_t end) {
  const std::int64_t first = begin * row_bytes_;
  for (const std::size_t side : {0U, 1U}) {
    const std::span<std::byte> mirror(store_->mirror(side, block) + first,
                                      static_cast<std::size_t>((end - begin) * row_bytes_));
    Status queued = device_->to_host_async(mirror, store_->cells(side, block) + first, Stream());
    if (!queued) return queued;
  }
  return {};
}

std::vector<View> PagedDeviceViews::views_of(std::int64_t layer, const Table& table,
                                             std::int64_t begin, std::int64_t end) const {
  std::vector<View> found;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t index = at / options_->block_size;
    const std::int64_t next = std::min(end, (index + 1) * options_->block_size);
    const Number block = table[static_cast<std::size_t>(index)];
    const std::int64_t byte = at % options_->block_size * row_bytes_;
    found.push_back({at, next - at, layer_device(layer), store_->mirror(0, block) + byte,
                     store_->mirror(1, block) + byte});
    at = next;
  }
  return found;
}

void PagedDeviceViews::give_back(Layer& layer, std::int64_t tokens) {
  const auto needed = static_cast<std::size_t>(options_->blocks_of(tokens));
  while (layer.table.size() > needed) {
    store_->release(layer.table.back());
    layer.table.pop_back();
  }
}

Status PagedDeviceViews::commit(std::int64_t n) {
  if (closed_) return {};
  for (const Layer& layer : layers_)
    if (n < 0 || n > layer.pending) return fail(Code::kBadPosition, "n");
  seq_len_ += n;
  for (Layer& layer : layers_) {
    layer.pending = options_->commit_keeps_rest ? layer.pending - n : 0;
    give_back(layer, seq_len_ + layer.pending);
  }
  return {};
}

Result<std::optional<ContiguousRows>> PagedDeviceViews::contiguous_kv(std::int64_t layer,
                                                                      std::int64_t kv_len,
                                                                      std::int64_t kv_dim) {
  if (closed_) return fail(Code::kClosed);
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (kv_dim != options_->kv_dim()) return fail(Code::kBadShape, "kv_dim");
  const Layer& of = at(layer);
  if (kv_len < 0 || kv_len > seq_len_ + of.pending) return fail(Code::kOutOfRange, "kv_len");
  if (kv_len > options_->block_size) return std::nullopt;
  if (kv_len == 0) return ContiguousRows{};
  return ContiguousRows{store_->mirror(0, of.table.front()), store_->mirror(1, of.table.front())};
}

std::span<const View> PagedDeviceViews::views(std::int64_t layer) {
  if (!has(layer)) return {};
  const Layer& of = at(layer);
  shown_ =
      views_of(layer, of.table, 0, seq_len_ + (options_->views_committed_only ? 0 : of.pending));
  return shown_;
}

std::span<const PackedView> PagedDeviceViews::views_packed(std::int64_t layer) {
  packed_.clear();
  if (!has(layer) || layer_device(layer).device == views::Device::kGpu) return {};
  const std::span<const View> of = views(layer);
  if (of.empty()) return {};
  const std::int64_t block = options_->block_size * options_->kv_dim();
  const auto cells = static_cast<std::size_t>(std::ssize(of) * block);
  for (std::vector<float>& side : packed_cells_) side.resize(cells);
  packed_.reserve(of.size());
  // Packed cells, and behind them a block's rows as f32 where they are kept in less.
  const std::int64_t wide = static_cast<std::int64_t>(cells) + (narrow() ? block : 0);
  demand(staging_.reserve(wide * kCellBytes));
  demand(staging_.carry_out([&] {
    Status keys = pack(0, at(layer).table, of);
    return keys ? pack(1, at(layer).table, of) : keys;
  }));
  for (std::size_t i = 0; i < of.size(); ++i) {
    const auto first = i * static_cast<std::size_t>(block);
    const auto side = [&](std::size_t which) {
      return std::span<const float>(packed_cells_[which])
          .subspan(first, static_cast<std::size_t>(block));
    };
    packed_.push_back({of[i].start, of[i].length, options_->block_size, options_->head_dim,
                       options_->num_kv_heads, side(0), side(1)});
  }
  return packed_;
}

Status PagedDeviceViews::pack(std::size_t side, const Table& table, std::span<const View> of) {
  const bool by_length = options_->packed_stride == views::PackedStride::kLength;
  const std::int64_t block = options_->block_size * options_->kv_dim();
  const DevicePtr room = staging_.room(side);
  const DevicePtr widened = room + std::ssize(of) * block * kCellBytes;
  for (std::size_t i = 0; i < of.size(); ++i) {
    DevicePtr from = store_->cells(side, table[i]);
    if (narrow()) {
      const DType type = dtype_of(options_->storage.type);
      Status queued =
          device_->run(widen_cells(widened, from, type, of[i].length * options_->kv_dim()));
      if (!queued) return queued;
      from = widened;
    }
    Status queued = device_->run(
        pack_head_major(room + static_cast<std::int64_t>(i) * block * kCellBytes, from,
                        of[i].length, options_->num_kv_heads, options_->head_dim * kCellBytes, 0,
                        by_length ? of[i].length : options_->block_size));
    if (!queued) return queued;
  }
  return device_->to_host_async(std::as_writable_bytes(std::span(packed_cells_[side])), room,
                                Stream());
}

bool PagedDeviceViews::is_on_gpu() const {
  return std::ranges::all_of(options_->devices, [](const views::Placement& one) {
    return one.device == views::Device::kGpu;
  });
}

void PagedDeviceViews::truncate(std::int64_t tokens) {
  if (closed_) return;
  seq_len_ = std::min(seq_len_, std::max<std::int64_t>(tokens, 0));
  for (Layer& layer : layers_) {
    layer.pending = 0;
    give_back(layer, seq_len_);
  }
}

void PagedDeviceViews::free() {
  truncate(0);
  closed_ = true;
}

Result<std::unique_ptr<Cache>> PagedDeviceViews::fork(std::int64_t tokens) {
  if (closed_) return fail(Code::kClosed);
  if (tokens < 0 || tokens > seq_len_) return fail(Code::kBadPosition, "tokens");
  const std::int64_t rest = tokens % options_->block_size;
  const std::int64_t wanted = rest > 0 ? options_->num_layers : 0;
  if (wanted > store_->available()) return fail(Code::kExhausted);
  store_->prepare(wanted);
  auto made = std::make_unique<PagedDeviceViews>(options_, store_);
  const auto blocks = options_->blocks_of(tokens);
  std::vector<Number> pairs;
  pairs.reserve(static_cast<std::size_t>(kPair * wanted));
  for (std::int64_t i = 0; i < options_->num_layers; ++i) {
    const Table& from = at(i).table;
    Table& table = made->at(i).table;
    table.assign(from.begin(), from.begin() + blocks);
    for (const Number block : table) store_->share(block);
    if (rest == 0) continue;
    const Number own = store_->take();
    store_->release(table.back());
    pairs.push_back(std::exchange(table.back(), own));
    pairs.push_back(own);
  }
  made->seq_len_ = tokens;
  if (pairs.empty()) return made;
  // One launch a side copies the cut blocks of all layers. `made` gives all back if it fails.
  if (Status there = staging_.reserve(0); !there) return there.error();
  if (Status there = make_numbers(pairs.size()); !there) return there.error();
  Status copied = staging_.carry_out([&]() -> Status {
    const auto numbers = std::as_bytes(std::span(pairs));
    if (Status queued = staging_.upload(0, numbers_->ptr(), numbers); !queued) return queued;
    for (const std::size_t side : {0U, 1U}) {
      Status queued = device_->run(
          copy_blocks(store_->cells(side), numbers_->ptr(), wanted, store_->side_bytes()));
      if (!queued) return queued;
    }
    for (const Layer& layer : made->layers_)
      if (Status queued = show(layer.table.back(), 0, rest); !queued) return queued;
    return {};
  });
  if (!copied) return copied.error();
  return made;
}

std::optional<std::string> PagedDeviceViews::broken_invariant() const {
  for (const Layer& layer : layers_) {
    if (std::ssize(layer.table) != options_->blocks_of(seq_len_ + layer.pending))
      return "a table has not the blocks of its tokens";
    for (const Number block : layer.table)
      if (!store_->is_held(block)) return "a block is free and in a table";
  }
  return std::nullopt;
}

namespace {

class PagedDevicePool final : public views::Pool {
 public:
  PagedDevicePool(const std::shared_ptr<kvo::Device>& device, const Options& options)
      : options_(std::make_shared<const Options>(options)),
        store_(std::make_shared<DeviceBlockStore>(device, options)) {}
  [[nodiscard]] std::unique_ptr<Cache> make_cache() override {
    return std::make_unique<PagedDeviceViews>(options_, store_);
  }
  [[nodiscard]] std::int64_t free_blocks() const override { return store_->available(); }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return store_->broken_invariant();
  }

 private:
  std::shared_ptr<const Options> options_;
  std::shared_ptr<DeviceBlockStore> store_;
};

}  // namespace

Result<std::unique_ptr<views::Pool>> make_paged_views(const std::shared_ptr<kvo::Device>& device,
                                                      const Options& options) {
  const StorageType type = options.storage.type;
  if (in_groups(type))
    return fail(
        Code::kNotSupported,
        std::string("storage: ") + boost::describe::enum_to_string(type, "") + " on a device");
  return std::make_unique<PagedDevicePool>(device, options);
}

}  // namespace kvo::cuda
