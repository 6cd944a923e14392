// optimized/provider/contiguous_arena_cache.hpp: `provider.contiguous`, fast on a CPU.
#pragma once

#include <memory>
#include <vector>

#include "optimized/memory/arena.hpp"
#include "reference/contract/values/stored_rows.hpp"
#include "reference/provider/contiguous.hpp"

namespace kvo::optimized {

/// The buffers of all layers lie in one arena that is never cleared (a query shows written cells
/// only), and a batch row is copied as one run. Rows that are no f32 lie there in their own bytes.
class ContiguousArenaCache final : public provider::Contiguous {
 public:
  /// Errors  as provider::MakeContiguous says.
  static Result<std::unique_ptr<provider::Contiguous>> make(
      const provider::ContiguousOptions& options, QuirkSet<provider::Quirk> quirks);

  ContiguousArenaCache(const provider::ContiguousOptions& options, QuirkSet<provider::Quirk> quirks)
      : layers_(static_cast<std::size_t>(options.num_layers)),
        max_seq_len_(options.max_seq_len),
        storage_(options.storage),
        quirks_(quirks) {}

  [[nodiscard]] std::int64_t num_layers() const override {
    return static_cast<std::int64_t>(layers_.size());
  }
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override;
  [[nodiscard]] Status reset() override;
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  struct Layer {
    Buffer k;  ///< [batch][max_seq_len][dim]; without storage until pinned
    Buffer v;
    std::int64_t cursor = 0;
    std::int64_t batch = 0;
    std::int64_t dim = 0;
    std::size_t cells = 0;                    ///< of a buffer
    std::shared_ptr<StoredRows> k_rows = {};  ///< what shows the buffer; null for f32
    std::shared_ptr<StoredRows> v_rows = {};
  };

  [[nodiscard]] bool is_narrow() const { return storage_.type != StorageType::kF32; }
  /// Arena cells that elements take, in rows of `dim`.
  [[nodiscard]] std::size_t cells_for(std::int64_t elements, std::int64_t dim) const;
  /// Stores rows that are no f32 behind the cursor.
  void store_narrow(const Layer& to, const provider::Rows& rows);
  /// Such rows, gathered as they are stored.
  [[nodiscard]] provider::KvPair gather_narrow(const Layer& from);
  /// Shows a buffer that holds such rows, in so many bytes.
  [[nodiscard]] std::shared_ptr<StoredRows> shown(const Buffer& buffer, std::size_t bytes,
                                                  std::int64_t dim) const;
  /// Makes the buffers of a layer, of `cells` each, and pins K's batch and dim.
  void pin(Layer& layer, const Tensor& k, std::size_t cells);
  [[nodiscard]] Status check_v(const Layer& layer, const provider::Rows& rows) const;
  [[nodiscard]] Error size_error(const char* what) const {
    return fail(has(provider::Quirk::kOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange,
                what);
  }
  [[nodiscard]] bool has(provider::Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::vector<Layer> layers_;
  Arena arena_{.written = Written::kBitByBit};
  ResultSides results_;
  std::int64_t max_seq_len_;
  StorageFormat storage_;
  QuirkSet<provider::Quirk> quirks_;
};

}  // namespace kvo::optimized
