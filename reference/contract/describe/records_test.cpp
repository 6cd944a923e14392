// What follows from a declared operation: JSON, checks of arguments, and the call of a method.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/contract/describe/json.hpp"
#include "reference/contract/describe/storage.hpp"
#include "reference/contract/subject/dispatch.hpp"

namespace kvo::records_test {

struct Level {
  using Value = std::int64_t;
  static constexpr Domain kDomain{
      .meaning = "level of a shelf", .least = 0, .most = 9, .outside = Code::kOutOfRange};
};
struct Levels {
  using Value = std::vector<std::int64_t>;
  static constexpr Domain kDomain{.meaning = "levels", .least = -1};
};

// A record whose last or first member is not described.
template <class Member>
struct LastForgotten {
  std::int64_t first;
  Member last;
  BOOST_DESCRIBE_CLASS(LastForgotten, (), (first), (), ())
};
template <class Member>
struct FirstForgotten {
  Member first;
  std::int64_t last;
  BOOST_DESCRIBE_CLASS(FirstForgotten, (), (last), (), ())
};
template <class... Member>
constexpr bool kFound = ((!Described<LastForgotten<Member>> &&
                          !Described<FirstForgotten<Member>>)&&...);
static_assert(
    kFound<bool, float, std::string, Tensor, std::vector<std::string>, std::optional<Tensor>,
           Nullable<std::int64_t>, std::optional<std::vector<std::int64_t>>>);

KVO_RECORD(Total, (std::int64_t, total, "sum"))
KVO_RECORD(Range, (std::vector<std::int64_t>, all, "numbers"), (std::int64_t, first, "the first"))
KVO_RECORD(Settings, (std::int64_t, size, "size", 3), (RowStorage, rows), (bool, last, "last"))
KVO_OPERATION(Add, add, "Adds.", Total, (CacheOfCase<std::int64_t>, cache), (Level, level),
              (std::int64_t, times, "how often", 1, may_be_absent))
KVO_OPERATION(Select, select, "Selects.", Range, (Maybe<Level>, level), (Levels, levels))
using Ops = boost::mp11::mp_list<Add, Select>;

// A cache with a method of each form: members in order, and the record.
class Shelf {
 public:
  std::int64_t add(std::int64_t level, std::int64_t times) { return total_ += level * times; }
  struct View {
    std::span<const std::int64_t> all;
    std::int64_t first;
  };
  Result<View> select(const Select& op) {
    numbers_ = op.levels;
    if (numbers_.empty()) return fail(Code::kExhausted);
    return View{numbers_, numbers_.front()};
  }

 private:
  std::int64_t total_ = 0;
  std::vector<std::int64_t> numbers_;
};

class ShelfSession final : public DispatchSession<ShelfSession, Ops> {
 public:
  template <class T>
  Result<Shelf*> cache_of(const T& /*op*/) {
    return &shelf_;
  }

 private:
  Shelf shelf_;
};

template <class T>
std::string text_of(const T& value) {
  return json_text(type_of<T>(), &value);
}
template <class T>
Record read(const std::string& text) {
  JsonFault fault;
  return read_record(boost::json::parse(text), type_of<T>(), fault);
}

TEST(Records, JsonLeavesOutADefaultThatMayBeAbsent) {
  EXPECT_EQ(text_of(Add{.level = 2}), R"({"cache":0,"level":2})");
  EXPECT_EQ(text_of(Add{.level = 2, .times = 5}), R"({"cache":0,"level":2,"times":5})");
  EXPECT_EQ(read<Add>(R"({"cache":0,"level":2})").as<Add>().times, 1);
  EXPECT_EQ(read<Add>(R"({"cache":0,"level":2,"times":7})").as<Add>().times, 7);
  EXPECT_FALSE(read<Add>(R"({"cache":0})")) << "level has no default";
}

TEST(Records, InitialValuesThatMustBeWrittenAre) {
  EXPECT_EQ(text_of(Settings()), R"({"size":3,"last":false})");
  EXPECT_FALSE(read<Settings>(R"({"last":true})"));
}

TEST(Records, MembersOfAnInlineRecordAreAmongTheOthers) {
  const Settings settings{.size = 1, .rows = {.storage = StorageType::kQ8, .group = 64}};
  const std::string text = R"({"size":1,"storage":"q8","group":64,"last":false})";
  EXPECT_EQ(text_of(settings), text);
  EXPECT_EQ(read<Settings>(text).as<Settings>().rows.format().group, 64);
  EXPECT_EQ(type_of<Settings>().fields.back().meaning, "last") << "meanings stay in step";
}

TEST(Records, DomainsGiveMeaningsUnlessTheRecordHasItsOwn) {
  const auto& fields = type_of<Add>().fields;
  EXPECT_EQ(fields[1].meaning, "level of a shelf");
  EXPECT_EQ(fields[2].meaning, "how often");
  EXPECT_EQ(op_kind<Add>().name, "add");
}

TEST(ArgumentError, NamesTheFieldTheValueAndWhatIsAllowed) {
  EXPECT_EQ(argument_error(Op::of(Add{.level = 9})), std::nullopt);
  const auto above = argument_error(Op::of(Add{.level = 10}));
  ASSERT_TRUE(above);
  EXPECT_EQ(above->text(), "out_of_range (level: 10, allowed: 0 to 9)");
  EXPECT_EQ(argument_error(Op::of(Select{})), std::nullopt) << "absent";
  EXPECT_TRUE(argument_error(Op::of(Select{.level = -1})));
  const auto element = argument_error(Op::of(Select{.levels = {4, -1, -2}}));
  ASSERT_TRUE(element);
  EXPECT_EQ(element->text(), "precondition (levels: -2, allowed: -1 to any)");
}

TEST(DispatchSession, CallsTheMethodOfTheOperationsName) {
  ShelfSession session;
  Probe probe;
  EXPECT_EQ(session.apply(Op::of(Add{.level = 2, .times = 3}), probe).as<Total>().total, 6);
  EXPECT_EQ(session.apply(Op::of(Add{.level = 4}), probe).as<Total>().total, 10);
  EXPECT_TRUE(session.apply(Op::of(Add{.level = -1}), probe).failed_with(Code::kOutOfRange));
  EXPECT_EQ(session.apply(Op::of(Add{}), probe).as<Total>().total, 10) << "nothing was added";
}

TEST(DispatchSession, CopiesWhatASpanRefersTo) {
  ShelfSession session;
  Probe probe;
  const Observation first = session.apply(Op::of(Select{.levels = {5, 6}}), probe);
  const Observation none = session.apply(Op::of(Select{}), probe);
  EXPECT_TRUE(none.failed_with(Code::kExhausted));
  EXPECT_EQ(first.as<Range>().all, std::vector<std::int64_t>({5, 6}));
  EXPECT_EQ(first.as<Range>().first, 5);
}

}  // namespace kvo::records_test
