#include "cuda/jobs/jobs_suite.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "cuda/jobs/build_mask.hpp"
#include "cuda/jobs/cells.hpp"
#include "cuda/jobs/rows.hpp"
#include "reference/contract/values/strided_view.hpp"

namespace kvo::cuda {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(JobsSuite);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t kOld = 0xEE;  // what was there before

// Rows of these sizes are copied in each of the four units.
constexpr std::int64_t kRowBytes[] = {48, 20, 6, 3};

Bytes old_bytes(std::int64_t count) {
  return Bytes(static_cast<std::size_t>(count), kOld);
}
Bytes numbered(std::int64_t count) {
  Bytes bytes(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  return bytes;
}
// Copies one row.
void put_row(Bytes& to, std::int64_t to_row, const Bytes& from, std::int64_t from_row,
             std::int64_t bytes) {
  std::memcpy(to.data() + to_row * bytes, from.data() + from_row * bytes,
              static_cast<std::size_t>(bytes));
}

TEST_P(JobsSuite, RowsAreAppendedToEachLane) {
  for (const std::int64_t row : kRowBytes) {
    const std::int64_t batch = draw(1, 3);
    const std::int64_t max_seq = draw(4, 9);
    const std::int64_t first = draw(0, 2);
    const std::int64_t seq = draw(1, max_seq - first);
    const Bytes rows = numbered(batch * seq * row);
    Bytes wanted = old_bytes(batch * max_seq * row);
    const DevicePtr buffer = put(wanted);
    run(append_rows(buffer, put(rows), batch, seq, row, first, max_seq));
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t s = 0; s < seq; ++s)
        put_row(wanted, b * max_seq + first + s, rows, b * seq + s, row);
    EXPECT_EQ(get<std::uint8_t>(buffer, wanted.size()), wanted) << row;
  }
}

TEST_P(JobsSuite, PagedRowsGoWhereTheTableSaysAndComeBack) {
  for (const std::int64_t row : kRowBytes) {
    const std::int64_t block = draw(1, 5);
    const std::int64_t first = draw(0, 7);
    const std::int64_t count = draw(1, 9);
    const std::int64_t blocks = (first + count) / block + 1;
    std::vector<std::int32_t> table(static_cast<std::size_t>(blocks));
    std::iota(table.rbegin(), table.rend(), 1);  // backwards, and block 0 is another's
    const Bytes rows = numbered(count * row);
    Bytes wanted = old_bytes((blocks + 1) * block * row);
    PagedRows paged{.pool = put(wanted),
                    .rows = put(rows),
                    .table = put(table),
                    .block = block,
                    .row_bytes = row,
                    .first = first,
                    .count = count};
    run(paged.append());
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t p = first + r;
      const std::int64_t number = table[static_cast<std::size_t>(p / block)];
      put_row(wanted, number * block + p % block, rows, r, row);
    }
    EXPECT_EQ(get<std::uint8_t>(paged.pool, wanted.size()), wanted) << row;
    paged.rows = put(old_bytes(count * row));
    run(paged.gather());
    EXPECT_EQ(get<std::uint8_t>(paged.rows, rows.size()), rows) << row;
  }
}

TEST_P(JobsSuite, BlocksAreCopiedPairByPair) {
  for (const std::int64_t block : kRowBytes) {
    Bytes wanted = numbered(6 * block);
    const DevicePtr pool = put(wanted);
    run(copy_blocks(pool, put(std::vector<std::int32_t>{0, 5, 2, 1, 0, 4}), 3, block));
    const Bytes before = wanted;
    for (const auto& [from, to] : {std::pair(0, 5), std::pair(2, 1), std::pair(0, 4)})
      put_row(wanted, to, before, from, block);
    EXPECT_EQ(get<std::uint8_t>(pool, wanted.size()), wanted) << block;
  }
}

TEST_P(JobsSuite, RowsArePackedHeadByHead) {
  for (const std::int64_t dim : kRowBytes) {
    const std::int64_t heads = draw(1, 4);
    const std::int64_t seq = draw(1, 5);
    const std::int64_t first = draw(0, 3);
    const std::int64_t max_seq = first + seq + draw(0, 2);
    const Bytes rows = numbered(seq * heads * dim);
    Bytes wanted = old_bytes(heads * max_seq * dim);
    const DevicePtr to = put(wanted);
    run(pack_head_major(to, put(rows), seq, heads, dim, first, max_seq));
    for (std::int64_t s = 0; s < seq; ++s)
      for (std::int64_t h = 0; h < heads; ++h)
        put_row(wanted, h * max_seq + first + s, rows, s * heads + h, dim);
    EXPECT_EQ(get<std::uint8_t>(to, wanted.size()), wanted) << dim;
  }
}

TEST_P(JobsSuite, ARingIsReadInOrderRoundItsEnd) {
  for (const std::int64_t row : kRowBytes) {
    const std::int64_t capacity = draw(2, 8);
    const std::int64_t count = draw(1, capacity);
    const std::int64_t first = (std::int64_t{1} << 33U) + draw(0, 9);
    const Bytes ring = numbered(capacity * row);
    Bytes wanted = old_bytes((count + 1) * row);
    const DevicePtr rows = put(wanted);
    run(move_rows<false>(rows, put(ring), RingPlace{capacity}, row, first, count));
    for (std::int64_t r = 0; r < count; ++r) put_row(wanted, r, ring, (first + r) % capacity, row);
    EXPECT_EQ(get<std::uint8_t>(rows, wanted.size()), wanted) << row;
  }
}

TEST_P(JobsSuite, ADecodeStepOfAllLayersIsOneKernel) {
  constexpr std::int64_t kBuffers = 6;
  constexpr std::int64_t kDim = 5;
  constexpr std::int64_t kRows = 3;
  std::vector<std::uint64_t> buffers;
  std::vector<std::uint64_t> sources;
  for (std::int64_t b = 0; b < kBuffers; ++b) {
    std::vector<std::uint32_t> row(kDim);
    std::iota(row.begin(), row.end(), static_cast<std::uint32_t>(100 * b));
    buffers.push_back(put(std::vector<std::uint32_t>(kRows * kDim, 9)).address);
    sources.push_back(put(row).address);
  }
  const DevicePtr counter = put(std::vector<std::int32_t>{0});
  const AppendLayers<std::uint32_t> step{put(buffers).as<std::uint32_t* const>(),
                                         put(sources).as<const std::uint32_t* const>(),
                                         counter.as<const std::int32_t>(),
                                         kBuffers,
                                         kDim,
                                         kRows};
  for (std::int64_t position = 1; position <= kRows; ++position) {  // the last writes nothing
    ASSERT_TRUE(write_counter(*device, counter, position));
    run(step);
  }
  for (std::int64_t b = 0; b < kBuffers; ++b) {
    const auto held = get<std::uint32_t>({buffers[static_cast<std::size_t>(b)]}, kRows * kDim);
    for (std::int64_t i = 0; i < kRows * kDim; ++i)
      EXPECT_EQ(held[static_cast<std::size_t>(i)],
                i < kDim ? 9U : static_cast<std::uint32_t>(100 * b + i % kDim));
  }
}

// ---- storage types ----

constexpr DType kStorage[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3,
                              DType::kF8E5M2};

// Every exponent, ties, subnormals, infinities, NaNs with payloads; then numbers of no kind.
std::vector<float> awkward_floats(std::size_t count) {
  std::vector<float> values;
  for (std::uint32_t exponent = 0; exponent < 256; exponent += 5)
    for (const std::uint32_t fraction : {0U, 0x1000U, 0x3000U, 0x7FFFFFU, 0x8000U, 0x18000U, 1U})
      values.push_back(std::bit_cast<float>((exponent << 23U) | fraction |
                                            ((exponent + fraction) % 2 == 0 ? 0U : 0x80000000U)));
  while (values.size() < count)
    values.push_back(std::sqrt(static_cast<float>(values.size())) - 7.0F);
  values.resize(count);
  return values;
}
// A value as it lies in storage.
void store_at(Bytes& to, DType dtype, std::int64_t at, float value) {
  std::array<std::byte, 4> cell = {};
  store_element(dtype, value, cell.data());
  const std::size_t bytes = dtype_bytes(dtype);
  std::memcpy(to.data() + static_cast<std::size_t>(at) * bytes, cell.data(), bytes);
}
float value_at(const Bytes& from, DType dtype, std::int64_t at) {
  const std::size_t bytes = dtype_bytes(dtype);
  std::array<std::byte, 4> cell = {};
  std::memcpy(cell.data(), from.data() + static_cast<std::size_t>(at) * bytes, bytes);
  return load_element(dtype, cell.data());
}

TEST_P(JobsSuite, RowsArePutIntoCellsInTheirStorageType) {
  constexpr std::int64_t kCells = 31;
  for (const DType dtype : kStorage) {
    for (const std::int64_t width : {20, 7}) {  // in packs of four, and one by one
      const std::vector<std::int32_t> targets = {4, 5, 6, 30, 0, 17, 2, 1, 9, 11, 12, 13, 29, 28};
      const auto count = std::ssize(targets);
      const std::vector<float> rows = awkward_floats(static_cast<std::size_t>(count * width));
      const auto bytes = static_cast<std::int64_t>(dtype_bytes(dtype));
      Bytes cells = old_bytes(kCells * width * bytes);
      Bytes columns = cells;
      const PutRows put_cells{dtype, put(cells), put(rows), put(targets), count, width};
      PutRows put_columns = put_cells;
      put_columns.to = put(columns);
      run(put_cells.cells());
      run(put_columns.columns(kCells));
      for (std::int64_t r = 0; r < count; ++r) {
        const std::int64_t cell = targets[static_cast<std::size_t>(r)];
        for (std::int64_t i = 0; i < width; ++i) {
          const float value = rows[static_cast<std::size_t>(r * width + i)];
          store_at(cells, dtype, cell * width + i, value);
          store_at(columns, dtype, i * kCells + cell, value);
        }
      }
      EXPECT_EQ(get<std::uint8_t>(put_cells.to, cells.size()), cells) << width;
      EXPECT_EQ(get<std::uint8_t>(put_columns.to, columns.size()), columns) << width;
    }
  }
}

// Cells of two heads, the second and the third of which move.
struct KeysCase {
  DType dtype;
  std::int64_t dim;
  bool all;
  static constexpr std::int64_t kCells = 4;
  static constexpr std::int64_t kHeads = 2;
  [[nodiscard]] static bool moves(std::int64_t cell) { return cell == 1 || cell == 2; }
  [[nodiscard]] bool changes(std::int64_t cell) const { return all || moves(cell); }
};
std::vector<KeysCase> keys_cases() {
  std::vector<KeysCase> cases;
  for (const DType dtype : kStorage)
    for (const std::int64_t dim : {12, 10, 7})  // in packs of two, and one by one
      for (const bool all : {false, true}) cases.push_back({dtype, dim, all});
  return cases;
}
ShiftKeys shift_of(const KeysCase& one, DevicePtr keys, DevicePtr moved) {
  return {one.dtype, keys, moved, KeysCase::kCells, KeysCase::kHeads, one.dim, one.all};
}
Bytes stored_keys(const KeysCase& one) {
  const std::int64_t count = KeysCase::kCells * KeysCase::kHeads * one.dim;
  Bytes keys = old_bytes(count * static_cast<std::int64_t>(dtype_bytes(one.dtype)));
  for (std::int64_t i = 0; i < count; ++i)
    store_at(keys, one.dtype, i, std::sqrt(static_cast<float>(i + 2)) - 3.0F);
  return keys;
}

TEST_P(JobsSuite, KeysAreTurnedAsInDoublePrecisionOnTheHost) {
  for (const KeysCase& one : keys_cases()) {
    const std::int64_t half = one.dim / 2;
    std::vector<Turn> turns;
    for (std::int64_t i = 0; i < 2 * half; ++i) {
      const double angle = 0.37 * static_cast<double>(i);
      turns.push_back({std::cos(angle), std::sin(angle)});
    }
    Bytes wanted = stored_keys(one);
    const ShiftKeys shift = shift_of(one, put(wanted), put(Bytes{0, 1, 1, 0}));
    run(shift.turned(put(turns)));
    for (std::int64_t row = 0; row < KeysCase::kCells * KeysCase::kHeads; ++row) {
      const std::int64_t cell = row / KeysCase::kHeads;
      for (std::int64_t d = 0; d < half && one.changes(cell); ++d) {
        const std::int64_t at = row * one.dim + d;
        const double x = value_at(wanted, one.dtype, at);
        const double y = value_at(wanted, one.dtype, at + half);
        const Turn turn = turns[static_cast<std::size_t>(KeysCase::moves(cell) ? half + d : d)];
        store_at(wanted, one.dtype, at, static_cast<float>(x * turn.cosine - y * turn.sine));
        store_at(wanted, one.dtype, at + half, static_cast<float>(x * turn.sine + y * turn.cosine));
      }
    }
    EXPECT_EQ(get<std::uint8_t>(shift.keys, wanted.size()), wanted) << one.dim << one.all;
  }
}

TEST_P(JobsSuite, KeysAreAddedTo) {
  constexpr float kKept = 0.25F;
  constexpr float kAdded = -1.0F / 3.0F;
  for (const KeysCase& one : keys_cases()) {
    Bytes wanted = stored_keys(one);
    const ShiftKeys shift = shift_of(one, put(wanted), put(Bytes{0, 1, 1, 0}));
    run(shift.added(kKept, kAdded));
    const std::int64_t width = KeysCase::kHeads * one.dim;
    for (std::int64_t i = 0; i < KeysCase::kCells * width; ++i) {
      const std::int64_t cell = i / width;
      if (!one.changes(cell)) continue;
      const float by = KeysCase::moves(cell) ? kAdded : kKept;
      store_at(wanted, one.dtype, i, value_at(wanted, one.dtype, i) + by);
    }
    EXPECT_EQ(get<std::uint8_t>(shift.keys, wanted.size()), wanted) << one.dim << one.all;
  }
}

// Every cell of 16 bits, or binary32 cells of all magnitudes, among them ties and what overflows.
std::vector<std::byte> cells_of(DType type, traces::Random& random) {
  constexpr std::size_t kCount = 1U << 16U;
  std::vector<std::byte> cells(kCount * dtype_bytes(type));
  for (std::uint32_t i = 0; i < kCount; ++i) {
    std::uint32_t bits = i;
    if (type == DType::kF32) bits = i << 16U | static_cast<std::uint32_t>(random.below(8)) << 13U;
    if (type == DType::kF32 && i % 2 == 0) bits |= static_cast<std::uint32_t>(random.below(8192));
    std::memcpy(cells.data() + i * dtype_bytes(type), &bits, dtype_bytes(type));
  }
  return cells;
}

TEST_P(JobsSuite, CellsAreConvertedAsOnTheHost) {
  for (const DType from : {DType::kF32, DType::kF16, DType::kBF16}) {
    const std::vector<std::byte> cells = cells_of(from, random);
    const std::size_t size = dtype_bytes(from);
    const DevicePtr given = put(cells);
    for (const DType to : {DType::kF32, DType::kF16, DType::kBF16}) {
      if (to == from) continue;
      std::vector<std::byte> wanted(cells.size() / size * dtype_bytes(to), std::byte{kOld});
      const DevicePtr made = put(wanted);
      // Eight at once with three behind them; a last one; and few, where nothing is aligned.
      const auto all = static_cast<std::int64_t>(cells.size() / size);
      for (const auto& [first, count] :
           {std::pair{std::int64_t{0}, all - 133}, std::pair{all - 128, std::int64_t{1}},
            std::pair{all - 125, std::int64_t{117}}}) {
        const auto to_bytes = static_cast<std::int64_t>(dtype_bytes(to));
        run(convert_cells(made + first * to_bytes, to,
                          given + first * static_cast<std::int64_t>(size), from, count));
        for (std::int64_t i = first; i < first + count; ++i)
          store_element(to, load_element(from, cells.data() + i * static_cast<std::int64_t>(size)),
                        wanted.data() + i * to_bytes);
      }
      EXPECT_EQ(get<std::byte>(made, wanted.size()), wanted)
          << dtype_name(from) << " to " << dtype_name(to);
    }
  }
}

TEST_P(JobsSuite, CellsOfAByteAreConvertedAsOnTheHost) {
  const std::vector<std::byte> floats = cells_of(DType::kF32, random);
  const auto count = std::ssize(floats) / 4;
  const DevicePtr given = put(floats);
  for (const DType type : {DType::kF8E4M3, DType::kF8E5M2}) {
    std::vector<std::byte> cells(static_cast<std::size_t>(count), std::byte{kOld});
    std::vector<std::byte> back(floats.size(), std::byte{kOld});
    const DevicePtr narrowed = put(cells);
    const DevicePtr widened = put(back);
    run(narrow_cells(narrowed, type, given, count));
    run(widen_cells(widened, narrowed, type, count));
    for (std::int64_t i = 0; i < count; ++i) {
      store_element(type, load_element(DType::kF32, &floats[static_cast<std::size_t>(4 * i)]),
                    &cells[static_cast<std::size_t>(i)]);
      store_element(DType::kF32, load_element(type, &cells[static_cast<std::size_t>(i)]),
                    &back[static_cast<std::size_t>(4 * i)]);
    }
    EXPECT_EQ(get<std::byte>(narrowed, cells.size()), cells) << dtype_name(type);
    EXPECT_EQ(get<std::byte>(widened, back.size()), back) << dtype_name(type);
  }
}

// Two sequences in five cells, the third cell in both; each rule decides at least one cell.
struct MaskCase {
  const char* what;
  std::int64_t window;
  std::int64_t chunk;
  std::uint8_t ahead;                 // of the first token
  std::vector<std::uint8_t> visible;  // [token][column]
};

TEST_P(JobsSuite, MasksShowWhatATokenMaySee) {  // OK-31, OK-38
  const DevicePtr positions = put(std::vector<std::int32_t>{2, 4});
  const DevicePtr sequences = put(std::vector<std::int32_t>{0, 33});
  const DevicePtr cells = put(std::vector<std::int32_t>{9, 0, 1, 2, 3, 4});
  const DevicePtr owners =  // [cell][2 words]: sequence 0 is bit 0, sequence 33 bit 1 of the second
      put(std::vector<std::uint32_t>{1, 2, 1, 0, 1, 2, 1, 2, 1, 2, 0, 2});
  constexpr std::int64_t kFar = std::int64_t{1} << 40U;
  const MaskCase cases[] = {
      {"causal", kFar, 0, 0, {1, 1, 1, 0, 0, 0, 1, 1, 1, 1}},
      {"looks ahead", kFar, 0, 1, {1, 1, 1, 1, 0, 0, 1, 1, 1, 1}},
      {"window", 1, 0, 0, {0, 1, 1, 0, 0, 0, 0, 0, 1, 1}},
      {"chunk", kFar, 2, 0, {0, 0, 1, 0, 0, 0, 0, 0, 0, 1}},
  };
  for (const MaskCase& one : cases) {
    const DevicePtr ahead = put(std::vector<std::uint8_t>{one.ahead, 0});
    const DevicePtr mask = put(std::vector<std::uint32_t>(10, 0xDEADU));
    const DevicePtr half = put(std::vector<std::uint16_t>(10, 0xDEADU));
    const auto job = [&]<class Cell>(Cell /*cell*/, DevicePtr to) {
      return BuildMask<Cell>{to.as<Cell>(),
                             positions.as<const std::int32_t>(),
                             sequences.as<const std::int32_t>(),
                             ahead.as<const std::uint8_t>(),
                             cells.as<const std::int32_t>(),
                             owners.as<const std::uint32_t>(),
                             2,
                             1,
                             5,
                             2,
                             one.window,
                             one.chunk};
    };
    run(job(std::uint32_t(), mask));
    run(job(std::uint16_t(), half));
    const auto shown = get<std::uint32_t>(mask, 10);
    const auto shown_half = get<std::uint16_t>(half, 10);
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(shown[i], one.visible[i] != 0 ? 0U : 0xFF800000U) << one.what << " " << i;
      EXPECT_EQ(shown_half[i], one.visible[i] != 0 ? 0U : 0xFC00U) << one.what << " " << i;
    }
  }
}

}  // namespace
}  // namespace kvo::cuda
